//! A consistent summary for the tests of this crate.

use std::collections::BTreeMap;

use serde_json::json;

use crate::counter::{CounterPair, CounterRate, CounterTrial, ExpectedEffect};
use crate::head::Kind;
use crate::summary::{
    Bottleneck, Ceilings, Count, CpuCost, DiskWear, Endurance, Engine, FailedRate, IoEngine, KneeInterval,
    LedgerSummary, NextLimit, ResultSummary, SCHEMA_VERSION, Soak, StorageCost, ThreadCpu, TrialResult,
    Verdict, VolumeCeiling,
};

/// A machine that holds 80 MB/s with headroom: qualified 120 MB/s over a soak of 60 s.
pub(crate) fn fit() -> ResultSummary {
    ResultSummary {
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".into(),
        id: "0123456789abcdef".into(),
        created: "2026-11-21T03:30:00Z".into(),
        command: "keepup qualify csl --volume /data".into(),
        kind: Kind::Qualify,
        verdict: Verdict::Fit,
        verdict_reasons: vec![],
        profile: "csl".into(),
        plan: json!({"soak": "60 s"}),
        environment: json!({"kernel": "6.12"}),
        environment_hash: "8f3a".into(),
        required_bytes_per_second: 80e6,
        required_run_seconds: Some(28_800.0),
        headroom_wanted: 1.3,
        knee_bytes_per_second: Some(124e6),
        knee_interval: Some(KneeInterval {
            lower_bytes_per_second: 124e6,
            upper_bytes_per_second: Some(125e6),
        }),
        qualified_bytes_per_second: Some(120e6),
        headroom: Some(1.5),
        failed_above: Some(FailedRate {
            bytes_per_second: 126e6,
            seconds: 5.0,
            lost_events: 0,
            condition: "the backlog grew".into(),
        }),
        soak: Some(Soak {
            seconds: 60.0,
            bytes: 7_200_000_000,
            passes: 1,
            failed: 0,
            exposed_seconds: Some(60.0),
            upper_bound_loss_per_second: 0.05,
            memory_bytes: Some(4_000_000_000),
        }),
        steady: None,
        bottleneck: Some(Bottleneck {
            stage: "volume".into(),
            evidence: "the volume was busy 99 per cent of the time".into(),
            next: Some(NextLimit {
                stage: "network".into(),
                bytes_per_second: None,
                evidence: "by its ceiling".into(),
            }),
            counter_trials: vec![CounterTrial {
                stage: "volume".into(),
                change: "blocks discarded instead of written".into(),
                expected: ExpectedEffect::Rises,
                pairs: vec![CounterPair {
                    unchanged: CounterRate { bytes_per_second: 120e6, held: true },
                    changed: CounterRate { bytes_per_second: 240e6, held: true },
                }],
                confirmed: true,
                not_run: None,
            }],
        }),
        source_host: None,
        ceilings: Ceilings {
            source_bytes_per_second: Some(3e9),
            network_bytes_per_second: Some(2e9),
            memory_bytes_per_second: None,
            volumes: vec![VolumeCeiling { path: "/data".into(), bytes_per_second: Some(126e6) }],
        },
        ledger: ledger(),
        cpu: CpuCost {
            seconds_per_gb: Some(0.2),
            drain_seconds_per_gb: Some(0.02),
            source_seconds_per_gb: Some(0.1),
            per_core_percent: vec![12.0, 7.5],
            softirq_percent: Some(1.5),
            steal_percent: None,
            recorder_threads: vec![ThreadCpu {
                name: "ku-writer-0".into(),
                seconds: 0.7,
                run_delay_seconds: None,
            }],
        },
        loads: vec![],
        trials: vec![trial(120e6, true), trial(126e6, false)],
        storage: StorageCost {
            bytes_written: 9_000_000_000,
            hours_of_storage_left_at_required: Some(10.0),
            run_bytes: Some(2_304_000_000_000),
            usable_bytes: Some(2_880_000_000_000),
            bytes_per_year: Some(2_522_880_000_000_000),
            disks: vec![DiskWear {
                disk: "nvme0n1".into(),
                used_percent: 12,
                spare_percent: 100,
                spare_threshold_percent: 10,
                is_degraded: false,
                written_bytes: Some(80_000_000_000_000),
            }],
            endurance: Some(Endurance {
                path: "/data".into(),
                rated_bytes: 600_000_000_000_000,
                written_bytes: Some(80_000_000_000_000),
                seconds: 6.5e6,
                runs: 225.7,
                run_seconds: 28_800.0,
                required_seconds: 28_800.0,
            }),
        },
        engine: Engine { io: IoEngine::IoUring, buffers: "huge pages, registered".into() },
        limits: vec!["the network was the loopback interface".into()],
        interrupted: false,
        result_directory: "results/csl-20261121T033000Z-01234567".into(),
    }
}

fn ledger() -> LedgerSummary {
    let all = Count { events: 27_466, bytes: 7_200_047_104 };
    LedgerSummary {
        sent: all,
        lost_at_source: Count::default(),
        received: all,
        written: all,
        durable: all,
        stored: None,
        verified: Some(all),
        unread_segments: 0,
        drained: None,
        lost: Count::default(),
        lost_by_cause: BTreeMap::new(),
    }
}

/// A trial of 5 s that passed, or failed by a growing backlog.
pub(crate) fn trial(asked_bytes_per_second: f64, passed: bool) -> TrialResult {
    TrialResult {
        phase: "search".into(),
        asked_bytes_per_second,
        seconds: 5.0,
        achieved_bytes_per_second: asked_bytes_per_second,
        durable_bytes_per_second: asked_bytes_per_second,
        lost_events: 0,
        backlog_growing: !passed,
        passed,
        failed_condition: (!passed).then(|| "backlog does not grow".into()),
        backlog_bytes_max: Some(1_048_576),
        stall_ms_max: Some(31.0),
        buffer_seconds: Some(0.5),
        cpu_seconds_per_gb: None,
        load_rates: vec![],
    }
}

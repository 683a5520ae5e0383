//! Every listing of samples: lines that fit, escaped names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use keepup_measure::histogram::Latency;
use keepup_recording::account::{
    CommandCounts, Incidents, RecordAccount, Stalls, ThreadCpu, VolumeAccount, VolumeStalls,
};
use keepup_recording::fixture::{scene, scene_segment};
use keepup_recording::info::{ArchiveInfo, RecordingInfo, State, info};
use keepup_recording::reader::Recording;
use keepup_recording::recover::{RecoverReport, SegmentRecovery, StreamRecovery, VolumeRecovery};
use keepup_recording::verify::{Fault, VerifyOptions, verify};
use keepup_results::{Begun, DoctorSummary, FleetDoctorSummary, FleetFinding, LoadResult};
use keepup_stream::ledger::{Count, Ledger, StreamLedger};
use keepup_stream::rejected::{RejectReason, RejectUnit};
use keepup_stream::source::{FleetReport, SourceReport, StreamReport};
use keepup_stream::wire::Bye;
use keepup_trace::{Converted, Hints, Trace, describe};
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use super::*;

/// As wide as the narrowest terminal in use.
const NARROW: Style = Style { colour: false, width: 80 };

fn count(events: u64) -> Count {
    Count { events, bytes: events * 8_388_608 }
}

/// Interrupted recording in a new directory.
fn cut_off() -> (tempfile::TempDir, Recording) {
    let place = tempfile::tempdir().unwrap();
    let directory = scene(place.path(), &scene_segment(3).unwrap()).unwrap();
    (place, Recording::open(&[directory]).unwrap())
}

/// Description with every part: long names, all kinds of faults.
fn full_info() -> RecordingInfo {
    let (_place, recording) = cut_off();
    let mut found = info(&recording).unwrap();
    found.name = "run\u{1b}[2J of the second week".into();
    found.run = Some(17);
    found.metadata.insert("sample".into(), "quartz ".repeat(30));
    found.volumes[0].directory = PathBuf::from("/data/a/run1");
    found.volumes[0].bytes = 123_456_789_012_345;
    (found.volumes[0].drained, found.volumes[0].archived) = (Some(1 << 20), 1 << 20);
    let to = "s3://bucket-of-the-facility/beamline/run1".to_owned();
    found.archives = vec![ArchiveInfo { to, segments: 1 << 30, bytes: 1 << 60, damaged: 1 << 20 }];
    found.missing_volumes = vec!["/data/b/run1".into()];
    found.master = Some("/data/a/run1/recording.nxs".into());
    found.state = State::CutOff;
    let (_, first) = found.streams.pop_first().unwrap();
    for id in 0..30 {
        let mut stream = first.clone();
        stream.info.name = format!("module {id} of the left detector wing \u{202e}");
        (stream.info.shape, stream.events) = (vec![4096, 4096, 16], u64::MAX);
        stream.payload_bytes = Some(123_456_789_012_345);
        stream.missing.insert(LossCause::SequenceGap, 1_000_000);
        found.streams.insert(65_000 + id, stream);
    }
    found
}

fn rejected() -> Rejected {
    Rejected {
        source: "udp://10.0.0.9:4001 from 10.0.0.7:65535".into(),
        reason: RejectReason::Malformed,
        unit: RejectUnit::Packet,
        count: 1 << 40,
        is_foreign: false,
        detail: "its header has version 9, and a name with a line end\n".into(),
    }
}

fn account() -> RecordAccount {
    let thread = || ThreadCpu { name: "ku-intake".into(), cpu_ns: 123_456_789, run_delay_ns: None };
    let mut ledger = Ledger::default();
    for id in 0..30 {
        let mut stream =
            StreamLedger { received: count(1 << 40), durable: count(1 << 39), ..Default::default() };
        stream.gap_events.insert(LossCause::VolumeFailed, 1 << 39);
        ledger.streams.insert(id, stream);
    }
    let volume = |failure: Option<&str>| VolumeAccount {
        directory: Some("/data/a/run1".into()),
        engine: "io_uring".into(),
        buffers: "transparent huge pages, registered".into(),
        access: "direct".into(),
        note: None,
        failure: failure.map(str::to_owned),
        write_latency: Latency::new().summary(),
        cpu: thread(),
    };
    let total = ledger.total();
    RecordAccount {
        recording: "00ff".repeat(8),
        ended: "no volume takes more data: all have failed, and no other was given to the recorder".into(),
        master: Some("/data/a/run1/recording.nxs".into()),
        whole: false,
        removed: false,
        received: total.received,
        written: total.written,
        durable: total.durable,
        missing_events: total.gap_events,
        rejected: vec![rejected(); 30],
        ledger,
        elapsed_seconds: 86_400.0,
        cpu_seconds: 5000.0,
        path_cpu_seconds: 4000.0,
        intake_cpu: thread(),
        intakes_cpu: vec![thread()],
        reducers_cpu: vec![thread()],
        stored: count(1),
        pool_bytes: 1 << 40,
        pool_bytes_used_max: 1 << 39,
        pool_wait_ns: 12_345_678_901,
        stalls: Stalls { volumes: vec![VolumeStalls::default(); 2], ..Stalls::default() },
        volumes: vec![volume(None), volume(Some("cannot write: Input/output error (os error 5)"))],
        after_seal: Some(CommandCounts { succeeded: 1 << 30, failed: 1 << 20, skipped: 1 << 20 }),
        incidents: Incidents { listed: vec!["a connection ended: broken pipe".into()], total: 2000 },
        trouble: vec!["cannot seal segment 12: Input/output error".into()],
    }
}

fn recover_report() -> RecoverReport {
    let segment = SegmentRecovery {
        path: "/data/a/run2/segment-000000.mcap".into(),
        blocks: 123_456,
        blocks_behind: 12_345,
        duplicates: 3,
        data_bytes: 123_456_789_012,
    };
    let volume = VolumeRecovery {
        directory: "/data/a/run2".into(),
        sealed: vec![segment],
        removed: vec!["/data/a/run2/segment-000001.mcap".into()],
        journal_cut_bytes: 17,
        faults: vec!["/data/a/run2/journal.jsonl: line 3\nhint: keepup verify /data/a/run2".into()],
    };
    let stream = StreamRecovery {
        name: "left\u{1b}wing of the detector".into(),
        recorded: count(1 << 40),
        removed: count(1 << 40),
        missing: [(LossCause::CutOff, 12)].into(),
    };
    let (_place, recording) = cut_off();
    RecoverReport {
        name: "run2".into(),
        recording: recording.manifest().recording,
        changed: true,
        complete: false,
        missing_volumes: vec!["/data/b/run2".into()],
        volumes: vec![volume],
        streams: [(0, stream)].into(),
        master: Some("/data/a/run2/recording.nxs".into()),
    }
}

fn source_report(closed_loop: bool) -> SourceReport {
    let mut lateness_ns = hdrhistogram::Histogram::new(3).unwrap();
    lateness_ns.record(123_456_789).unwrap();
    let stream = StreamReport {
        id: 0,
        due: count(1 << 40),
        sent: count(1 << 39),
        lost: count(1 << 39),
        first_sequence: 0,
        next_sequence: 1 << 40,
    };
    SourceReport {
        is_acknowledged: true,
        closed_loop,
        streams: vec![stream],
        bye: Bye { streams: Vec::new() },
        durable_events: 1 << 38,
        lateness_ns,
        longest_blocked_ns: 1,
        blocked_ns: 1 << 40,
        idle_ns: 1,
        cpu_ns: 1 << 40,
        started_unix_ns: 0,
        ended_unix_ns: 1,
        elapsed_ns: 1 << 50,
        max_backlog_bytes: 1 << 40,
        fleet: closed_loop.then(|| FleetReport {
            acknowledged: count(1 << 38),
            lost_at_recorders: 1 << 40,
            sent_again: count(1 << 40),
            moved_streams: 1 << 40,
            longest_without_recorder_ns: 1 << 40,
        }),
    }
}

fn doctor_summary() -> DoctorSummary {
    let finding = |severity: &str| {
        json!({
            "severity": severity, "setting": "net.core.rmem_max", "value": "4194304 (4.00 MiB)",
            "wanted": "100663296 (96.0 MiB) or more", "why": "datagrams are dropped ".repeat(9),
            "source": "socket(7), SO_RCVBUF; slsDetectorPackage documentation, Receiver PC Tuning Options",
            "command": "sysctl -w net.core.rmem_max=100663296",
        })
    };
    let findings = ["harmful", "worth_a_look", "not_judged", "fine"].map(finding);
    serde_json::from_value(json!({
        "schema_version": 1, "tool_version": "0.1.0", "created": "", "command": "keepup doctor",
        "needs": {
            "profile": null, "bytes_per_second": 1e9, "bytes_per_second_peak": 1e9, "event_bytes": 1e6,
            "transport": "udp", "connections": 1, "run_bytes": null, "stall_ns": 100_000_000,
        },
        "interfaces": [], "volumes": [],
        "counts": {"harmful": 1, "worth_a_look": 1, "not_judged": 1, "fine": 1},
        "findings": findings,
        "notes": ["no profile given: judged for a single stream ".repeat(4)],
        "readings": null,
    }))
    .unwrap()
}

/// A host with two interfaces, and one that was not checked.
fn fleet_doctor_summary() -> FleetDoctorSummary {
    let interface = |name: &str| {
        json!({
            "name": name, "mtu": 9000, "speed_mbit": 100_000, "driver": "mlx5_core", "state": "up",
            "hardware_clock": null,
        })
    };
    let facts = json!({
        "tool_version": "0.1.0", "message_version": 1, "kernel": "6.12.1", "cores": 64,
        "memory_bytes": 1_u64 << 38, "memlock": "8388608",
        "clock": {
            "source": "tsc", "is_synchronised": true, "error_ns_max": 1,
            "programs": ["chronyd", "phc2sys", "ptp4l"], "hardware_clocks": ["ptp0: mlx5_ptp"],
        },
        "interfaces": [interface("enp129s0f0np0"), interface("enp129s0f1np1")],
        "volumes": [{"path": "/data", "free_bytes": 1_u64 << 40, "size_bytes": 1_u64 << 42}], "paths": [],
    });
    let host = |host: &str, facts: serde_json::Value| {
        json!({
            "host": host, "role": "recorder", "needs": null, "facts": facts, "failure": null,
            "clock_offset_ns": -123_456_789, "clock_error_ns": 123_456,
        })
    };
    let hosts = [host("daq1", facts), host("a-host-with-a-long-name.detector.example.org", json!(null))];
    let one = doctor_summary();
    let of = |finding| FleetFinding { hosts: vec!["a-host-with-a-long-name".repeat(2); 5], finding };
    serde_json::from_value(json!({
        "schema_version": 1, "tool_version": "0.1.0", "created": "",
        "command": "keepup doctor --fleet f.toml",
        "fleet": "hall", "hosts": hosts, "counts": one.counts, "notes": one.notes,
        "findings": one.findings.into_iter().map(of).collect::<Vec<_>>(),
    }))
    .unwrap()
}

fn load_result() -> LoadResult {
    serde_json::from_value(json!({
        "spec": "disk=25 MB/s@/data/a-directory-with-a-long-name/of-the-second-crate,write,size=1 GiB",
        "kind": "disk", "unit": "bytes_per_second", "asked": 25e6, "achieved": 20e6, "seconds": 10.0,
        "cpu_seconds": 0.5, "step_seconds": 1.0, "series": [], "fell_short": true, "failure": null,
        "notes": [],
    }))
    .unwrap()
}

/// Texts of one recording: description, verification, recovery, account.
fn recordings_of_samples() -> Vec<(&'static str, String)> {
    let (_place, recording) = cut_off();
    let mut report = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
    for stream in report.streams.values_mut() {
        (stream.damaged_events, stream.lost_events, stream.unsettled_events) = (1, 1 << 40, 1 << 40);
        (stream.removed, stream.name) = (count(1 << 40), "left wing of the detector \u{1b}".into());
    }
    let file = PathBuf::from("/data/a/segment-000000.mcap");
    report.faults = vec![Fault { file, offset: 4096, stream: Some(0), event: None, what: "bad".into() }; 25];
    report.fault_count = 25;
    report.ending = keepup_recording::verify::Ending::Unclean { reason: "a volume failed ".repeat(9) };
    let (gaps, directory) = (recording.gaps(), recording.volumes()[0].dir());
    let verified = Verified { report: &report, gaps: &gaps, directory, is_being_made: false, seconds: 2.0 };
    vec![
        ("info", super::recording(&full_info(), NARROW)),
        ("verify", verification(&verified, NARROW)),
        ("recover", recovery(&recover_report(), NARROW)),
        ("record", record(&account(), NARROW)),
        ("record, removed", record(&RecordAccount { removed: true, ..account() }, NARROW)),
    ]
}

/// Texts of the catalogue: profiles, parts, machines, the note's figures.
fn catalogue() -> Vec<(&'static str, String)> {
    let profiles: Vec<keepup_plan::Profile> =
        keepup_plan::builtin_names().map(|name| keepup_plan::builtin(name).unwrap()).collect();
    let all = keepup_model::catalogue().unwrap();
    let names = keepup_model::machine_names();
    let machines: Vec<keepup_model::Machine> =
        names.map(|name| keepup_model::machine(name).unwrap()).collect();
    let paper = keepup_model::papers::paper("cern-vme").unwrap();
    let mut texts = vec![
        ("profiles", super::profiles(&profiles, NARROW)),
        ("parts", parts(&all.iter().collect::<Vec<_>>(), NARROW)),
        ("machines", super::machines(&machines, NARROW)),
        ("note", register_note(&paper, NARROW)),
    ];
    texts.extend(all.iter().map(|one| ("part", part(one, NARROW))));
    texts
}

/// Texts of a trace with two devices, and of its conversion.
fn traces() -> Vec<(&'static str, String)> {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("srv.csv");
    let row = |n: u64| format!("{},srv,{},Read,{},4096,500\n", 128_166_372_003_061_629 + n, n % 2, n * 8192);
    std::fs::write(&file, (0..100).map(row).collect::<String>()).unwrap();
    let mut trace = Trace::open(&[file], &Hints::default(), None).unwrap();
    let mut info = describe(&mut trace).unwrap();
    info.header.source = vec!["srv.csv".into()];
    info.corrections.reordered = 12_345;
    info.devices[0].name = Some("a device\u{1b} with a long name, on the second controller".into());
    info.devices[0].bytes = 123_456_789_012_345;
    let done = Converted {
        records: 1 << 40,
        devices: 2,
        corrections: info.corrections,
        lost: vec!["completion times, because the format cannot represent them ".repeat(2)],
    };
    vec![
        ("trace", super::trace(&info, NARROW)),
        ("convert", converted(&done, std::path::Path::new("srv.iolog"), NARROW)),
    ]
}

fn campaigns() -> Vec<(&'static str, String)> {
    let text = "name = \"c\"\nrepetitions = 2\n[run]\nverb = \"disk sweep\"\nfile = \"64 MiB\"\n\
                sizes = \"4 KiB,64 KiB,1 MiB,4 MiB\"\nreserve = \"10 GB\"\n[axes]\n\
                volume = [\"/data/a\", \"/data/b\"]";
    let campaign = keepup_campaign::parse(text, "c", &[]).unwrap();
    let mut forecasts = keepup_campaign::Forecasts::default();
    let volumes = BTreeMap::from([("/data/a".to_owned(), 1 << 50)]);
    let cost = keepup_campaign::Forecast::of_volumes(volumes.clone(), volumes);
    for cell in campaign.cells().iter().skip(1) {
        forecasts.insert(cell, cost.clone());
    }
    let begun = Begun {
        id: "0123abcd".into(),
        tool_version: "0.1.0".into(),
        created_unix_ns: 0,
        command: "keepup".into(),
        workload: "c".into(),
        plan: serde_json::Value::Null,
        environment: serde_json::Value::Null,
    };
    let state = keepup_campaign::State::new(campaign, forecasts.clone());
    vec![
        ("campaign", campaign_plan(&state, &forecasts, &cost, NARROW)),
        ("cost", campaign_cost(&cost, NARROW)),
        ("status", campaign_status(&state, &begun, true, NARROW)),
    ]
}

#[test]
fn an_address_and_a_directory_can_be_copied_from_a_narrow_terminal() {
    let address = format!("s3://bucket/prefix/{}", "%E6%97%A5".repeat(30));
    let directory = Path::new("/data").join("with a blank/".repeat(20));
    let archived = Archived {
        archive: &address,
        files: 1,
        bytes: 1,
        known_bytes: 0,
        segments: None,
        directory: Some(&directory),
        state: "restored: complete, all checksums confirmed",
        seconds: 1.0,
    };
    let text = archive(&archived, NARROW);
    for whole in [address.as_str(), directory.to_str().unwrap()] {
        assert!(text.lines().any(|line| line.ends_with(whole.trim_end())), "{text}");
    }
}

#[test]
fn every_listing_fits_a_terminal_of_80_columns_without_control_characters() {
    let drained = Drained {
        sent: count(1 << 40),
        durable: count(1 << 40),
        missing_events: 3,
        is_complete: true,
        seconds: 1.0,
    };
    let archived = Archived {
        archive: "s3://bucket/prefix/run1",
        files: 1 << 20,
        bytes: 1 << 60,
        known_bytes: 1 << 50,
        segments: Some((1 << 20, 1 << 20, 1 << 16)),
        directory: Some(Path::new("/data/run1")),
        state: "not complete: the recording has not ended (--follow continues until then)",
        seconds: 1e6,
    };
    let mut texts = vec![
        ("archive", archive(&archived, NARROW)),
        ("doctor", doctor(&doctor_summary(), NARROW)),
        ("doctor --fleet", fleet_doctor(&fleet_doctor_summary(), NARROW)),
        ("load", loads(&[load_result()], NARROW)),
        ("source", source(&source_report(false), NARROW)),
        ("source, closed loop", source(&source_report(true), NARROW)),
        ("drain", drain(&drained, NARROW)),
        ("counters", counters(&[("datagrams that are not packets", u64::MAX)], NARROW)),
    ];
    texts.extend(recordings_of_samples().into_iter().chain(catalogue()).chain(traces()).chain(campaigns()));
    for (name, text) in texts {
        assert!(!text.is_empty(), "{name}");
        for line in text.lines() {
            assert!(line.width() <= NARROW.width, "{name}, {} columns: {line}", line.width());
            assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{name}: {line:?}");
        }
    }
}

#[test]
fn commands_and_paths_are_never_split() {
    let mut summary = doctor_summary();
    let command = format!("sysctl -w {}", "net.core.rmem_max=100663296 ".repeat(8));
    summary.findings[0].command = Some(command.trim_end().to_owned());
    let text = doctor(&summary, NARROW);
    assert!(text.lines().any(|line| line.ends_with(command.trim_end())), "{text}");
    let mut found = full_info();
    found.volumes[0].directory = PathBuf::from("/data/".repeat(30));
    let text = recording(&found, NARROW);
    let directory = "/data/".repeat(30);
    assert!(text.lines().any(|line| line.ends_with(&directory)), "{text}");
    let recover = format!("  keepup recover {directory}");
    assert!(text.lines().any(|line| line.ends_with(&recover)), "{text}");
}

#[test]
fn a_command_can_be_pasted_into_a_shell() {
    let mut found = full_info();
    found.volumes[0].directory = PathBuf::from("/data/beam time/run1");
    let text = recording(&found, NARROW);
    assert!(text.contains("keepup recover '/data/beam time/run1'"), "{text}");
}

#[test]
fn long_lists_are_cut_with_a_note() {
    let text = recording(&full_info(), NARROW);
    assert!(text.contains("... and 10 more streams (--json lists all)"), "{text}");
    assert_eq!(text.matches("of the left").count(), ROWS_SHOWN, "{text}");
    let mut report = recover_report();
    let stream = report.streams[&0].clone();
    report.streams.extend((1..10_000).map(|id| (id, stream.clone())));
    let text = recovery(&report, NARROW);
    assert!(text.contains("... and 9980 more streams (--json lists all)"), "{text}");
    assert!(text.contains("missing  120,000 events, "), "{text}");
    assert_eq!(text.matches("wing of the detector").count(), ROWS_SHOWN, "{text}");
}

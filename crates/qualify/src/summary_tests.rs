//! Limits of validity, and the space of a run.
use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};

use keepup_measure::clock::SystemClock;
use keepup_measure::cpu::CoreUsage;
use keepup_measure::environment::Reading;
use keepup_measure::space::Space;
use keepup_plan::units::{Bytes, Span};
use keepup_plan::{Burst, builtin};
use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_stream::source::{EventSize as SentSize, Protocol, Rate, SourcePlan};
use keepup_workload::file_store::FileStore;
use keepup_workload::load::LoadPlan;
use keepup_workload::preflight::check;
use keepup_workload::record::{
    FileSource, LocalSource, ReadFrom, RecordTrial, Sample, TrialMeasured, TrialSpec, Verification,
};
use keepup_workload::{Context, run};

use super::*;
use crate::judge::TrialRequest;

/// A short trial that was recorded and verified.
static MEASURED: LazyLock<TrialMeasured> = LazyLock::new(|| {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let target = Target::Volumes(vec![directory.path().into()]);
    let recorder = RecorderConfig {
        pool_bytes: 32 << 20,
        segment_bytes: 64 << 20,
        ..RecorderConfig::new((Ipv4Addr::LOCALHOST, 0).into(), target, "trial")
    };
    let source = SourcePlan {
        events: Some(100),
        duration: Some(Duration::from_secs(10)),
        ..SourcePlan::new(SentSize::Fixed(65_536), Rate::EventsPerSecond(1000.0))
    };
    let mut trial = RecordTrial::new(TrialSpec {
        source,
        generator: Arc::new(LocalSource),
        recorder,
        recording: Id::random().unwrap(),
        drain: None,
        verify: Some(Verification::Whole),
        read_back: false,
        cut_off: None,
        first_events: None,
        sample_every: Duration::from_millis(10),
        watcher_slot: None,
    });
    let mut context = Context {
        clock: Arc::new(SystemClock),
        stop: Arc::default(),
        sample: Box::new(|_, _| {}),
        note: Box::new(|_| {}),
    };
    run(&mut trial, &mut context).unwrap()
});

fn trial_run() -> TrialRun {
    let measured = MEASURED.clone();
    let asked = TrialRequest { rate: Some(104e6), duration: Duration::from_secs(30), drain_rate: None };
    let outcome = crate::judge::outcome(&asked, &measured, 31.0);
    TrialRun { measured, asked: asked.rate, outcome, loads: Vec::new(), drain_behind: None }
}

/// Inputs of a summary for csl, with a soak that held.
struct Fixture {
    settings: Settings,
    environment: Environment,
    findings: Findings,
    volumes: Vec<Checked>,
}

impl Fixture {
    fn new() -> Self {
        let settings = Settings {
            profile: builtin("csl").unwrap(),
            volumes: vec!["disk".into()],
            quick: false,
            until_steady: false,
            soak: None,
            write_bytes_max: 1 << 40,
            endurance: Vec::new(),
            drain_to: None,
            recorder: RecorderConfig::new((Ipv4Addr::LOCALHOST, 0).into(), Target::Null, "qualify"),
            generator: Arc::new(LocalSource),
            source_cpus: Vec::new(),
            protocol: Protocol::Keepup,
            loads: LoadPlan::default(),
            command: "keepup qualify csl".into(),
            results: "results".into(),
            tool_version: "0.1.0".into(),
            watcher_slot: None,
        };
        let mut environment = Environment::collect(&[], Path::new("/nonexistent"));
        environment.machine.virtualised = Reading::Value(false);
        environment.memory.total_bytes = Reading::Value(1 << 30);
        let mut findings = Findings::new(Ceilings::default(), trial_run(), 1e9);
        findings.soak = Some((104e6, trial_run()));
        findings.soaked_bytes = 3 << 30;
        let volumes =
            vec![Checked { path: "disk".into(), usable_bytes: 100_000_000_000, warnings: Vec::new() }];
        Self { settings, environment, findings, volumes }
    }

    /// The trial shown.
    fn soak(&mut self) -> &mut TrialMeasured {
        &mut self.findings.soak.as_mut().unwrap().1.measured
    }

    /// A drain at the required rate that took so many bytes per second in the soak.
    fn drain(&mut self, reached: f64) {
        self.settings.profile.drain = Some("80 MB/s".parse().unwrap());
        let sample = |n: u32| {
            let t_s = f64::from(n) / 10.0;
            let (stored_bytes, drained_bytes) = ((t_s * 104e6) as u64, (t_s * reached) as u64);
            Sample { t_s, stored_bytes, drained_bytes, ..Sample::default() }
        };
        self.soak().samples = (0..=300).map(sample).collect();
    }

    fn with<T>(&self, of: impl FnOnce(&SummaryInputs<'_>) -> T) -> T {
        of(&SummaryInputs {
            settings: &self.settings,
            environment: &self.environment,
            findings: &self.findings,
            trials: Vec::new(),
            loads: Vec::new(),
            bytes_written: 0,
            id: "0123".into(),
            created_unix_ns: 0,
            plan: serde_json::Value::Null,
            directory: Path::new("results/csl"),
            volumes: &self.volumes,
            disks: &[],
        })
    }

    fn run_space(&self) -> RunSpace {
        self.with(|parts| run_space(parts, self.settings.required()))
    }

    /// The sentence with these words, if there is one.
    fn limit(&self, words: &str) -> Option<String> {
        let limits = self.with(|parts| limits(parts, &self.run_space()));
        let mut found = limits.into_iter().filter(|limit| limit.contains(words));
        let first = found.next();
        assert_eq!(found.next(), None, "{words} is said once");
        first
    }
}

#[test]
fn the_reserve_of_a_volume_is_not_used() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let mut fixture = Fixture::new();
    fixture.volumes = check(&[directory.path().to_owned()], 0).unwrap();
    let space = Space::of(directory.path()).unwrap();
    let reserve = (0.05 * space.total_bytes as f64).min(10_737_418_240.0);
    let usable = fixture.run_space().usable_bytes;
    let difference = space.free_bytes as f64 - usable - reserve;
    // Other programs write meanwhile.
    assert!(difference.abs() < reserve / 2.0, "{space:?}: {usable} usable");
}

/// The judge passes a drain with 90 % of its rate: the rest fills the volumes.
#[test]
fn a_drain_frees_what_it_reached_in_the_soak() {
    let mut fixture = Fixture::new();
    fixture.drain(81e6);
    assert_eq!(fixture.run_space().full_after(), None);
    let ring = fixture.limit("fits only in a ring (record --keep)").unwrap();
    assert!(ring.starts_with("a run of 8 h") && ring.contains("the volumes are full after"), "{ring}");
    fixture.drain(75e6);
    let run_space = fixture.run_space();
    let growth = run_space.written * 5.0 / 80.0;
    assert!((run_space.growth() / growth - 1.0).abs() < 1e-6, "{run_space:?}");
    let shortage = run_space.shortage().unwrap();
    assert!(shortage.contains("beyond what the drain frees in a ring (record --keep)"), "{shortage}");
    assert_eq!(fixture.limit("a ring"), None, "the verdict has it");
    fixture.settings.profile.drain = None;
    assert!(fixture.run_space().shortage().is_some_and(|shortage| !shortage.contains("drain")));
}

#[test]
fn a_cache_that_may_have_helped_is_named() {
    let mut fixture = Fixture::new();
    fixture.soak().record.volumes[0].access = "direct".into();
    let (buffered, small) = ("through the page cache, not directly", "a controller's cache was not excluded");
    assert_eq!((fixture.limit(buffered), fixture.limit(small)), (None, None));
    fixture.findings.soaked_bytes = 1 << 20;
    assert!(
        fixture.limit(small).unwrap().contains("less was written in the soak than the machine has memory")
    );
    fixture.soak().record.volumes[0].access = "buffered".into();
    assert!(fixture.limit(buffered).is_some());
    assert_eq!(fixture.limit("writes were direct"), None);
}

#[test]
fn a_rate_that_was_not_steady_is_a_limit() {
    let mut fixture = Fixture::new();
    fixture.soak().record.volumes[0].access = "direct".into();
    fixture.findings.soaked_bytes = 1 << 20;
    let state =
        |reached| SteadyState { reached, round_seconds: 5.0, bytes: 1 << 30, bytes_per_second: vec![2e8; 5] };
    for reached in [true, false] {
        fixture.findings.steady = Some(state(reached));
        let unsteady = fixture.limit("the write rate was not steady before the search");
        assert_eq!(unsteady.is_none(), reached);
        let small = fixture.limit("a controller's cache was not excluded");
        assert_eq!(small.is_none(), reached, "what was written until then filled it");
    }
}

#[test]
fn a_virtual_machine_and_its_steal_are_limits() {
    let busy = |steal_percent| CoreUsage {
        core: 0,
        busy_percent: 50.0,
        user_percent: 40.0,
        system_percent: 10.0,
        irq_percent: 0.0,
        softirq_percent: 0.0,
        steal_percent,
    };
    let mut fixture = Fixture::new();
    let (machine, steal) = ("this is a virtual machine", "the hypervisor took");
    fixture.soak().cores = vec![busy(9.0), busy(5.0)];
    assert_eq!((fixture.limit(machine), fixture.limit(steal)), (None, None));
    fixture.environment.machine.virtualised = Reading::Value(true);
    assert!(fixture.limit(machine).unwrap().contains("slower where nothing was written before"));
    assert_eq!(fixture.limit(steal).unwrap(), "the hypervisor took 7 % of the CPU time for other machines");
    fixture.soak().cores = vec![busy(1.5), busy(0.4)];
    assert!(fixture.limit(machine).is_some());
    assert_eq!(fixture.limit(steal), None, "less than 1 %");
}

#[test]
fn trials_do_not_overwrite_on_any_machine() {
    let mut fixture = Fixture::new();
    for virtualised in [false, true] {
        fixture.environment.machine.virtualised = Reading::Value(virtualised);
        let segments = fixture.limit("segments were new files, preallocated").unwrap();
        assert!(segments.contains("not overwritten") && segments.contains("thin storage"), "{segments}");
    }
}

#[test]
fn a_sample_that_was_read_back_is_stated() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.limit("were read back and verified"), None);
    let report = fixture.soak().verify.as_mut().unwrap();
    (report.segments, report.unread_segments) = (3, 5);
    assert_eq!(
        fixture.limit("were read back and verified").unwrap(),
        "3 of 8 segments of the soak were read back and verified, a sample: the time for it is limited"
    );
}

#[test]
fn where_the_soak_was_read_from_is_stated() {
    let mut fixture = Fixture::new();
    fixture.soak().read_from = Some(ReadFrom::Disks);
    let (disks, cache) = ("read back from the disks", "read back may have come from the page cache");
    assert!(fixture.limit(disks).unwrap().ends_with("the page cache was dropped before"));
    assert_eq!(fixture.limit(cache), None);
    fixture.soak().read_from = Some(ReadFrom::Either { why: "4.10 kB of the segments stayed in it".into() });
    assert!(fixture.limit(cache).unwrap().ends_with(": 4.10 kB of the segments stayed in it"));
    assert_eq!(fixture.limit(disks), None);
    // A soak with losses is not read.
    fixture.soak().read_from = None;
    assert_eq!((fixture.limit(disks), fixture.limit(cache)), (None, None));
}

#[test]
fn assumptions_about_the_detector_are_stated() {
    let mut fixture = Fixture::new();
    let (events, buffer) = ("assumed to send events", "assumed to buffer");
    assert_eq!(
        fixture.limit(events).unwrap(),
        "the detector was assumed to send events of 262 kB each, evenly spaced"
    );
    assert_eq!(
        fixture.limit(buffer).unwrap(),
        "the detector was assumed to buffer 67.1 MB, 839 ms at the required rate (source.buffer)"
    );
    assert!(fixture.limit("random, incompressible content").unwrap().contains("compresses or deduplicates"));
    let profile = &mut fixture.settings.profile;
    profile.streams = 4;
    profile.event = EventSize::Uniform { min: Bytes(1000), max: Bytes(5000) };
    let seconds = |seconds| Span(Duration::from_secs(seconds));
    profile.burst = Some(Burst { on: seconds(1), off: seconds(9) });
    assert_eq!(
        fixture.limit(events).unwrap(),
        "the detector was assumed to send events of 1.00 kB to 5.00 kB, uniformly distributed, in bursts of \
         1 s with pauses of 9 s, at the same rate on all 4 streams"
    );
    let varied = EventSize::LogNormal { median: Bytes(2000), sigma: 0.5, max: Bytes(9000) };
    fixture.settings.profile.event = varied;
    let said = fixture.limit(events).unwrap();
    assert!(said.contains("of log-normally distributed size (median 2.00 kB, at most 9.00 kB)"), "{said}");
}

fn host() -> SourceHost {
    SourceHost {
        address: "10.0.0.2:7614".into(),
        host: "daq2".into(),
        cpu: Some("Fast CPU @ 3 GHz".into()),
        cores: Some(8),
        tool_version: "0.1.0".into(),
        counters_gap_seconds_max: Some(0.043),
    }
}

#[test]
fn a_source_on_another_machine_is_named_instead_of_loopback() {
    let remote = path(Some(&host()), false, Protocol::Keepup);
    assert!(remote.contains("daq2 (Fast CPU @ 3 GHz), reached at 10.0.0.2:7614"), "{remote}");
    assert!(!remote.contains("loopback"), "{remote}");
    let unnamed = path(Some(&SourceHost { cpu: None, ..host() }), false, Protocol::Keepup);
    assert!(unnamed.contains("daq2, reached at"), "{unnamed}");
}

#[test]
fn a_second_process_on_this_machine_is_no_network() {
    for host in [None, Some(&host())] {
        assert!(path(host, true, Protocol::Keepup).contains("talked over loopback"));
    }
}

#[test]
fn the_time_between_reports_is_a_limit() {
    let sentence = counters_gap(&host()).unwrap();
    assert!(sentence.contains("at least every 43"), "{sentence}");
    assert_eq!(counters_gap(&SourceHost { counters_gap_seconds_max: None, ..host() }), None);
}

#[test]
fn what_of_the_transport_was_not_tested_is_stated() {
    let transport =
        |protocol, profile: &str, is_loopback| transport(protocol, &builtin(profile).unwrap(), is_loopback);
    assert_eq!(transport(Protocol::Keepup, "csl", true), None);
    let keepup = transport(Protocol::Keepup, "oryx-51s5m", true).unwrap();
    assert!(keepup.contains("not over the detector's own transport"), "{keepup}");
    let ioc = transport(Protocol::PvAccess, "oryx-51s5m", true).unwrap();
    assert!(ioc.contains("NTNDArray over pvAccess") && ioc.ends_with("were not tested"), "{ioc}");
    let here = transport(Protocol::Spead, "meerkat-visibilities", true).unwrap();
    assert!(here.contains("loopback neither lost nor reordered packets"), "{here}");
    let elsewhere = transport(Protocol::Spead, "meerkat-visibilities", false).unwrap();
    assert!(elsewhere.contains("a SPEAD heap") && !elsewhere.contains("loopback"), "{elsewhere}");
    let dectris = Protocol::Dectris(DectrisVersion::V1);
    let raw = transport(dectris, "eiger2-16m", true).unwrap();
    assert!(raw.contains("Stream V1") && raw.contains("uncompressed, of one channel"), "{raw}");
    assert_eq!(
        transport(dectris, "eiger2-16m-bslz4", true).unwrap(),
        "each event was an image of DECTRIS Stream V1 over ZeroMQ, of one channel, compressed by bslz4 from \
         36.2 MB (4.81 GB/s before compression)"
    );
}

#[test]
fn the_content_of_compressed_images_is_stated() {
    let mut fixture = Fixture::new();
    let (noise, photons) = ("random, incompressible content", "random photon counts");
    fixture.settings.profile = builtin("eiger2-16m-bslz4").unwrap();
    // In keepup's own protocol, events have other content.
    assert!(fixture.limit(noise).is_some() && fixture.limit(photons).is_none());
    fixture.settings.protocol = Protocol::Dectris(DectrisVersion::V2);
    assert!(fixture.limit(noise).is_none() && fixture.limit(photons).is_some());
}

#[test]
fn a_detector_that_writes_files_names_their_place_and_what_was_not_tested() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let mut fixture = Fixture::new();
    fixture.settings.protocol = Protocol::Files;
    fixture.settings.volumes = vec![directory.path().into()];
    let store = FileStore { below: directory.path().into(), keep_bytes: 2_500_000_000 };
    fixture.settings.generator = Arc::new(FileSource { store });
    let files = fixture.limit("each event was a file").unwrap();
    let place = directory.path().display().to_string();
    assert!(files.contains(&place) && files.contains("2.50 GB"), "{files}");
    assert!(files.contains("shared a disk with volume"), "{files}");
    assert!(fixture.limit("full-speed trials that find the bottleneck used TCP").is_some());
    assert_eq!(fixture.limit("loopback"), None);
}

//! Run control with a real recorder: waiting sources, cleanup, and commands in any order.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use keepup_measure::clock::SystemClock;
use keepup_recorder::run::{RunControl, RunOffer, RunParts};
use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_recording::manifest::Manifest;
use keepup_recording::reader::Recording;
use keepup_recording::verify::{VerifyOptions, verify};
use keepup_results::live::{RefusalKind, RunCommand, RunOrder, RunRefusal, RunSettings, RunState, StopAfter};
use keepup_stream::source::{EventSize, Rate, SourceCounters, SourcePlan, SourceReport, run};
use proptest::prelude::*;

/// Run control of a small recorder; `change` adjusts its configuration last.
fn control(volumes: &[&Path], change: impl Fn(&mut RecorderConfig) + Send + 'static) -> RunControl {
    let volumes: Vec<PathBuf> = volumes.iter().map(|v| v.to_path_buf()).collect();
    let mut drawn = 0;
    RunControl::new(RunParts {
        offer: RunOffer { volumes, listen: ([127, 0, 0, 1], 0).into(), takes_commands: true },
        prepare: Box::new(move |settings, id, number| {
            if settings.profile.is_some() {
                return Err("no profiles here".into());
            }
            let name =
                settings.name.clone().unwrap_or_else(|| format!("run{number}-{}", &id.to_string()[..4]));
            let mut config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), Target::Null, name);
            config.pool_bytes = 4 << 20;
            config.block_bytes = 64 << 10;
            config.segment_bytes = 1 << 20;
            change(&mut config);
            Ok(config)
        }),
        clock: Arc::new(SystemClock),
        new_id: Box::new(move || {
            drawn += 1;
            Ok(Id([drawn; 16]))
        }),
    })
}

fn order(control: &mut RunControl, command: RunCommand) -> Result<(), RunRefusal> {
    let settings = (command == RunCommand::Configure).then(RunSettings::default);
    control.order(&RunOrder { command, settings, revision: None })
}

fn configure(control: &mut RunControl, settings: RunSettings) -> Result<(), RunRefusal> {
    control.order(&RunOrder { command: RunCommand::Configure, settings: Some(settings), revision: None })
}

/// Polls until the state is one of these.
fn until(control: &mut RunControl, states: &[RunState]) {
    let since = Instant::now();
    while !states.contains(&control.state()) {
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", control.status());
        std::thread::sleep(Duration::from_millis(2));
        control.poll();
    }
}

fn plan(rate: Rate, events: u64) -> SourcePlan {
    let plan = SourcePlan::new(EventSize::Fixed(10_000), rate);
    SourcePlan { streams: 2, events: Some(events), ..plan }
}

/// A source that sends to the armed or recording `control`.
fn source(control: &RunControl, plan: SourcePlan) -> JoinHandle<Option<SourceReport>> {
    let to: SocketAddr = control.status().listen.unwrap().parse().unwrap();
    std::thread::spawn(move || run(&plan, to, &AtomicBool::new(false), &SourceCounters::default()).ok())
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

#[test]
fn a_run_from_settings_to_a_sealed_recording_and_the_next_one() {
    let volumes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut control = control(&[volumes[0].path(), volumes[1].path()], |_| {});
    let metadata = BTreeMap::from([("sample".to_owned(), "quartz".to_owned())]);
    let settings = RunSettings { run: Some(40), metadata: metadata.clone(), ..RunSettings::default() };
    configure(&mut control, settings).unwrap();
    for number in [40, 41] {
        // Also after it was armed and disarmed before.
        order(&mut control, RunCommand::Arm).unwrap();
        order(&mut control, RunCommand::Stop).unwrap();
        order(&mut control, RunCommand::Arm).unwrap();
        order(&mut control, RunCommand::Start).unwrap();
        let source = source(&control, plan(Rate::Max, 500));
        until(&mut control, &[RunState::Sealed]);
        let sent = source.join().unwrap().unwrap().total(|s| s.sent);
        let last = control.status().last.unwrap();
        assert_eq!(
            (last.run, last.whole, last.ended.as_str()),
            (Some(number), true, "all sources have ended")
        );
        assert_eq!((last.received.events, last.durable.bytes), (sent.events, sent.bytes));
        assert!(last.missing.is_empty() && last.incidents.is_empty(), "{last:?}");
        let directories: Vec<PathBuf> = last.directories.iter().map(PathBuf::from).collect();
        for directory in &directories {
            let manifest = Manifest::read(directory).unwrap();
            assert_eq!((manifest.run, &manifest.metadata), (Some(number), &metadata));
        }
        let recording = Recording::open(&directories).unwrap();
        assert!(verify(&recording, VerifyOptions { threads: 1 }, &|_| {}).is_intact());
        assert!(recording.has_master());
        assert_eq!(control.report().unwrap().ledger.total().durable, sent);
    }
}

#[test]
fn sources_that_connect_before_the_start_wait() {
    let volume = tempfile::tempdir().unwrap();
    let hello_timeout = Duration::from_millis(250);
    let mut control = control(&[volume.path()], move |config| config.hello_timeout = hello_timeout);
    order(&mut control, RunCommand::Configure).unwrap();
    order(&mut control, RunCommand::Arm).unwrap();
    let source = source(&control, plan(Rate::Max, 300));
    // A client that sends nothing gets an error, but only some time after it was accepted.
    let listen: SocketAddr = control.status().listen.unwrap().parse().unwrap();
    let mute = TcpStream::connect(listen).unwrap();
    std::thread::sleep(3 * hello_timeout);
    control.poll();
    let counters = control.recorder().unwrap().counters();
    assert_eq!(control.state(), RunState::Armed);
    assert_eq!(counters.connections(), 0);
    assert_eq!(counters.received_events(), 0);
    order(&mut control, RunCommand::Start).unwrap();
    until(&mut control, &[RunState::Sealed]);
    let sent = source.join().unwrap().unwrap().total(|s| s.sent);
    let last = control.status().last.unwrap();
    assert_eq!(last.received.events, sent.events);
    let late = last.incidents.iter().filter(|incident| incident.contains("no hello")).count();
    assert_eq!(late, 1, "{:?}", last.incidents);
    drop(mute);
}

#[test]
fn disarming_removes_everything() {
    let volumes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    // A directory that existed before is not removed.
    std::fs::create_dir(volumes[1].path().join("mine")).unwrap();
    let mut control = control(&[volumes[0].path(), volumes[1].path()], |_| {});
    let settings = RunSettings { name: Some("mine".into()), ..RunSettings::default() };
    configure(&mut control, settings).unwrap();
    assert_eq!(entries(volumes[0].path()), 0, "settings create nothing");
    for (command, state) in [(RunCommand::Stop, RunState::Configured), (RunCommand::Reset, RunState::Idle)] {
        order(&mut control, RunCommand::Arm).unwrap();
        assert!(volumes[0].path().join("mine/keepup.json").exists());
        assert_eq!(control.status().directories.len(), 2);
        order(&mut control, command).unwrap();
        assert_eq!(control.state(), state);
        assert_eq!(entries(volumes[0].path()), 0);
        assert_eq!(entries(&volumes[1].path().join("mine")), 0);
        assert!(control.status().directories.is_empty() && control.status().listen.is_none());
    }
    assert_eq!(control.status().settings, RunSettings::default(), "reset forgets");
}

#[test]
fn a_failed_arming_leaves_nothing() {
    let volumes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    // No machine has that CPU, so the writers cannot start; directories exist already at that
    // point.
    let mut control = control(&[volumes[0].path(), volumes[1].path()], |config| config.cpus = vec![4000]);
    order(&mut control, RunCommand::Configure).unwrap();
    let refused = order(&mut control, RunCommand::Arm).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Failed, "{refused}");
    assert_eq!(control.state(), RunState::Error);
    assert_eq!(control.status().error, Some(refused.why.to_text()));
    assert_eq!((entries(volumes[0].path()), entries(volumes[1].path())), (0, 0));
    order(&mut control, RunCommand::Reset).unwrap();
    assert_eq!(control.status().error, None);
}

#[test]
fn a_limit_ends_a_run() {
    let volume = tempfile::tempdir().unwrap();
    let mut control = control(&[volume.path()], |_| {});
    let stops = [
        StopAfter { events: Some(50), ..StopAfter::default() },
        StopAfter { bytes: Some(300_000), ..StopAfter::default() },
        StopAfter { seconds: Some(0.2), ..StopAfter::default() },
    ];
    for stop in stops {
        configure(&mut control, RunSettings { stop, ..RunSettings::default() }).unwrap();
        order(&mut control, RunCommand::Arm).unwrap();
        order(&mut control, RunCommand::Start).unwrap();
        let source = source(&control, plan(Rate::EventsPerSecond(200.0), 100_000));
        until(&mut control, &[RunState::Sealed]);
        source.join().unwrap();
        let last = control.status().last.unwrap();
        assert!(last.ended.ends_with("as asked"), "{}", last.ended);
        assert!(last.received.events >= stop.events.unwrap_or(0), "{last:?}");
        assert!(last.received.bytes >= stop.bytes.unwrap_or(0), "{last:?}");
        assert!(last.received.events < 100_000);
        assert_eq!(last.received, last.durable);
    }
}

#[test]
fn when_every_volume_fails_the_run_ends_with_an_error_and_keeps_its_data() {
    let volume = tempfile::tempdir().unwrap();
    let mut control = control(&[volume.path()], |_| {});
    order(&mut control, RunCommand::Configure).unwrap();
    order(&mut control, RunCommand::Arm).unwrap();
    order(&mut control, RunCommand::Start).unwrap();
    let directory = PathBuf::from(&control.status().directories[0]);
    let source = source(&control, plan(Rate::EventsPerSecond(2000.0), 100_000));
    let written = || control.recorder().unwrap().counters().volumes[0].written_bytes.load(Relaxed);
    let by = Instant::now() + Duration::from_secs(20);
    while written() == 0 {
        assert!(Instant::now() < by, "nothing was written");
        std::thread::sleep(Duration::from_millis(1));
    }
    // Data goes to the existing segments, and no other can be created.
    std::fs::rename(&directory, volume.path().join("elsewhere")).unwrap();
    until(&mut control, &[RunState::Error]);
    source.join().unwrap();
    let status = control.status();
    assert!(status.error.unwrap().contains("no volume takes more data"));
    let last = status.last.unwrap();
    assert!(!last.whole && last.received.events > 0, "{last:?}");
    order(&mut control, RunCommand::Arm).unwrap_err();
    std::fs::create_dir(&directory).unwrap();
    order(&mut control, RunCommand::Configure).unwrap();
}

#[test]
fn the_run_continues_while_one_volume_works() {
    let volumes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut control = control(&[volumes[0].path(), volumes[1].path()], |_| {});
    order(&mut control, RunCommand::Configure).unwrap();
    order(&mut control, RunCommand::Arm).unwrap();
    order(&mut control, RunCommand::Start).unwrap();
    let counters = control.recorder().unwrap().counters();
    let directory = PathBuf::from(&control.status().directories[1]);
    std::fs::rename(&directory, volumes[1].path().join("elsewhere")).unwrap();
    let source = source(&control, plan(Rate::Max, 5000));
    until(&mut control, &[RunState::Sealed, RunState::Error]);
    let sent = source.join().unwrap().unwrap().total(|s| s.sent);
    assert!(counters.volumes[1].failure.get().is_some() && counters.volumes[0].failure.get().is_none());
    let status = control.status();
    assert_eq!((status.state, status.error), (RunState::Sealed, None));
    let last = status.last.unwrap();
    assert_eq!(last.received.events, sent.events);
    assert!(!last.incidents.is_empty(), "{last:?}");
    assert_eq!((last.durable, last.missing.len()), (last.received, 0), "{last:?}");
    assert!(!last.whole, "a volume failed: {last:?}");
}

#[test]
fn invalid_settings_change_nothing() {
    let volume = tempfile::tempdir().unwrap();
    let mut control = control(&[volume.path()], |_| {});
    std::fs::create_dir(volume.path().join("taken")).unwrap();
    std::fs::write(volume.path().join("taken/thesis.tex"), "x").unwrap();
    let bad = [
        RunSettings { volumes: vec!["/tmp".into()], ..RunSettings::default() },
        RunSettings { name: Some("../up".into()), ..RunSettings::default() },
        RunSettings { name: Some("x".repeat(300)), ..RunSettings::default() },
        RunSettings { name: Some("taken".into()), ..RunSettings::default() },
        RunSettings { profile: Some("csl".into()), ..RunSettings::default() },
    ];
    for settings in bad {
        let refused = configure(&mut control, settings).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Settings, "{refused}");
        assert_eq!((control.state(), control.status().revision), (RunState::Idle, 0));
    }
    let missing = RunOrder { command: RunCommand::Configure, settings: None, revision: None };
    assert_eq!(control.order(&missing).unwrap_err().kind, RefusalKind::Settings);
}

#[test]
fn a_command_with_an_old_revision_is_refused() {
    let mut control = control(&[], |_| {});
    let seen = control.status().revision;
    let settings = Some(RunSettings::default());
    let first = RunOrder { command: RunCommand::Configure, settings, revision: Some(seen) };
    control.order(&first).unwrap();
    assert_eq!(control.order(&first).unwrap_err().kind, RefusalKind::Revision);
    assert_eq!(control.state(), RunState::Configured);
}

#[test]
fn a_run_number_is_used_once() {
    let volume = tempfile::tempdir().unwrap();
    let mut control = control(&[volume.path()], |_| {});
    let with_run = |run| RunSettings { run, ..RunSettings::default() };
    configure(&mut control, with_run(Some(9))).unwrap();
    order(&mut control, RunCommand::Arm).unwrap();
    order(&mut control, RunCommand::Start).unwrap();
    order(&mut control, RunCommand::Stop).unwrap();
    until(&mut control, &[RunState::Sealed]);
    let refused = configure(&mut control, with_run(Some(9))).unwrap_err();
    assert!(refused.why.hint().unwrap().contains("the next one is 10"), "{refused}");
    configure(&mut control, with_run(None)).unwrap();
    assert_eq!(control.status().run, Some(10));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn any_orders_lead_from_one_state_to_another(orders in prop::collection::vec(0..6_usize, 1..24)) {
        let mut control = control(&[], |_| {});
        for order_ in orders {
            control.poll();
            let (state, revision) = (control.state(), control.status().revision);
            // The sixth action is to wait.
            let Some(&command) = RunCommand::ALL.get(order_) else {
                if state == RunState::Draining {
                    until(&mut control, &[RunState::Sealed]);
                    prop_assert!(control.status().revision > revision);
                }
                continue;
            };
            let outcome = order(&mut control, command);
            let status = control.status();
            prop_assert!(status.revision >= revision);
            // A run may also end between two polls.
            if state == RunState::Draining {
                continue;
            }
            match state.after(command) {
                Some(next) => {
                    prop_assert!(outcome.is_ok(), "{:?} in {}", outcome, state);
                    prop_assert_eq!(status.state, next);
                    prop_assert!(status.revision > revision);
                }
                None => {
                    prop_assert_eq!(outcome.map_err(|refusal| refusal.kind), Err(RefusalKind::State));
                    prop_assert_eq!((status.state, status.revision), (state, revision));
                }
            }
            prop_assert_eq!(&status.commands[..], status.state.commands());
            let is_listening = matches!(status.state, RunState::Armed | RunState::Recording);
            prop_assert_eq!(status.listen.is_some(), is_listening);
        }
        // In every case it can be ended.
        if control.state() == RunState::Recording || control.state() == RunState::Armed {
            order(&mut control, RunCommand::Stop).unwrap();
        }
        until(&mut control, &[RunState::Idle, RunState::Configured, RunState::Sealed]);
    }
}

//! Order of passes, and the fidelity criterion.
use keepup_sys::engine::EngineChoice;
use keepup_sys::file::Access;
use keepup_workload::run;

use super::*;
use crate::testing::{Row, context, reads_at, script};

fn options(mode: Mode) -> ReplayOptions {
    ReplayOptions {
        mode,
        limit: 64,
        passes: 3,
        io: IoOptions { engine: EngineChoice::Auto, access: Access::Direct, check: true },
        loads: LoadPlan::default(),
        with_and_without: false,
        id: "test".into(),
    }
}

fn replayed(script: &Script, places: &[TargetSpec], options: &ReplayOptions) -> Vec<ReplayPass> {
    let mut all = Vec::new();
    let mut tell = |pass: &ReplayPass| all.push(pass.clone());
    let passes = run(&mut Replay::new(script, places, options, &mut tell), &mut context()).unwrap();
    assert_eq!(all, passes);
    passes
}

#[test]
fn places_take_turns_and_the_order_is_turned_round() {
    let script = reads_at(0..50);
    let places = [TargetSpec::Null, TargetSpec::Memory];
    let passes = replayed(&script, &places, &options(Mode::Afap { depth: 4 }));
    let order: Vec<(&str, u32, bool)> =
        passes.iter().map(|pass| (pass.place.as_str(), pass.pass, pass.is_cold)).collect();
    assert_eq!(
        order,
        [
            ("null", 1, true),
            ("memory", 1, true),
            ("memory", 2, false),
            ("null", 2, false),
            ("null", 3, false),
            ("memory", 3, false)
        ]
    );
    assert!(passes.iter().all(|pass| pass.requests == 50 && pass.fidelity.is_none()));
}

#[test]
fn a_file_is_filled_replayed_checked_and_removed() {
    let volume = tempfile::tempdir().unwrap();
    let rows: Vec<Row> = (0..400)
        .map(|n| (n * 100, if n % 2 == 0 { 'W' } else { 'R' }, n * 7919 % 300 * 4096, 4096 << (n % 4), 10))
        .collect();
    let script = script(&rows);
    let places = [TargetSpec::Volume(volume.path().to_owned())];
    for mode in [
        Mode::Afap { depth: 16 },
        Mode::Timed { speed: 1.0 },
        Mode::Dep { speed: 1.0 },
        Mode::Paced { rate: 10_000.0 },
    ] {
        let options = options(mode);
        let footprint = Replay::new(&script, &places, &options, &mut |_| {}).plan();
        assert_eq!(footprint.space_bytes[volume.path()], script.cost(0..script.target_bytes).filled);
        let passes = replayed(&script, &places, &options);
        assert_eq!(passes.len(), 3);
        for pass in &passes {
            assert_eq!((pass.requests, pass.failed), (400, 0), "{pass:?}");
            assert_eq!(pass.bytes_written, script.summary.bytes_written);
            assert!(pass.outstanding_max <= pass.outstanding_limit);
        }
        let check = passes[2].check.as_ref().unwrap();
        assert_eq!(check.wrong, 0, "{check:?}");
        assert!(check.blocks > 0 && passes[1].check.is_none());
    }
    assert_eq!(std::fs::read_dir(volume.path()).unwrap().count(), 0, "nothing stays");
}

#[test]
fn the_gate_says_what_does_not_hold() {
    let script = reads_at((0..1001).map(|n| n * 1000));
    let mode = Mode::Timed { speed: 1.0 };
    let account = |last_ns, blocked| {
        let mut account = Account::default();
        (account.last_ns, account.blocked) = (last_ns, blocked);
        account
    };
    let kept = account(1_000_000_000, 0);
    let found = fidelity(&script, mode, &kept).unwrap();
    assert!(found.is_kept && found.span_error == 0.0 && found.lateness_allowed_ns == 1_000_000);
    let long = account(1_020_000_000, 7);
    let found = fidelity(&script, mode, &long).unwrap();
    assert!(!found.is_kept && found.is_target && found.why.len() == 2, "{found:?}");
    assert!(found.why[0].contains("1.020 s") && found.why[1].contains("7 requests"), "{found:?}");
    // A tenth of the median gap if that is more.
    let slow = reads_at((0..11).map(|n| n * 1_000_000));
    assert_eq!(fidelity(&slow, mode, &kept).unwrap().lateness_allowed_ns, 100_000_000);
    assert_eq!(fidelity(&script, Mode::Afap { depth: 1 }, &kept), None);
}

#[test]
fn a_trace_without_times_is_refused_where_they_are_needed() {
    use crate::script::ScriptOptions;
    use keepup_trace::{Hints, Trace};
    let text = "fio version 2 iolog\n/f add\n/f open\n/f read 0 4096\n/f close\n";
    let trace = Trace::from_bytes("old", text.into(), &Hints::default(), None).unwrap();
    let script =
        Script::load("old", trace, &ScriptOptions { block_bytes: 1, ..ScriptOptions::default() }).unwrap();
    for (mode, is_fine) in [
        (Mode::Timed { speed: 1.0 }, false),
        (Mode::Dep { speed: 1.0 }, false),
        (Mode::Afap { depth: 1 }, true),
        (Mode::Paced { rate: 1.0 }, true),
    ] {
        let found = mode.check(&script);
        assert_eq!(found.is_ok(), is_fine, "{found:?}");
    }
}

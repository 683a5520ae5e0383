//! Each stage is named exactly when its figures show it.
use super::*;

fn quiet() -> Evidence {
    let volume = VolumeEvidence { path: "/a".into(), full: 0.05, ..VolumeEvidence::default() };
    Evidence {
        rate: 1.2e9,
        durable_rate: 1e9,
        intakes: 1,
        intake_busy: 0.3,
        volumes: vec![volume],
        ..Evidence::default()
    }
}

fn stage(change: impl FnOnce(&mut Evidence)) -> Stage {
    let mut evidence = quiet();
    change(&mut evidence);
    limiting(&evidence).0
}

#[test]
fn names_each_stage_by_its_own_figures() {
    assert_eq!(stage(|_| {}), Stage::Source);
    assert_eq!(stage(|e| e.source_blocked = 0.8), Stage::Network);
    assert_eq!(stage(|e| e.intake_busy = 0.97), Stage::Recorder);
    assert_eq!(stage(|e| e.intake_starved = 0.6), Stage::Processor);
    assert_eq!(stage(|e| e.volumes[0].full = 0.9), Stage::Volume("/a".into()));
    assert_eq!(stage(|e| e.drain_behind = Some("slow".into())), Stage::Drain);
}

#[test]
fn a_failed_trial_without_clear_evidence_names_candidates() {
    let near = |failed: bool| {
        let mut evidence = quiet();
        let e = &mut evidence;
        (e.failed, e.volumes[0].full, e.source_blocked, e.intake_busy) = (failed, 0.3, 0.1, 0.1);
        limiting(&evidence)
    };
    let (stage, text) = near(true);
    assert_eq!(stage, Stage::Unresolved);
    assert_eq!(text, "candidates, with the share of their thresholds: volume /a (60 %), network (50 %)");
    assert_eq!(near(false).0, Stage::Source);
    let nothing = Evidence { failed: true, ..Evidence::default() };
    assert_eq!(limiting(&nothing).1, "no stage was near its threshold");
}

#[test]
fn a_full_queue_wins_over_what_follows_from_it() {
    let held = |e: &mut Evidence| {
        (e.volumes[0].full, e.pool_empty, e.source_blocked, e.intake_busy) = (0.95, 0.9, 0.9, 0.9);
    };
    assert_eq!(stage(held), Stage::Volume("/a".into()));
}

#[test]
fn a_starved_writer_is_not_blamed_on_its_volume() {
    assert_eq!(stage(|e| (e.volumes[0].full, e.volumes[0].writer_starved) = (0.9, 0.7)), Stage::Processor);
}

#[test]
fn the_fullest_of_several_volumes_is_named() {
    let slow = VolumeEvidence { path: "/slow".into(), full: 0.8, ..VolumeEvidence::default() };
    assert_eq!(stage(|e| e.volumes.push(slow)), Stage::Volume("/slow".into()));
}

#[test]
fn the_next_limit_is_proven_or_the_lowest_ceiling() {
    let ceilings = Ceilings {
        source_bytes_per_second: Some(3e9),
        network_bytes_per_second: Some(2e9),
        volumes: vec![keepup_results::VolumeCeiling { path: "/a".into(), bytes_per_second: Some(1e9) }],
        ..Ceilings::default()
    };
    let relieved = Evidence { rate: 1.9e9, source_blocked: 0.9, ..quiet() };
    let after_volume = next(&Stage::Volume("/a".into()), &ceilings, Some(&relieved), None).unwrap();
    assert_eq!((after_volume.stage.as_str(), after_volume.bytes_per_second), ("network", Some(1.9e9)));
    let after_network = next(&Stage::Network, &ceilings, None, None).unwrap();
    assert_eq!((after_network.stage.as_str(), after_network.bytes_per_second), ("volume /a", Some(1e9)));
}

fn stages(trials: &[Evidence]) -> Vec<Stage> {
    nominees(trials).into_iter().map(|nominee| nominee.stage).collect()
}

#[test]
fn a_next_limit_below_a_rate_that_held_is_not_resolved() {
    let relieved = Evidence { rate: 1.64e9, source_blocked: 0.9, ..quiet() };
    let volume = Stage::Volume("/a".into());
    let found = |held| next(&volume, &Ceilings::default(), Some(&relieved), held).unwrap();
    for held in [None, Some(1.5e9), Some(1.64e9)] {
        let limit = found(held);
        assert_eq!((limit.stage.as_str(), limit.bytes_per_second), ("network", Some(1.64e9)), "{held:?}");
    }
    let refuted = found(Some(1.92e9));
    assert_eq!((refuted.stage.as_str(), refuted.bytes_per_second), ("not resolved", None));
    assert!(
        refuted
            .evidence
            .starts_with("with blocks discarded instead of written the same path reached 1.64 GB/s")
    );
    assert!(refuted.evidence.ends_with("; that is less than 1.92 GB/s, which held"), "{refuted:?}");
    // A ceiling measured alone is no better.
    let ceilings = Ceilings { network_bytes_per_second: Some(1.7e9), ..Ceilings::default() };
    assert_eq!(next(&Stage::Source, &ceilings, None, Some(1.92e9)).unwrap().stage, "not resolved");
    // The two rates are compared in one unit.
    let ceilings = Ceilings { network_bytes_per_second: Some(950e6), ..Ceilings::default() };
    let below = next(&Stage::Source, &ceilings, None, Some(1.05e9)).unwrap();
    assert_eq!(
        below.evidence,
        "measured alone, network reached 0.95 GB/s; that is less than 1.05 GB/s, which held"
    );
}

#[test]
fn a_volume_is_not_the_next_limit_after_itself() {
    let volumes = vec![keepup_results::VolumeCeiling { path: "/a".into(), bytes_per_second: Some(1e9) }];
    let ceilings = Ceilings { network_bytes_per_second: Some(2e9), volumes, ..Ceilings::default() };
    let volume = Stage::Volume("/a".into());
    assert_eq!(next(&volume, &ceilings, None, None).unwrap().stage, "network");
}

#[test]
fn the_trial_that_shows_it_clearly_nominates() {
    let vague = Evidence { failed: true, ..quiet() };
    let clear = Evidence { failed: true, source_blocked: 0.6, asked: Some(2e9), ..quiet() };
    let named = nominees(&[vague.clone(), clear, quiet()]);
    assert_eq!((&named[0].stage, named[0].asked), (&Stage::Network, Some(2e9)));
    assert_eq!(named[1].stage, Stage::Recorder, "the next by its score");
    assert_eq!(stages(&[quiet()])[0], Stage::Source);
    assert_eq!(stages(&[Evidence { failed: true, ..Evidence::default() }]), []);
    assert_eq!(unresolved(&[Evidence::default()]), "no stage was near its threshold");
}

#[test]
fn a_nominee_has_its_share_of_the_threshold() {
    let clear = |evidence: &Evidence| -> Vec<(Stage, bool)> {
        let all = nominees(std::slice::from_ref(evidence)).into_iter();
        all.map(|nominee| (nominee.stage.clone(), nominee.is_clear())).collect()
    };
    let mut evidence = Evidence { failed: true, source_blocked: 0.1, intake_busy: 0.1, ..quiet() };
    evidence.volumes[0].full = 0.3;
    let volume = Stage::Volume("/a".into());
    assert_eq!(clear(&evidence), [(volume.clone(), false), (Stage::Network, false)]);
    evidence.volumes[0].full = 0.5;
    assert_eq!(clear(&evidence), [(volume, true), (Stage::Network, false)]);
    // A trial that did not fail names the source by the rule.
    assert_eq!(clear(&quiet())[0], (Stage::Source, true));
}

/// The candidates are those of the trial that nominated.
#[test]
fn candidates_are_the_stages_that_were_nominated() {
    let vague = Evidence { failed: true, ..Evidence::default() };
    let clear = Evidence { failed: true, source_blocked: 0.6, ..Evidence::default() };
    assert_eq!(
        unresolved(&[vague, clear]),
        "candidates, with the share of their thresholds: network (300 %)"
    );
}

#[test]
fn figures_of_a_sentence_have_one_unit() {
    let behind =
        Evidence { drain_behind: Some("the drain fell behind: 41.0 MB/s of 100.0 MB/s".into()), ..quiet() };
    let text = limiting(&behind).1;
    assert_eq!(text, "the drain fell behind: 41.0 MB/s of 100.0 MB/s; recording continued at 1200 MB/s");
    let lost = Evidence { failed: true, lost: true, asked: Some(0.7e9), pool_empty: 0.1, ..quiet() };
    let text = nominees(&[lost, Evidence { durable_rate: 1.1e9, ..quiet() }])[0].evidence.clone();
    assert!(text.starts_with("events were lost at 0.70 GB/s, while the path carried 1.10 GB/s"), "{text}");
}

#[test]
fn losses_far_below_the_unthrottled_rate_nominate_the_pool() {
    let lost = |asked: f64, pool_empty: f64| {
        let mut evidence = Evidence { failed: true, lost: true, asked: Some(asked), pool_empty, ..quiet() };
        evidence.volumes[0].full = 0.9;
        evidence
    };
    let named = |asked, pool_empty| stages(&[lost(asked, pool_empty), quiet()])[0].clone();
    assert_eq!(named(0.7e9, 0.1), Stage::Pool);
    assert_eq!(named(0.9e9, 0.1), Stage::Volume("/a".into()), "the throughput is missing");
    assert_eq!(named(0.7e9, 0.0), Stage::Volume("/a".into()), "the pool had blocks");
    let mut drained = lost(0.7e9, 0.1);
    drained.drain_behind = Some("slow".into());
    assert_eq!(stages(&[drained, quiet()])[0], Stage::Drain);
}

fn reducer(busy: f64, starved: f64) -> ReducerEvidence {
    ReducerEvidence { busy, cpu: busy - starved, starved }
}

#[test]
fn reduction_is_named_when_its_busiest_thread_is_saturated() {
    assert_eq!(stage(|e| e.reducers = vec![reducer(0.2, 0.0), reducer(0.95, 0.0)]), Stage::Reduction);
    assert_eq!(stage(|e| e.reducers = vec![reducer(0.7, 0.0)]), Stage::Source);
    assert_eq!(stage(|e| e.reducers = vec![reducer(0.95, 0.6)]), Stage::Processor);
    let held = |e: &mut Evidence| {
        // Blocks waiting for reduction are not attributed to the volume.
        (e.pool_empty, e.source_blocked, e.intake_busy) = (0.9, 0.9, 0.9);
        e.reducers = vec![reducer(0.98, 0.05)];
    };
    assert_eq!(stage(held), Stage::Reduction);
    let full = |e: &mut Evidence| (e.volumes[0].full, e.reducers) = (0.9, vec![reducer(0.98, 0.05)]);
    assert_eq!(stage(full), Stage::Volume("/a".into()));
    let mut evidence = quiet();
    held(&mut evidence);
    let text = limiting(&evidence).1;
    assert!(text.contains("of 1 threads that reduce the busiest was busy 98 %"), "{text}");
    let ceilings = Ceilings { network_bytes_per_second: Some(2e9), ..Ceilings::default() };
    assert_eq!(next(&Stage::Reduction, &ceilings, None, None).unwrap().stage, "network");
}

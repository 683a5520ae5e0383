//! Thousands of fleets with faults, and fleets of a thousand hosts.
use super::fault::Fault;
use super::scenario::{Flaws, Scenario};
use super::{MS, Part, World};
use crate::controller::{FleetEvent, PartEnd};
use crate::message::Role;

/// A run that has not ended by then hangs, ns.
const END: u64 = 60_000 * MS;

/// Runs a scenario; what was broken.
fn broken(scenario: Scenario) -> Vec<String> {
    let mut world = World::new(scenario);
    world.run(END);
    if std::env::var_os("KEEPUP_SIM_SEED").is_some() {
        world.trace();
    }
    let mut broken = std::mem::take(&mut world.oracle.broken);
    broken.extend(ended(&world));
    broken.extend(account(&world));
    broken
}

/// The run must be over in time, or all programs must have exited.
fn ended(world: &World) -> Option<String> {
    if world.is_over() {
        return None;
    }
    Some(format!("not over after {} s: {:?}", END / (1_000 * MS), world.reported.last()))
}

/// Every event of a source that was not killed is durable, or the source knows that it is not.
fn account(world: &World) -> Vec<String> {
    let mut broken = Vec::new();
    for (id, machine) in (0u32..).zip(&world.machines) {
        let Part::Source(source) = &machine.part else { continue };
        let index = id - world.scenario.recorders - world.scenario.spares;
        let first = index * world.scenario.streams_per_source;
        for (number, stream) in (first..).zip(&source.streams) {
            let durable = world.oracle.watermark(number);
            let is_left = world.scenario.must_keep_all() && stream.acknowledged < stream.emitted;
            if is_left || stream.acknowledged > durable.min(stream.emitted) {
                broken.push(format!("stream {number}: {stream:?}, {durable} durable"));
            }
        }
    }
    broken
}

/// Number of seeds; `KEEPUP_SIM_SEEDS` overrides it, and `KEEPUP_SIM_SEED` runs one.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match (number("KEEPUP_SIM_SEED"), number("KEEPUP_SIM_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(400),
    }
}

#[test]
fn fleets_with_faults_lose_nothing_that_was_acknowledged() {
    for seed in seeds() {
        let found = broken(Scenario::draw(seed));
        assert!(found.is_empty(), "KEEPUP_SIM_SEED={seed}: {found:?}");
    }
}

/// The scenarios reach what they are for.
#[test]
fn scenarios_have_losses_moves_and_pauses() {
    let mut counts = [0; 5];
    for seed in 0..400 {
        let mut world = World::new(Scenario::draw(seed));
        world.run(END);
        let has = |wanted: fn(&FleetEvent) -> bool| world.reported.iter().any(|(_, event)| wanted(event));
        let seen = [
            has(|event| matches!(event, FleetEvent::Lost { .. })),
            has(|event| matches!(event, FleetEvent::Moved { to: Some(_), .. })),
            has(|event| matches!(event, FleetEvent::Moved { to: None, .. })),
            has(|event| matches!(event, FleetEvent::Paused(_))),
            world.scenario.must_keep_all() && has(|event| matches!(event, FleetEvent::Moved { .. })),
        ];
        counts.iter_mut().zip(seen).for_each(|(count, seen)| *count += u32::from(seen));
    }
    assert!(counts.iter().all(|&count| count >= 10), "{counts:?}");
}

/// Messages of the controller per host: the same in large fleets, up to 5 % for each doubling.
#[test]
fn the_cost_of_a_host_does_not_grow_with_the_fleet() {
    let messages = [125, 250, 500, 1_000].map(|hosts| {
        let mut world = World::new(Scenario { seed: 9, ..quiet(hosts / 2, hosts / 2, 2) });
        world.run(END);
        assert!(world.is_over());
        world.controller_messages as f64 / f64::from(hosts) / (world.now as f64 / 1e9)
    });
    for pair in messages.windows(2) {
        assert!(pair[1] <= 1.05 * pair[0], "{messages:?}");
    }
}

/// First seed at which the oracle notices a flaw.
fn noticed(flaws: Flaws, word: &str) -> Option<u64> {
    (0..2_000).find(|&seed| {
        let found = broken(Scenario { flaws, ..Scenario::draw(seed) });
        found.iter().any(|broken| broken.contains(word))
    })
}

#[test]
fn recorders_without_lease_check_are_noticed() {
    let flaws = Flaws { no_lease_check: true, ..Flaws::default() };
    assert!(noticed(flaws, "two owners").is_some());
}

#[test]
fn streams_moved_within_the_lease_are_noticed() {
    let flaws = Flaws { early_move: true, ..Flaws::default() };
    assert!(noticed(flaws, "two owners").is_some());
}

#[test]
fn acknowledgements_before_the_disk_are_noticed() {
    let flaws = Flaws { early_acknowledgement: true, ..Flaws::default() };
    assert!(noticed(flaws, "durable").is_some());
}

/// A fleet without faults.
fn quiet(recorders: u32, sources: u32, streams_per_source: u32) -> Scenario {
    Scenario {
        recorders,
        spares: 0,
        sources,
        drains: 0,
        drain_ns: 0,
        streams_per_source,
        emit_ns: 2_000 * MS,
        burst_ns: 100 * MS,
        finish_ns: None,
        hurry_ns: None,
        loss: 0.0,
        repeats: 0.0,
        tail: 0.0,
        faults: Vec::new(),
        ..Scenario::draw(1)
    }
}

#[test]
fn everything_is_recorded_without_faults() {
    let mut world = World::new(quiet(3, 3, 8));
    world.run(END);
    assert!(world.is_over() && world.oracle.broken.is_empty());
    for machine in &world.machines {
        let Part::Source(source) = &machine.part else { continue };
        assert!(source.streams.iter().all(|stream| stream.emitted > 0));
        assert!(source.streams.iter().all(|stream| stream.acknowledged == stream.emitted));
    }
}

/// The streams of a killed recorder are recorded elsewhere within a second, with and without a spare.
#[test]
fn streams_of_a_lost_recorder_move_within_a_second() {
    for spares in [0, 1] {
        let faults = vec![(1_500 * MS, Fault::Kill(1, None, true))];
        let mut world = World::new(Scenario { spares, faults, ..quiet(3, 3, 8) });
        world.run(END);
        assert!(world.is_over() && world.oracle.broken.is_empty());
        let moved = world.reported.iter().find(|(_, event)| matches!(event, FleetEvent::Moved { .. }));
        let (time, FleetEvent::Moved { from, to, .. }) = moved.unwrap() else { unreachable!() };
        assert_eq!((*from, to.is_some()), (1, spares == 1));
        assert!((1_500 * MS..2_300 * MS).contains(time), "{time}");
        for machine in &world.machines {
            let Part::Source(source) = &machine.part else { continue };
            assert!(source.streams.iter().all(|stream| stream.acknowledged == stream.emitted));
        }
    }
}

/// A drain may take longer than the deadline for the end of a part, and the run may end without it.
#[test]
fn a_run_waits_for_drains_until_it_is_to_end_at_once() {
    for (hurry_ns, longest_ms) in [(None, 24_000), (Some(9_000 * MS), 9_500)] {
        let fleet = Scenario { drains: 1, drain_ns: 20_000 * MS, hurry_ns, ..quiet(2, 2, 4) };
        let mut world = World::new(fleet);
        world.run(END);
        assert!(world.is_over() && world.oracle.broken.is_empty());
        let ends = world.reported.iter().filter_map(|(_, event)| match event {
            FleetEvent::PartOver(_, end) => Some(end),
            _ => None,
        });
        assert!(ends.into_iter().all(|end| matches!(end, PartEnd::Finished(_))), "{:?}", world.reported);
        assert!((longest_ms - 2_000..longest_ms).contains(&(world.now / MS)), "{}", world.now / MS);
    }
}

/// A thousand hosts and a hundred thousand streams; one host in a hundred dies.
#[test]
fn a_thousand_hosts() {
    let mut rng = fastrand::Rng::with_seed(3);
    let hosts = 1_000;
    let faults =
        (0..10).map(|_| (rng.u64(500 * MS..2_500 * MS), Fault::Kill(rng.u32(0..hosts), None, rng.bool())));
    let faults = faults.collect();
    let mut world = World::new(Scenario { spares: 10, faults, ..quiet(490, 500, 200) });
    world.run(END);
    assert!(world.is_over() && world.oracle.broken.is_empty(), "{:?}", world.oracle.broken);
    assert!(account(&world).is_empty());
    let sources = world.machines.iter().filter(|machine| machine.role == Role::Source);
    let alive = sources.filter(|machine| machine.host.is_some());
    for machine in alive {
        let Part::Source(source) = &machine.part else { continue };
        assert!(source.streams.iter().all(|stream| stream.acknowledged == stream.emitted));
    }
}

//! Orders that a host follows, ignores or survives.
use std::net::SocketAddr;

use super::*;
use crate::placement::{Member, Update};

const MS: u64 = 1_000_000;

fn host() -> (Host, Vec<HostAction>) {
    let (mut host, mut out) = (Host::new(2, 77, Timing::recording(), 1_000 * MS), Vec::new());
    host.tick(1_000 * MS, &mut out);
    (host, out)
}

/// An answer of controller 5 to the host's latest heartbeat.
fn order(host: &Host, number: u64, goal: Goal) -> Order {
    Order {
        controller: 5,
        host: 2,
        incarnation: 77,
        number,
        echo_ns: host.heartbeat_sent_ns,
        received_ns: 9_000 * MS,
        sent_ns: 9_000 * MS,
        goal,
        epoch: 0,
        view: None,
    }
}

/// A view in which the host is the only recorder.
fn own_view(epoch: u64) -> View {
    View::new(4, epoch, &[Member { host: 2, address: SocketAddr::from(([10, 0, 0, 2], 7000)) }])
}

/// A host that runs since 1001 ms and has a view of epoch 1.
fn running() -> Host {
    let (mut host, mut out) = host();
    let now = 1_001 * MS;
    host.on_order(now, order(&host, 1, Goal::Prepare { run: 4, plan: "p".into() }), &mut out);
    assert!(out.contains(&HostAction::Prepare { run: 4, plan: "p".into() }));
    host.report(now, Done::Prepared { run: 4, address: None }, &mut out);
    let run = Goal::Run { run: 4, start_ns: 9_500 * MS };
    let with_view = Order { epoch: 1, view: Some(Update::Whole(own_view(1))), ..order(&host, 2, run) };
    host.on_order(now, with_view, &mut out);
    assert!(out.contains(&HostAction::Changed));
    // The clocks differ by 7999 ms: the order took no time.
    assert!(
        out.iter()
            .any(|action| matches!(action, HostAction::Start { run: 4, at_ns } if *at_ns == 1_501 * MS))
    );
    host
}

#[test]
fn events_are_taken_with_a_lease_and_a_view() {
    let mut host = running();
    let lease_ns = Timing::recording().lease_of_host_ns();
    assert!(host.may_take(9, 1_001 * MS + lease_ns - 1));
    assert!(!host.may_take(9, 1_001 * MS + lease_ns));
    // An order renews the lease from the heartbeat that it answers.
    let mut out = Vec::new();
    host.tick(1_200 * MS, &mut out);
    let run = Goal::Run { run: 4, start_ns: 9_500 * MS };
    host.on_order(1_300 * MS, Order { epoch: 1, ..order(&host, 3, run) }, &mut out);
    assert!(host.may_take(9, 1_200 * MS + lease_ns - 1));
    assert!(!host.may_take(9, 1_200 * MS + lease_ns));
}

#[test]
fn an_order_of_a_newer_view_renews_no_lease_without_it() {
    let mut host = running();
    let mut out = Vec::new();
    host.tick(1_200 * MS, &mut out);
    let run = Goal::Run { run: 4, start_ns: 9_500 * MS };
    host.on_order(1_201 * MS, Order { epoch: 2, ..order(&host, 3, run) }, &mut out);
    assert!(!host.has_lease(1_001 * MS + Timing::recording().lease_of_host_ns()));
}

#[test]
fn old_foreign_and_forged_orders_change_nothing() {
    let host = running();
    let finish = |number| order(&host, number, Goal::Finish { run: 4, at_once: false });
    let ignored = [
        finish(2),
        Order { host: 3, ..finish(9) },
        Order { incarnation: 78, ..finish(9) },
        Order { echo_ns: host.heartbeat_sent_ns + 1, ..finish(9) },
    ];
    for order in ignored {
        let (mut host, mut out) = (host.clone(), Vec::new());
        host.on_order(1_002 * MS, order, &mut out);
        assert_eq!((out, host.state()), (vec![], &HostState::Running { run: 4 }));
    }
}

#[test]
fn another_controller_ends_the_part() {
    let (mut host, mut out) = (running(), Vec::new());
    host.on_order(1_002 * MS, Order { controller: 6, ..order(&host, 1, Goal::Idle) }, &mut out);
    assert_eq!(out, [HostAction::Finish { run: 4, at_once: true }]);
    assert!(!host.may_take(9, 1_002 * MS));
    host.report(1_003 * MS, Done::Finished { run: 4, outcome: "o".into() }, &mut out);
    assert!(matches!(out.last(), Some(HostAction::Exit { why }) if why.contains("another controller")));
}

#[test]
fn a_host_without_orders_ends_its_part_and_exits() {
    let (mut host, mut out) = (running(), Vec::new());
    host.tick(6_000 * MS, &mut out);
    assert!(!out.contains(&HostAction::Finish { run: 4, at_once: true }));
    host.tick(6_001 * MS, &mut out);
    assert!(out.contains(&HostAction::Finish { run: 4, at_once: true }));
    host.report(6_002 * MS, Done::Failed { run: 4, why: "disk".into() }, &mut out);
    assert!(matches!(out.last(), Some(HostAction::Exit { .. })));
    // An idle one exits at once.
    let (mut host, mut out) = self::host();
    host.tick(6_000 * MS, &mut out);
    assert!(out.iter().any(|action| matches!(action, HostAction::Exit { .. })));
}

#[test]
fn an_end_may_become_urgent() {
    let (mut host, mut out) = (running(), Vec::new());
    for (number, at_once) in [(3, false), (4, false), (5, true), (6, true), (7, false)] {
        let order = order(&host, number, Goal::Finish { run: 4, at_once });
        host.on_order((1_000 + number) * MS, order, &mut out);
    }
    out.retain(|action| matches!(action, HostAction::Finish { .. }));
    assert_eq!(out, [false, true].map(|at_once| HostAction::Finish { run: 4, at_once }));
}

#[test]
fn a_host_in_another_run_ends_that_first() {
    let (mut host, mut out) = (running(), Vec::new());
    let prepare = || Goal::Prepare { run: 5, plan: "q".into() };
    host.on_order(1_002 * MS, order(&host, 3, prepare()), &mut out);
    assert_eq!(out[0], HostAction::Finish { run: 4, at_once: true });
    host.report(1_003 * MS, Done::Finished { run: 4, outcome: String::new() }, &mut out);
    host.on_order(1_004 * MS, order(&host, 4, prepare()), &mut out);
    assert!(out.contains(&HostAction::Prepare { run: 5, plan: "q".into() }));
}

#[test]
fn reports_of_other_runs_and_states_are_ignored() {
    let (mut host, mut out) = (running(), Vec::new());
    host.report(1_002 * MS, Done::Prepared { run: 4, address: None }, &mut out);
    host.report(1_002 * MS, Done::Finished { run: 3, outcome: String::new() }, &mut out);
    assert_eq!((out, host.state()), (vec![], &HostState::Running { run: 4 }));
}

#[test]
fn a_host_that_ends_its_part_accepts_nothing_and_says_so() {
    let mut host = running();
    assert!(host.accepts_until_ns() > 1_001 * MS);
    let mut out = Vec::new();
    host.report(1_100 * MS, Done::Ending { run: 3 }, &mut out);
    assert!(out.is_empty() && matches!(host.state(), HostState::Running { run: 4 }));
    host.report(1_100 * MS, Done::Ending { run: 4 }, &mut out);
    assert_eq!(host.state(), &HostState::Finishing { run: 4 });
    assert!(matches!(out[..], [HostAction::Send(_)]));
    assert_eq!(host.accepts_until_ns(), 0);
    host.report(1_200 * MS, Done::Finished { run: 4, outcome: "o".into() }, &mut out);
    assert!(matches!(host.state(), HostState::Finished { .. }));
}

/// Heartbeats of a host that ticks until `to_ms`; whether each has the health.
fn healths(host: &mut Host, from_ms: u64, to_ms: u64) -> Vec<bool> {
    let mut out = Vec::new();
    for now in (from_ms..to_ms).map(|ms| ms * MS) {
        if host.wants_health(now) {
            host.set_health(now, Some(Health::default()));
        }
        host.tick(now, &mut out);
    }
    let beats = out.into_iter().filter_map(|action| match action {
        HostAction::Send(heartbeat) => Some(heartbeat.health.is_some()),
        _ => None,
    });
    beats.collect()
}

#[test]
fn one_heartbeat_per_second_has_the_health() {
    let mut host = running();
    let found = healths(&mut host, 1_100, 4_100);
    // Every 150 ms: the seventh one is the first after a second.
    assert_eq!(found.len(), 20);
    let with: Vec<usize> = (0..20).filter(|&at| found[at]).collect();
    assert_eq!(with, [0, 7, 14]);
}

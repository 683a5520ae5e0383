//! Members, phases and refusals.
use std::net::SocketAddr;

use super::*;
use crate::message::{Counters, HostState};

const MS: u64 = 1_000_000;
/// The drain host joins only where a test says so.
const ROLES: [Role; 5] = [Role::Recorder, Role::Recorder, Role::Spare, Role::Source, Role::Drain];

/// A controller with a heartbeat number for each host.
struct Fleet {
    controller: Controller,
    heartbeats: [u64; 5],
    /// Health of the next heartbeat.
    health: Option<Health>,
    /// Counters of heartbeats.
    counters: Counters,
    out: Vec<Action>,
}

impl Fleet {
    fn new() -> Self {
        let controller = Controller::new(5, Timing::recording(), &ROLES, 0);
        Self { controller, heartbeats: [0; 5], health: None, counters: Counters::default(), out: Vec::new() }
    }

    /// All hosts are members.
    fn joined() -> Self {
        let mut fleet = Self::new();
        (0..4).for_each(|host| fleet.heartbeat(10, host, HostState::Idle));
        fleet.out.clear();
        fleet
    }

    /// Recording 3 runs since 30 ms.
    fn running() -> Self {
        Self::running_as(RunKind::Recording)
    }

    fn running_as(kind: RunKind) -> Self {
        let mut fleet = Self::joined();
        let plans = (0..4).map(|host| Some(format!("plan {host}"))).collect();
        fleet.controller.start_run(20 * MS, (3, kind), plans, &mut fleet.out).unwrap();
        for host in 0..4 {
            let address = Some(SocketAddr::from(([10, 0, 0, host as u8], 7000)));
            fleet.heartbeat(30, host, HostState::Ready { run: 3, address });
        }
        (0..4).for_each(|host| fleet.heartbeat(31, host, HostState::Running { run: 3 }));
        assert_eq!(fleet.controller.phase(), Some(Phase::Running));
        fleet.out.clear();
        fleet
    }

    fn heartbeat(&mut self, ms: u64, host: HostId, state: HostState) {
        self.heartbeat_as(ms, host, 100 + u64::from(host), state);
    }

    fn heartbeat_as(&mut self, ms: u64, host: HostId, incarnation: u64, state: HostState) {
        self.heartbeats[host as usize] += 1;
        let heartbeat = Heartbeat {
            version: VERSION,
            host,
            incarnation,
            number: self.heartbeats[host as usize],
            sent_ns: ms * MS,
            state,
            epoch: self.controller.view().epoch,
            clock: None,
            counters: self.counters,
            health: self.health.take().map(Box::new),
        };
        self.controller.on_heartbeat(ms * MS, heartbeat, &mut self.out);
    }

    /// Time passes; hosts other than `silent` heartbeat.
    fn pass(&mut self, from_ms: u64, to_ms: u64, silent: HostId) {
        for ms in (from_ms..to_ms).step_by(75) {
            for host in (0..4).filter(|&host| host != silent) {
                if self.controller.heartbeat_of(host).is_some() {
                    self.heartbeat(ms, host, HostState::Running { run: 3 });
                }
            }
            self.controller.tick(ms * MS, &mut self.out);
        }
    }

    fn reported(&self) -> Vec<&FleetEvent> {
        let events = self.out.iter().filter_map(|action| match action {
            Action::Report(event) => Some(event),
            Action::Send(_) => None,
        });
        events.collect()
    }

    /// The latest goal of a host.
    fn goal(&self, host: HostId) -> Option<&Goal> {
        self.out.iter().rev().find_map(|action| match action {
            Action::Send(order) if order.host == host => Some(&order.goal),
            _ => None,
        })
    }
}

#[test]
fn a_run_goes_through_its_phases() {
    let mut fleet = Fleet::running();
    fleet.heartbeat(50, 3, HostState::Finished { run: 3, outcome: "sent".into() });
    assert_eq!(fleet.controller.phase(), Some(Phase::FinishingRecorders));
    assert_eq!(fleet.goal(0), Some(&Goal::Finish { run: 3, at_once: false }));
    for host in 0..3 {
        fleet.heartbeat(60, host, HostState::Finished { run: 3, outcome: "recorded".into() });
    }
    assert_eq!(fleet.controller.phase(), None);
    assert!(fleet.reported().contains(&&FleetEvent::Over { run: 3, why: None }));
    assert_eq!(fleet.goal(0), Some(&Goal::Idle));
}

#[test]
fn a_spare_takes_the_slot_of_a_recorder_after_its_lease() {
    let mut fleet = Fleet::running();
    fleet.pass(75, 600, 0);
    assert!(fleet.controller.view().has(0));
    fleet.pass(600, 750, 0);
    let moved = FleetEvent::Moved { from: 0, to: Some(2), epoch: 2 };
    assert!(fleet.reported().contains(&&moved), "{:?}", fleet.reported());
    // Its own connection is back, but not its part.
    fleet.heartbeat(760, 0, HostState::Running { run: 3 });
    assert_eq!(fleet.goal(0), Some(&Goal::Finish { run: 3, at_once: true }));
    // The next loss is spread over the others.
    fleet.pass(775, 1_500, 1);
    let moved = FleetEvent::Moved { from: 1, to: None, epoch: 3 };
    assert!(fleet.reported().contains(&&moved), "{:?}", fleet.reported());
}

#[test]
fn a_recorder_that_failed_is_replaced_at_once() {
    let mut fleet = Fleet::running();
    fleet.heartbeat(40, 1, HostState::Failed { run: 3, why: "disk".into() });
    let reported = fleet.reported();
    assert!(reported.contains(&&FleetEvent::PartOver(1, PartEnd::Failed("disk".into()))));
    assert!(reported.contains(&&FleetEvent::Moved { from: 1, to: Some(2), epoch: 2 }));
}

#[test]
fn a_host_that_ends_its_part_of_a_trial_unasked_has_no_result() {
    let mut fleet = Fleet::running_as(RunKind::Trial);
    let finished = || HostState::Finished { run: 3, outcome: "recorded".into() };
    fleet.heartbeat(40, 1, HostState::Finishing { run: 3 });
    fleet.heartbeat(41, 1, finished());
    fleet.controller.finish(42 * MS, &mut fleet.out);
    fleet.heartbeat(43, 0, HostState::Finishing { run: 3 });
    fleet.heartbeat(44, 0, finished());
    let ends: Vec<_> =
        fleet.reported().into_iter().filter(|e| matches!(e, FleetEvent::PartOver(..))).collect();
    let early = PartEnd::Failed("its agent was asked to end".into());
    let early = FleetEvent::PartOver(1, early);
    assert_eq!(ends, [&early, &FleetEvent::PartOver(0, PartEnd::Finished("recorded".into()))]);
}

#[test]
fn without_a_recorder_the_run_ends() {
    let mut fleet = Fleet::running();
    for host in 0..3 {
        fleet.heartbeat(40, host, HostState::Failed { run: 3, why: "disk".into() });
    }
    assert_eq!(fleet.goal(3), Some(&Goal::Finish { run: 3, at_once: false }));
    fleet.heartbeat(50, 3, HostState::Finished { run: 3, outcome: "o".into() });
    let why = Some("no recorder is left".to_owned());
    assert!(fleet.reported().contains(&&FleetEvent::Over { run: 3, why }));
}

#[test]
fn hosts_that_are_not_ready_in_time_are_left_out() {
    let mut fleet = Fleet::joined();
    fleet
        .controller
        .start_run(20 * MS, (3, RunKind::Recording), vec![Some(String::new()); 4], &mut fleet.out)
        .unwrap();
    let busy = fleet.controller.start_run(20 * MS, (4, RunKind::Recording), Vec::new(), &mut fleet.out);
    assert_eq!(busy, Err(StartError::Busy(3)));
    let address = Some(SocketAddr::from(([10, 0, 0, 1], 7000)));
    let mut ms = 75;
    while fleet.controller.phase() == Some(Phase::Preparing) {
        for host in 0..4 {
            let is_ready = host == 1 || host == 3;
            let ready = HostState::Ready { run: 3, address };
            fleet.heartbeat(ms, host, if is_ready { ready } else { HostState::Preparing { run: 3 } });
        }
        fleet.controller.tick(ms * MS, &mut fleet.out);
        ms += 75;
    }
    assert!((20_000..20_200).contains(&ms), "{ms}");
    let late = FleetEvent::PartOver(0, PartEnd::TimedOut(Phase::Preparing));
    assert!(fleet.reported().contains(&&late));
    assert_eq!(fleet.controller.phase(), Some(Phase::Running));
    assert!(fleet.controller.view().recorders() == 1 && fleet.controller.view().has(1));
}

#[test]
fn a_restarted_host_waits_for_the_lease_of_the_earlier_program() {
    let mut fleet = Fleet::running();
    fleet.heartbeat_as(50, 0, 999, HostState::Idle);
    assert_eq!(fleet.controller.heartbeat_of(0).unwrap().incarnation, 100);
    fleet.pass(75, 750, 0);
    assert!(fleet.controller.heartbeat_of(0).is_none());
    fleet.heartbeat_as(760, 0, 999, HostState::Idle);
    assert_eq!(
        (fleet.controller.heartbeat_of(0).unwrap().incarnation, fleet.goal(0)),
        (999, Some(&Goal::Idle))
    );
    // A late heartbeat of the earlier program.
    fleet.heartbeat(761, 0, HostState::Running { run: 3 });
    assert_eq!(fleet.controller.heartbeat_of(0).unwrap().incarnation, 999);
}

#[test]
fn a_pause_of_the_controller_costs_nobody_the_lease() {
    let mut fleet = Fleet::running();
    fleet.controller.tick(5_000 * MS, &mut fleet.out);
    assert_eq!(fleet.controller.members(), 4);
    assert!(fleet.reported().contains(&&FleetEvent::Paused(4_969 * MS)), "{:?}", fleet.reported());
}

/// No stream could go anywhere, and the recorders have paused by themselves. TCP reaches the hosts one after
/// another when the link is back.
#[test]
fn a_controller_that_is_cut_off_for_less_than_the_orphan_time_ends_nothing() {
    let mut fleet = Fleet::running();
    let running = HostState::Running { run: 3 };
    (0..4).for_each(|host| fleet.heartbeat(40 + 30 * u64::from(host), host, running.clone()));
    fleet.out.clear();
    let back = [3_500, 2_100, 2_000, 1_950];
    for ms in (150..4_000).step_by(75) {
        fleet.controller.tick(ms * MS, &mut fleet.out);
        for host in (0..4).filter(|&host: &u32| back[host as usize] <= ms + 75) {
            fleet.heartbeat(ms + 75, host, running.clone());
        }
    }
    assert!(matches!(fleet.reported()[..], [FleetEvent::Silent(_)]), "{:?}", fleet.reported());
    assert!(matches!(fleet.goal(0), Some(Goal::Run { run: 3, .. })), "{:?}", fleet.goal(0));
    assert_eq!((fleet.controller.view().epoch, fleet.controller.is_silent()), (1, false));
    // A recorder that is lost now is lost as any other.
    fleet.pass(4_050, 4_750, 0);
    let moved = FleetEvent::Moved { from: 0, to: Some(2), epoch: 2 };
    assert!(fleet.reported().contains(&&moved), "{:?}", fleet.reported());
}

/// It is lost after the time that a host behind the same link has to come back.
#[test]
fn a_host_that_does_not_come_back_after_the_cut_is_lost() {
    let mut fleet = Fleet::running();
    (75..2_000).step_by(75).for_each(|ms| fleet.controller.tick(ms * MS, &mut fleet.out));
    (1..4).for_each(|host| fleet.heartbeat(2_000, host, HostState::Running { run: 3 }));
    fleet.pass(2_050, 3_900, 0);
    assert!(fleet.controller.heartbeat_of(0).is_some());
    fleet.pass(3_900, 5_000, 0);
    let moved = FleetEvent::Moved { from: 0, to: Some(2), epoch: 2 };
    assert!(fleet.reported().contains(&&moved), "{:?}", fleet.reported());
}

#[test]
fn deadlines_stand_still_while_no_host_is_heard() {
    let mut fleet = Fleet::joined();
    let plans = (0..4).map(|host| Some(format!("plan {host}"))).collect();
    let timing = Timing { prepare_ns: 1_500 * MS, ..Timing::recording() };
    fleet.controller.timing = timing;
    fleet.controller.start_run(20 * MS, (3, RunKind::Recording), plans, &mut fleet.out).unwrap();
    (75..3_000).step_by(75).for_each(|ms| fleet.controller.tick(ms * MS, &mut fleet.out));
    assert_eq!(fleet.controller.phase(), Some(Phase::Preparing));
    (0..4).for_each(|host| fleet.heartbeat(3_000, host, HostState::Preparing { run: 3 }));
    fleet.pass(3_050, 4_500, 9);
    assert!(!fleet.reported().iter().any(|event| matches!(event, FleetEvent::Lost { .. })));
    assert_ne!(fleet.controller.phase(), Some(Phase::Preparing));
}

#[test]
fn hosts_that_are_not_heard_again_are_lost_after_the_orphan_time() {
    let mut fleet = Fleet::running();
    // This one is known to be gone.
    fleet.controller.on_closed(32 * MS, 0, &mut fleet.out);
    (75..5_000).step_by(75).for_each(|ms| fleet.controller.tick(ms * MS, &mut fleet.out));
    assert_eq!(fleet.controller.members(), 3);
    (5_000..5_200).step_by(75).for_each(|ms| fleet.controller.tick(ms * MS, &mut fleet.out));
    assert_eq!(fleet.controller.members(), 0);
}

#[test]
fn strangers_are_refused() {
    let mut fleet = Fleet::joined();
    let stranger = Heartbeat { host: 9, ..fleet.controller.heartbeat_of(0).unwrap().clone() };
    fleet.controller.on_heartbeat(20 * MS, stranger, &mut fleet.out);
    let other =
        Heartbeat { version: VERSION + 1, number: 9, ..fleet.controller.heartbeat_of(0).unwrap().clone() };
    fleet.controller.on_heartbeat(20 * MS, other, &mut fleet.out);
    assert!(matches!(
        fleet.reported()[..],
        [FleetEvent::Refused { host: 9, .. }, FleetEvent::Refused { host: 0, .. }]
    ));
    assert!(matches!(fleet.goal(0), Some(Goal::Leave { .. })));
}

#[test]
fn changes_of_the_view_are_sent_until_a_host_has_them() {
    let mut fleet = Fleet::running();
    fleet.heartbeat(40, 1, HostState::Failed { run: 3, why: "disk".into() });
    let since = |epoch| fleet.controller.update_since(epoch);
    assert_eq!(since(2), None);
    assert!(matches!(since(1), Some(Update::Changes { from: 1, changes, .. }) if changes.len() == 1));
    assert!(matches!(since(0), Some(Update::Whole(view)) if view.epoch == 2));
    assert!(matches!(since(9), Some(Update::Whole(_))));
}

#[test]
fn streams_of_a_recorder_that_ends_move_before_its_result_arrives() {
    let mut fleet = Fleet::running();
    fleet.heartbeat(40, 1, HostState::Finishing { run: 3 });
    let moved = FleetEvent::Moved { from: 1, to: Some(2), epoch: 2 };
    assert!(fleet.reported().contains(&&moved));
    fleet.heartbeat(50, 1, HostState::Finished { run: 3, outcome: "o".into() });
    let over = FleetEvent::PartOver(1, PartEnd::Finished("o".into()));
    assert!(fleet.reported().contains(&&over) && fleet.controller.view().epoch == 2);
}

#[test]
fn a_trial_ends_with_its_recorders_and_moves_no_stream() {
    let mut fleet = Fleet::running_as(RunKind::Trial);
    fleet.heartbeat(40, 0, HostState::Failed { run: 3, why: "disk".into() });
    fleet.heartbeat(50, 1, HostState::Finished { run: 3, outcome: "o".into() });
    assert_eq!((fleet.controller.phase(), fleet.controller.view().epoch), (Some(Phase::Running), 1));
    fleet.heartbeat(60, 2, HostState::Finished { run: 3, outcome: "spare".into() });
    assert_eq!(fleet.controller.phase(), Some(Phase::FinishingSources));
    assert_eq!(fleet.goal(3), Some(&Goal::Finish { run: 3, at_once: false }));
    fleet.heartbeat(70, 3, HostState::Finished { run: 3, outcome: "o".into() });
    assert!(fleet.reported().contains(&&FleetEvent::Over { run: 3, why: None }));
}

#[test]
fn commands_run_on_hosts_of_any_role_and_end_with_the_last() {
    let mut fleet = Fleet::joined();
    let plans = (0..4).map(|host| [2, 3].contains(&host).then(|| "plan".to_owned())).collect();
    fleet.controller.start_run(20 * MS, (3, RunKind::Commands), plans, &mut fleet.out).unwrap();
    for host in [2, 3] {
        fleet.heartbeat(30, host, HostState::Ready { run: 3, address: None });
    }
    assert_eq!(fleet.controller.phase(), Some(Phase::Running));
    assert!(matches!(fleet.goal(3), Some(Goal::Run { run: 3, .. })));
    fleet.heartbeat(40, 2, HostState::Finished { run: 3, outcome: "o".into() });
    assert_eq!(fleet.controller.phase(), Some(Phase::Running));
    fleet.heartbeat(50, 3, HostState::Failed { run: 3, why: "disk".into() });
    assert!(fleet.reported().contains(&&FleetEvent::Over { run: 3, why: None }));
}

#[test]
fn a_command_that_ends_while_it_prepares_ends_its_run_at_once() {
    let mut fleet = Fleet::joined();
    let plans = vec![None, None, None, Some("plan".to_owned())];
    fleet.controller.start_run(20 * MS, (3, RunKind::Commands), plans, &mut fleet.out).unwrap();
    fleet.heartbeat(30, 3, HostState::Preparing { run: 3 });
    fleet.heartbeat(31, 3, HostState::Finished { run: 3, outcome: "part".into() });
    assert!(fleet.reported().contains(&&FleetEvent::Over { run: 3, why: None }));
}

#[test]
fn commands_that_are_ended_early_are_ended_on_sources_too() {
    let mut fleet = Fleet::joined();
    let plans = vec![None, None, None, Some("plan".to_owned())];
    fleet.controller.start_run(20 * MS, (3, RunKind::Commands), plans, &mut fleet.out).unwrap();
    fleet.heartbeat(30, 3, HostState::Ready { run: 3, address: None });
    fleet.heartbeat(31, 3, HostState::Running { run: 3 });
    fleet.controller.finish(40 * MS, &mut fleet.out);
    assert_eq!(fleet.goal(3), Some(&Goal::Finish { run: 3, at_once: false }));
    fleet.heartbeat(50, 3, HostState::Finished { run: 3, outcome: "o".into() });
    assert!(fleet.reported().contains(&&FleetEvent::Over { run: 3, why: None }));
}

#[test]
fn a_trial_that_is_ended_early_ends_recorders_before_sources() {
    let mut fleet = Fleet::running_as(RunKind::Trial);
    fleet.controller.finish(40 * MS, &mut fleet.out);
    assert_eq!(fleet.goal(0), Some(&Goal::Finish { run: 3, at_once: false }));
    assert!(matches!(fleet.goal(3), Some(Goal::Run { run: 3, .. })));
}

#[test]
fn a_recording_without_source_hosts_lasts_until_its_recorders_end() {
    let mut fleet = Fleet::joined();
    let plans = (0..4).map(|host| (host < 3).then(|| "plan".to_owned())).collect();
    fleet.controller.start_run(20 * MS, (3, RunKind::Recording), plans, &mut fleet.out).unwrap();
    for host in 0..3 {
        let address = Some(SocketAddr::from(([10, 0, 0, host as u8], 7000)));
        fleet.heartbeat(30, host, HostState::Ready { run: 3, address });
    }
    (0..3).for_each(|host| fleet.heartbeat(31, host, HostState::Running { run: 3 }));
    assert_eq!(fleet.controller.phase(), Some(Phase::Running));
    fleet.heartbeat(40, 0, HostState::Failed { run: 3, why: "disk".into() });
    assert!(fleet.reported().contains(&&FleetEvent::Moved { from: 0, to: Some(2), epoch: 2 }));
    assert_eq!(fleet.controller.phase(), Some(Phase::Running));
    fleet.controller.finish(50 * MS, &mut fleet.out);
    assert_eq!(fleet.controller.phase(), Some(Phase::FinishingRecorders));
    for host in 1..3 {
        fleet.heartbeat(60, host, HostState::Finished { run: 3, outcome: "o".into() });
    }
    assert!(fleet.reported().contains(&&FleetEvent::Over { run: 3, why: None }));
}

/// A recording with a drain host, in which clients have ended.
fn draining() -> Fleet {
    let mut fleet = Fleet::joined();
    fleet.heartbeat(10, 4, HostState::Idle);
    let plans = (0..5).map(|host| (host != 3).then(|| "plan".to_owned())).collect();
    fleet.controller.start_run(20 * MS, (3, RunKind::Recording), plans, &mut fleet.out).unwrap();
    for host in [0, 1, 2, 4] {
        let address = Some(SocketAddr::from(([10, 0, 0, host as u8], 7000)));
        fleet.heartbeat(30, host, HostState::Ready { run: 3, address });
        fleet.heartbeat(31, host, HostState::Running { run: 3 });
    }
    assert_eq!(fleet.controller.phase(), Some(Phase::Running));
    fleet.controller.finish(40 * MS, &mut fleet.out);
    assert_eq!(fleet.controller.phase(), Some(Phase::FinishingRecorders));
    fleet
}

#[test]
fn drain_hosts_end_after_the_recorders() {
    let mut fleet = draining();
    assert_eq!(fleet.goal(0), Some(&Goal::Finish { run: 3, at_once: false }));
    assert!(matches!(fleet.goal(4), Some(Goal::Run { run: 3, .. })));
    (0..3).for_each(|host| fleet.heartbeat(50, host, HostState::Finished { run: 3, outcome: "o".into() }));
    assert_eq!(fleet.controller.phase(), Some(Phase::FinishingDrains));
    assert_eq!(fleet.goal(4), Some(&Goal::Finish { run: 3, at_once: false }));
    fleet.heartbeat(60, 4, HostState::Finished { run: 3, outcome: "o".into() });
    assert!(fleet.reported().contains(&&FleetEvent::Over { run: 3, why: None }));
}

#[test]
fn a_lost_drain_host_does_not_end_a_recording() {
    let mut fleet = Fleet::joined();
    fleet.heartbeat(10, 4, HostState::Idle);
    let plans = (0..5).map(|_| Some("plan".to_owned())).collect();
    fleet.controller.start_run(20 * MS, (3, RunKind::Recording), plans, &mut fleet.out).unwrap();
    for host in 0..5 {
        let address = Some(SocketAddr::from(([10, 0, 0, host as u8], 7000)));
        fleet.heartbeat(30, host, HostState::Ready { run: 3, address });
        fleet.heartbeat(31, host, HostState::Running { run: 3 });
    }
    fleet.heartbeat(40, 4, HostState::Failed { run: 3, why: "disk".into() });
    assert_eq!(fleet.controller.phase(), Some(Phase::Running));
    assert!(!fleet.reported().iter().any(|event| matches!(event, FleetEvent::Moved { .. })));
}

#[test]
fn a_recorder_may_drain_for_as_long_as_it_proceeds() {
    let mut fleet = draining();
    let finish_ms = Timing::recording().finish_ns / MS;
    (1..3).for_each(|host| fleet.heartbeat(50, host, HostState::Finished { run: 3, outcome: "o".into() }));
    let mut at_ms = 50;
    let pass = |fleet: &mut Fleet, at_ms: &mut u64, gains: u64| {
        for _ in 0..2 * finish_ms / 75 {
            *at_ms += 75;
            fleet.counters.drained_bytes += gains;
            fleet.heartbeat(*at_ms, 0, HostState::Finishing { run: 3 });
            fleet.heartbeat(*at_ms, 4, HostState::Running { run: 3 });
            fleet.controller.tick(*at_ms * MS, &mut fleet.out);
        }
    };
    pass(&mut fleet, &mut at_ms, 1);
    assert_eq!(fleet.controller.phase(), Some(Phase::FinishingRecorders));
    pass(&mut fleet, &mut at_ms, 0);
    let timed_out = FleetEvent::PartOver(0, PartEnd::TimedOut(Phase::FinishingRecorders));
    assert!(fleet.reported().contains(&&timed_out), "{:?}", fleet.reported());
}

#[test]
fn the_second_end_of_a_recording_does_not_wait_for_drains() {
    let mut fleet = draining();
    fleet.controller.finish(60 * MS, &mut fleet.out);
    assert_eq!(fleet.goal(0), Some(&Goal::Finish { run: 3, at_once: true }));
}

#[test]
fn heartbeats_of_others_do_not_delay_the_end_of_a_lease() {
    let mut fleet = Fleet::running();
    for ms in (40..800).step_by(20) {
        // One of them every 20 ms: less than the time between two ticks.
        let host = 1 + (ms / 20 % 3) as HostId;
        fleet.heartbeat(ms, host, HostState::Running { run: 3 });
        if ms * MS >= fleet.controller.next_ns() {
            fleet.controller.tick(ms * MS, &mut fleet.out);
        }
    }
    let lost = |event: &&FleetEvent| matches!(event, FleetEvent::Lost { host: 0, .. });
    assert!(fleet.reported().iter().any(lost), "{:?}", fleet.reported());
}

#[test]
fn the_health_stays_until_the_next_one_or_another_run() {
    let mut fleet = Fleet::running();
    let health = |fleet: &Fleet| {
        let report = fleet.controller.report_of(1).unwrap();
        report.health.map(|(sent_ns, health)| (*sent_ns, health.durable_bytes))
    };
    fleet.health = Some(Health { durable_bytes: 9, ..Health::default() });
    fleet.heartbeat(100, 1, HostState::Running { run: 3 });
    fleet.heartbeat(200, 1, HostState::Running { run: 3 });
    assert_eq!(health(&fleet), Some((100 * MS, 9)));
    fleet.heartbeat(300, 1, HostState::Idle);
    assert_eq!(health(&fleet), None);
}

#[test]
fn the_health_of_a_host_is_limited_on_receipt() {
    let mut fleet = Fleet::running();
    fleet.health = Some(Health {
        missing: (0..9_000).map(|at| (format!("{at:05}\n{}", "x".repeat(2_000)), at)).collect(),
        volumes: vec![Default::default(); 9_000],
        warnings: vec!["y".repeat(10_000); 900],
        ..Health::default()
    });
    fleet.heartbeat(100, 1, HostState::Running { run: 3 });
    let (_, kept) = fleet.controller.report_of(1).unwrap().health.unwrap();
    assert_eq!((kept.missing.len(), kept.volumes.len(), kept.warnings.len()), (16, 64, 16));
    assert!(kept.volumes.capacity() <= 64 && kept.warnings.capacity() <= 16);
    assert!(kept.warnings.iter().chain(kept.missing.keys()).all(|text| text.chars().count() < 1_100));
    assert!(kept.missing.keys().all(|cause| !cause.contains('\n')));
}

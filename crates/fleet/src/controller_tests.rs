//! Members, phases and refusals.
use std::net::SocketAddr;

use super::*;
use crate::message::{Counters, HostState};

const MS: u64 = 1_000_000;
const ROLES: [Role; 4] = [Role::Recorder, Role::Recorder, Role::Spare, Role::Source];

/// A controller with a beat number for each host.
struct Fleet {
    controller: Controller,
    beats: [u64; 4],
    out: Vec<Action>,
}

impl Fleet {
    fn new() -> Self {
        let controller = Controller::new(5, Timing::recording(), &ROLES, 0);
        Self { controller, beats: [0; 4], out: Vec::new() }
    }

    /// All hosts are members.
    fn joined() -> Self {
        let mut fleet = Self::new();
        (0..4).for_each(|host| fleet.beat(10, host, HostState::Idle));
        fleet.out.clear();
        fleet
    }

    /// Run 3 runs since 30 ms.
    fn running() -> Self {
        let mut fleet = Self::joined();
        let plans = (0..4).map(|host| Some(format!("plan {host}"))).collect();
        fleet.controller.begin(20 * MS, 3, plans, &mut fleet.out).unwrap();
        for host in 0..4 {
            let address = Some(SocketAddr::from(([10, 0, 0, host as u8], 7000)));
            fleet.beat(30, host, HostState::Ready { run: 3, address });
        }
        (0..4).for_each(|host| fleet.beat(31, host, HostState::Running { run: 3 }));
        assert_eq!(fleet.controller.phase(), Some(Phase::Running));
        fleet.out.clear();
        fleet
    }

    fn beat(&mut self, ms: u64, host: HostId, state: HostState) {
        self.beat_as(ms, host, 100 + u64::from(host), state);
    }

    fn beat_as(&mut self, ms: u64, host: HostId, incarnation: u64, state: HostState) {
        self.beats[host as usize] += 1;
        let beat = Beat {
            version: VERSION,
            host,
            incarnation,
            number: self.beats[host as usize],
            sent_ns: ms * MS,
            state,
            epoch: self.controller.view().epoch,
            clock: None,
            counters: Counters::default(),
        };
        self.controller.on_beat(ms * MS, beat, &mut self.out);
    }

    /// Time passes; hosts other than `silent` beat.
    fn pass(&mut self, from_ms: u64, to_ms: u64, silent: HostId) {
        for ms in (from_ms..to_ms).step_by(75) {
            for host in (0..4).filter(|&host| host != silent) {
                if self.controller.beat_of(host).is_some() {
                    self.beat(ms, host, HostState::Running { run: 3 });
                }
            }
            self.controller.tick(ms * MS, &mut self.out);
        }
    }

    fn told(&self) -> Vec<&FleetEvent> {
        let events = self.out.iter().filter_map(|action| match action {
            Action::Tell(event) => Some(event),
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
    fleet.beat(50, 3, HostState::Finished { run: 3, outcome: "sent".into() });
    assert_eq!(fleet.controller.phase(), Some(Phase::FinishingRecorders));
    assert_eq!(fleet.goal(0), Some(&Goal::Finish { run: 3 }));
    for host in 0..3 {
        fleet.beat(60, host, HostState::Finished { run: 3, outcome: "recorded".into() });
    }
    assert_eq!(fleet.controller.phase(), None);
    assert!(fleet.told().contains(&&FleetEvent::Over { run: 3, why: None }));
    assert_eq!(fleet.goal(0), Some(&Goal::Idle));
}

#[test]
fn a_spare_takes_the_slot_of_a_recorder_after_its_lease() {
    let mut fleet = Fleet::running();
    fleet.pass(75, 600, 0);
    assert!(fleet.controller.view().has(0));
    fleet.pass(600, 750, 0);
    let moved = FleetEvent::Moved { from: 0, to: Some(2), epoch: 2 };
    assert!(fleet.told().contains(&&moved), "{:?}", fleet.told());
    // Its own connection is back, but not its part.
    fleet.beat(760, 0, HostState::Running { run: 3 });
    assert_eq!(fleet.goal(0), Some(&Goal::Finish { run: 3 }));
    // The next loss is spread over the others.
    fleet.pass(775, 1_500, 1);
    let moved = FleetEvent::Moved { from: 1, to: None, epoch: 3 };
    assert!(fleet.told().contains(&&moved), "{:?}", fleet.told());
}

#[test]
fn a_recorder_that_failed_is_replaced_at_once() {
    let mut fleet = Fleet::running();
    fleet.beat(40, 1, HostState::Failed { run: 3, why: "disk".into() });
    let told = fleet.told();
    assert!(told.contains(&&FleetEvent::PartOver(1, PartEnd::Failed("disk".into()))));
    assert!(told.contains(&&FleetEvent::Moved { from: 1, to: Some(2), epoch: 2 }));
}

#[test]
fn without_a_recorder_the_run_ends() {
    let mut fleet = Fleet::running();
    for host in 0..3 {
        fleet.beat(40, host, HostState::Failed { run: 3, why: "disk".into() });
    }
    assert_eq!(fleet.goal(3), Some(&Goal::Finish { run: 3 }));
    fleet.beat(50, 3, HostState::Finished { run: 3, outcome: "o".into() });
    let why = Some("no recorder is left".to_owned());
    assert!(fleet.told().contains(&&FleetEvent::Over { run: 3, why }));
}

#[test]
fn hosts_that_are_not_ready_in_time_are_left_out() {
    let mut fleet = Fleet::joined();
    fleet.controller.begin(20 * MS, 3, vec![Some(String::new()); 4], &mut fleet.out).unwrap();
    let busy = fleet.controller.begin(20 * MS, 4, Vec::new(), &mut fleet.out);
    assert_eq!(busy, Err(BeginError::Busy(3)));
    let address = Some(SocketAddr::from(([10, 0, 0, 1], 7000)));
    let mut ms = 75;
    while fleet.controller.phase() == Some(Phase::Preparing) {
        for host in 0..4 {
            let is_ready = host == 1 || host == 3;
            let ready = HostState::Ready { run: 3, address };
            fleet.beat(ms, host, if is_ready { ready } else { HostState::Preparing { run: 3 } });
        }
        fleet.controller.tick(ms * MS, &mut fleet.out);
        ms += 75;
    }
    assert!((20_000..20_200).contains(&ms), "{ms}");
    let late = FleetEvent::PartOver(0, PartEnd::Late(Phase::Preparing));
    assert!(fleet.told().contains(&&late));
    assert_eq!(fleet.controller.phase(), Some(Phase::Running));
    assert!(fleet.controller.view().recorders() == 1 && fleet.controller.view().has(1));
}

#[test]
fn a_restarted_host_waits_for_the_lease_of_the_earlier_program() {
    let mut fleet = Fleet::running();
    fleet.beat_as(50, 0, 999, HostState::Idle);
    assert_eq!(fleet.controller.beat_of(0).unwrap().incarnation, 100);
    fleet.pass(75, 750, 0);
    assert!(fleet.controller.beat_of(0).is_none());
    fleet.beat_as(760, 0, 999, HostState::Idle);
    assert_eq!((fleet.controller.beat_of(0).unwrap().incarnation, fleet.goal(0)), (999, Some(&Goal::Idle)));
    // A late beat of the earlier program.
    fleet.beat(761, 0, HostState::Running { run: 3 });
    assert_eq!(fleet.controller.beat_of(0).unwrap().incarnation, 999);
}

#[test]
fn a_pause_of_the_controller_costs_nobody_the_lease() {
    let mut fleet = Fleet::running();
    fleet.controller.tick(5_000 * MS, &mut fleet.out);
    assert_eq!(fleet.controller.members(), 4);
    assert!(fleet.told().contains(&&FleetEvent::Paused(4_969 * MS)), "{:?}", fleet.told());
}

#[test]
fn strangers_are_refused() {
    let mut fleet = Fleet::joined();
    let stranger = Beat { host: 9, ..fleet.controller.beat_of(0).unwrap().clone() };
    fleet.controller.on_beat(20 * MS, stranger, &mut fleet.out);
    let other = Beat { version: 2, number: 9, ..fleet.controller.beat_of(0).unwrap().clone() };
    fleet.controller.on_beat(20 * MS, other, &mut fleet.out);
    assert!(matches!(
        fleet.told()[..],
        [FleetEvent::Refused { host: 9, .. }, FleetEvent::Refused { host: 0, .. }]
    ));
    assert!(matches!(fleet.goal(0), Some(Goal::Leave { .. })));
}

#[test]
fn changes_of_the_view_are_sent_until_a_host_has_them() {
    let mut fleet = Fleet::running();
    fleet.beat(40, 1, HostState::Failed { run: 3, why: "disk".into() });
    let since = |epoch| fleet.controller.update_since(epoch);
    assert_eq!(since(2), None);
    assert!(matches!(since(1), Some(Update::Changes { from: 1, changes, .. }) if changes.len() == 1));
    assert!(matches!(since(0), Some(Update::Whole(view)) if view.epoch == 2));
    assert!(matches!(since(9), Some(Update::Whole(_))));
}

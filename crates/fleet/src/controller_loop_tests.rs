//! A controller and hosts in one process, through the local link: join, run, leave.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use keepup_measure::clock::SystemClock;

use super::*;
use crate::agent_loop::{AgentLoop, Reports, StopRequest, Worker};
use crate::controller::{PartEnd, RunKind};
use crate::host::Done;
use crate::launch::Limits;
use crate::link::Secret;
use crate::link::local::{LocalController, Network};
use crate::message::{Counters, Role};
use crate::placement::View;

/// Worker that does what it should at once.
#[derive(Default)]
struct Obedient {
    counters: Counters,
}

impl Worker for Obedient {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        let address = Some("127.0.0.1:9".parse().unwrap());
        reports.send(match plan {
            "fail" => Done::Failed { run, why: "no disk".to_owned() },
            _ => Done::Prepared { run, address },
        });
    }

    fn start(&mut self, _run: u64, until: Duration, _reports: &Reports) {
        assert!(until <= Duration::from_secs(1), "{until:?}");
        self.counters.events = 7;
    }

    fn finish(&mut self, run: u64, _at_once: bool, reports: &Reports) {
        reports.send(Done::Finished { run, outcome: "done".to_owned() });
    }

    fn moved(&mut self, view: &View) {
        assert!(view.recorders() > 0);
    }

    fn leased(&mut self, _until_ns: u64) {}

    fn counters(&self) -> Counters {
        self.counters
    }
}

fn file() -> FleetFile {
    let host = |name: &str, role: &str| format!("[[host]]\nname = \"{name}\"\nrole = \"{role}\"\n");
    FleetFile::parse(&format!(
        "name = \"test\"\nlisten = \"127.0.0.1:7650\"\n[timing]\nheartbeat = \"50 ms\"\nlease = \"20 s\"\n\
         orphan = \"30 s\"\n[launcher]\npreset = \"local\"\n{}volumes = [\"/a\"]\n{}",
        host("rec", "recorder"),
        host("src", "source")
    ))
    .unwrap()
}

type TestLead = ControllerLoop<LocalController, SystemClock>;

fn secret() -> Secret {
    Secret::new("secret of the tests of lead")
}

fn lead() -> (TestLead, Network) {
    let (network, link) = Network::new(&secret(), 2).unwrap();
    let launcher = Launcher::new(Vec::new(), Limits { parallel: 1, join_ns: 1 }, link.waker());
    (ControllerLoop::new(5, &file(), link, launcher, SystemClock), network)
}

/// Runs a host until it ends; returns why.
fn follow(network: &Network, host: HostId, closed: &StopRequest) -> String {
    let link = network.join(host, 1, &secret().token(host).unwrap());
    AgentLoop::new(host, 1, file().timing, link, Obedient::default(), SystemClock).run(closed, &mut |_| {})
}

/// Turns until an event `is_wanted`; returns all up to it.
fn until(lead: &mut TestLead, is_wanted: impl Fn(&FleetEvent) -> bool) -> Vec<ControllerEvent> {
    let limit = Instant::now() + Duration::from_secs(60);
    let mut all = Vec::new();
    while !all.iter().any(|event| matches!(event, ControllerEvent::Fleet(event) if is_wanted(event))) {
        assert!(Instant::now() < limit, "{all:?}");
        all.extend(lead.turn(Duration::from_secs(1)));
    }
    all
}

fn until_joined(lead: &mut TestLead) {
    let limit = Instant::now() + Duration::from_secs(60);
    while lead.controller().members() < 2 {
        assert!(Instant::now() < limit);
        lead.turn(Duration::from_secs(1));
    }
}

#[test]
fn hosts_join_run_and_leave() {
    let (mut lead, network) = lead();
    std::thread::scope(|scope| {
        let hosts = [0, 1].map(|host| {
            let network = network.clone();
            scope.spawn(move || follow(&network, host, &StopRequest::default()))
        });
        until_joined(&mut lead);
        lead.start_run((1, RunKind::Recording), vec![Some(String::new()), Some(String::new())]).unwrap();
        until(&mut lead, |event| matches!(event, FleetEvent::Phase(1, crate::controller::Phase::Running)));
        assert!(lead.start_run((2, RunKind::Recording), Vec::new()).is_err());
        let limit = Instant::now() + Duration::from_secs(60);
        while lead
            .status(&file())
            .hosts
            .iter()
            .any(|host| host.report.as_ref().is_none_or(|report| report.counters.events != 7))
        {
            assert!(Instant::now() < limit);
            lead.turn(Duration::from_secs(1));
        }
        lead.finish();
        let events = until(&mut lead, |event| matches!(event, FleetEvent::Over { .. }));
        let done = || PartEnd::Finished("done".to_owned());
        for host in [0, 1] {
            assert!(
                events.contains(&ControllerEvent::Fleet(FleetEvent::PartOver(host, done()))),
                "{events:?}"
            );
        }
        lead.shut_down("the test is over");
        for host in hosts {
            let limit = Instant::now() + Duration::from_secs(60);
            while !host.is_finished() {
                assert!(Instant::now() < limit);
                lead.turn(Duration::from_millis(20));
            }
            assert_eq!(host.join().unwrap(), "the test is over");
        }
    });
    let traffic = lead.status(&file()).traffic;
    assert!(traffic.sent.messages > 0 && traffic.received.bytes > 0, "{traffic:?}");
}

#[test]
fn a_host_that_cannot_prepare_says_why() {
    let (mut lead, network) = lead();
    let flag = Arc::new(AtomicBool::new(false));
    let closed = StopRequest::new(Arc::clone(&flag));
    std::thread::scope(|scope| {
        let hosts = [0, 1].map(|host| {
            let (network, closed) = (network.clone(), closed.clone());
            scope.spawn(move || follow(&network, host, &closed))
        });
        until_joined(&mut lead);
        lead.start_run((1, RunKind::Recording), vec![Some("fail".to_owned()), None]).unwrap();
        let events = until(&mut lead, |event| matches!(event, FleetEvent::Over { .. }));
        let failed = FleetEvent::PartOver(0, PartEnd::Failed("no disk".to_owned()));
        assert!(events.contains(&ControllerEvent::Fleet(failed)), "{events:?}");
        assert_eq!(lead.status(&file()).hosts[1].role, Role::Source);
        // The end of standard input ends them too.
        flag.store(true, Ordering::Relaxed);
        for host in hosts {
            assert_eq!(host.join().unwrap(), "it was asked to end");
        }
    });
    until(&mut lead, |event| matches!(event, FleetEvent::Closed(_)));
}

#[test]
fn a_message_with_a_wrong_token_is_reported() {
    let (mut lead, network) = lead();
    network.inject(1, b"KUF1 garbage");
    let events = lead.turn(Duration::from_secs(1));
    assert_eq!(events, [ControllerEvent::Refused { host: Some(1), why: Refusal::Foreign }]);
}

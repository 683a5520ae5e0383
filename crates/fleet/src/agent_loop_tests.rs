//! A host that has lost its controller, or whose standard input is closed during a run.
use keepup_measure::clock::SystemClock;

use super::*;
use crate::link::local::Network;
use crate::link::{ControllerLink, FromHost, Secret};
use crate::message::{Goal, Order};

/// Worker that says what it was told.
struct Teller(Sender<String>);

impl Worker for Teller {
    fn prepare(&mut self, run: u64, plan: &str, reports: &Reports) {
        self.0.send(format!("prepare {run} {plan}")).unwrap();
        reports.send(Done::Prepared { run, address: None });
    }

    fn start(&mut self, run: u64, _until: Duration, _reports: &Reports) {
        self.0.send(format!("start {run}")).unwrap();
    }

    fn finish(&mut self, run: u64, _at_once: bool, reports: &Reports) {
        self.0.send(format!("finish {run}")).unwrap();
        reports.send(Done::Finished { run, outcome: String::new() });
    }

    fn moved(&mut self, _view: &View) {}

    fn leased(&mut self, _until_ns: u64) {}

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

fn timing(orphan_ms: u64) -> Timing {
    Timing { heartbeat_ns: 20_000_000, orphan_ns: orphan_ms * 1_000_000, ..Timing::recording() }
}

fn token() -> keepup_peer::Token {
    secret().token(0).unwrap()
}

fn secret() -> Secret {
    Secret::new("secret of the tests of follow")
}

/// Orders of the tests, as answers to the heartbeats of host 0.
fn lead(link: &mut impl ControllerLink, goal: &Goal, is_done: impl Fn(&HostState) -> bool) {
    for number in 1.. {
        let Some(FromHost::Heartbeat(heartbeat)) = link.receive(Duration::from_secs(60)) else { continue };
        if is_done(&heartbeat.state) {
            return;
        }
        link.send(&Order {
            controller: 1,
            host: 0,
            incarnation: heartbeat.incarnation,
            number: heartbeat.number * 1_000 + number,
            echo_ns: heartbeat.sent_ns,
            received_ns: heartbeat.sent_ns,
            sent_ns: heartbeat.sent_ns,
            goal: goal.clone(),
            epoch: 0,
            view: None,
        });
    }
}

#[test]
fn a_host_without_controller_ends() {
    let (network, link) = Network::new(&secret(), 1).unwrap();
    let (sender, told) = mpsc::channel();
    let mut host =
        AgentLoop::new(0, 1, timing(100), network.join(0, 1, &token()), Teller(sender), SystemClock);
    let mut events = Vec::new();
    drop(link);
    let why = host.run(&StopRequest::default(), &mut |event| events.push(event));
    assert_eq!(why, "no order from the controller for 0.1 s");
    assert_eq!(events, [AgentEvent::Disconnected]);
    drop(host);
    assert_eq!(told.iter().count(), 0);
}

#[test]
fn a_run_is_ended_before_the_host_is() {
    let (network, mut link) = Network::new(&secret(), 1).unwrap();
    let (sender, told) = mpsc::channel();
    let (unblock, blocked) = mpsc::channel::<Vec<u8>>();
    let follow = network.join(0, 1, &token());
    let closed = StopRequest::default();
    closed.watch(Pipe(blocked), follow.waker()).unwrap();
    let host = std::thread::spawn(move || {
        AgentLoop::new(0, 1, timing(60_000), follow, Teller(sender), SystemClock).run(&closed, &mut |_| {})
    });
    let plan = "record".to_owned();
    lead(&mut link, &Goal::Prepare { run: 4, plan }, |state| {
        matches!(state, HostState::Ready { run: 4, .. })
    });
    lead(&mut link, &Goal::Run { run: 4, start_ns: 1 }, |state| matches!(state, HostState::Running { .. }));
    drop(unblock);
    assert_eq!(host.join().unwrap(), "it was asked to end");
    assert_eq!(told.iter().collect::<Vec<_>>(), ["prepare 4 record", "start 4", "finish 4"]);
}

/// Input that ends when its sender is dropped.
struct Pipe(Receiver<Vec<u8>>);

impl Read for Pipe {
    fn read(&mut self, _buffer: &mut [u8]) -> std::io::Result<usize> {
        assert!(self.0.recv().is_err(), "nothing is sent");
        Ok(0)
    }
}

//! Sources that wait for their recorder on a server: trials over loopback, strangers at the port, and ends
//! that go away.
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::sync::Mutex;

use keepup_measure::clock::SystemClock;
use keepup_results::SourceHost;
use keepup_stream::source::{DectrisVersion, Destination, EventSize, Protocol, Rate, subscription};
use keepup_stream::zmtp;
use rustix::net::{AddressFamily, SocketType};

use super::super::client::tests::{Serving, failure_of, send, without_disk};
use super::*;
use crate::net::wire::{self, MESSAGE_BYTES_MAX, Message};
use crate::record::{Generated, Generator, Order, Reach, TrialMeasured, WaitingSource};
use crate::testing::{context, stopped};
use crate::{Context, run};

const V1: Protocol = Protocol::Dectris(DectrisVersion::V1);
const V2: Protocol = Protocol::Dectris(DectrisVersion::V2);
const PROTOCOLS: [Protocol; 3] = [V1, V2, Protocol::PvAccess];

fn plan(protocol: Protocol, rate: Rate, events: Option<u64>) -> SourcePlan {
    let duration = Some(Duration::from_secs(30));
    SourcePlan { events, duration, ..SourcePlan::new(EventSize::Fixed(20_000), rate) }.in_protocol(protocol)
}

fn trial(source: RemoteSource, plan: SourcePlan) -> TrialMeasured {
    run(&mut without_disk(Arc::new(source), plan), &mut context()).unwrap()
}

/// Whether the port at `address` is closed, at the latest when the server has ended the session.
fn closes(address: SocketAddr) -> bool {
    (0..3000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        TcpStream::connect(address).is_err()
    })
}

fn is_exact(measured: &TrialMeasured, events: u64) {
    let (due, total) = (measured.source.total(|s| s.due), measured.record.ledger.total());
    assert_eq!((due.events, due), (events, measured.source.total(|s| s.sent)));
    assert_eq!((total.received, total.durable), (due, due));
    assert!(measured.broken.is_none() && !measured.source.is_acknowledged);
    let incidents = &measured.record.incidents.listed;
    assert!(incidents.is_empty(), "{incidents:?}");
}

#[test]
fn the_recorder_connects_to_a_source_elsewhere() {
    let serving = Serving::at(Ipv4Addr::LOCALHOST.into(), 1);
    for protocol in PROTOCOLS {
        for rate in [Rate::EventsPerSecond(2000.0), Rate::Max] {
            let measured = trial(serving.source(), plan(protocol, rate, Some(400)));
            is_exact(&measured, 400);
            assert!(measured.lead_ns < measured.elapsed_ns);
            let last = measured.samples.last().unwrap();
            assert_eq!((last.due_bytes, last.backlog_bytes()), (8_000_000, 0));
            if rate != Rate::Max {
                assert!(measured.samples.iter().any(|sample| (1..8_000_000).contains(&sample.due_bytes)));
            }
        }
    }
    let log = serving.end();
    let seen = |line: &String| line.contains("source at 127.0.0.1:") && line.contains("as pvaccess for 30 s");
    assert!(log.iter().any(seen), "{log:?}");
}

#[test]
fn the_recorder_connects_over_ipv6() {
    let there = IpAddr::from(Ipv6Addr::LOCALHOST);
    if TcpListener::bind((there, 0)).is_err() {
        return println!("SKIPPED: this machine has no IPv6");
    }
    // A server of both protocols sees an IPv4 client at an address of IPv6.
    for (listen, name) in [(there, there), (Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::LOCALHOST.into())] {
        let serving = Serving::at(listen, 1);
        let address = SocketAddr::new(name, serving.address.port());
        for protocol in [V2, Protocol::PvAccess] {
            let measured = trial(serving.source_at(address), plan(protocol, Rate::Max, Some(50)));
            is_exact(&measured, 50);
        }
        serving.end();
    }
}

#[test]
fn a_stop_ends_a_source_that_waits() {
    let serving = Serving::at(Ipv4Addr::LOCALHOST.into(), 1);
    for protocol in PROTOCOLS {
        let endless = plan(protocol, Rate::EventsPerSecond(500.0), None);
        let measured = run(&mut without_disk(Arc::new(serving.source()), endless), &mut stopped()).unwrap();
        let (due, total) = (measured.source.total(|s| s.due), measured.record.ledger.total());
        assert!(measured.broken.is_none() && due == total.durable, "{due:?} {total:?}");
    }
    serving.end();
}

#[test]
fn the_speed_of_the_source_alone_is_measured_at_the_server() {
    let serving = Serving::at(Ipv4Addr::LOCALHOST.into(), 1);
    let (source, clock): (_, Arc<dyn Clock>) = (serving.source(), Arc::new(SystemClock));
    for protocol in PROTOCOLS {
        let rate = source.ceiling(&plan(protocol, Rate::Max, None), Duration::from_millis(200), &clock);
        assert!(rate.unwrap() > 1e6);
    }
    serving.end();
}

/// A connection from `here` that starts with `opening`.
fn connect_from(here: Ipv4Addr, to: SocketAddr, opening: &[u8]) -> TcpStream {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((here, 0))).unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    let mut socket = TcpStream::from(socket);
    socket.write_all(opening).unwrap();
    socket
}

/// A source at which two others connect before the recorder: one that is no receiver, and a receiver on
/// another machine.
#[derive(Debug)]
struct WithStrangers(RemoteSource, Mutex<Vec<TcpStream>>);

impl Generator for WithStrangers {
    fn reach(&self) -> Reach {
        self.0.reach()
    }

    fn wait(
        &self,
        plan: &SourcePlan,
        clock: &Arc<dyn Clock>,
    ) -> Result<Box<dyn WaitingSource>, WorkloadError> {
        let waiting = Generator::wait(&self.0, plan, clock)?;
        let here = connect_from(Ipv4Addr::LOCALHOST, waiting.address(), &[b'x'; 4096]);
        let opening = match plan.protocol {
            Protocol::PvAccess => subscription(),
            _ => [&zmtp::greeting()[..], &zmtp::ready("PULL")].concat(),
        };
        let elsewhere = connect_from(Ipv4Addr::new(127, 0, 0, 2), waiting.address(), &opening);
        self.1.lock().unwrap().extend([here, elsewhere]);
        Ok(waiting)
    }

    fn run(&self, to: Destination, order: &Order<'_>) -> Result<Generated, WorkloadError> {
        Generator::run(&self.0, to, order)
    }

    fn source_ceiling(&self, _: &SourcePlan, _: Duration, _: &mut Context) -> Result<f64, WorkloadError> {
        unreachable!()
    }

    fn network_ceiling(&self, _: Duration, _: &mut Context) -> Result<f64, WorkloadError> {
        unreachable!()
    }

    fn host(&self) -> Option<&SourceHost> {
        None
    }

    fn is_loopback(&self) -> bool {
        true
    }
}

#[test]
fn strangers_at_the_port_do_not_stop_a_trial() {
    let serving = Serving::at(Ipv4Addr::LOCALHOST.into(), 1);
    for protocol in PROTOCOLS {
        let generator = Arc::new(WithStrangers(serving.source(), Mutex::default()));
        let plan = plan(protocol, Rate::EventsPerSecond(1000.0), Some(100));
        let mut trial = without_disk(generator.clone(), plan);
        is_exact(&run(&mut trial, &mut context()).unwrap(), 100);
        for stranger in generator.1.lock().unwrap().iter_mut() {
            let mut got = Vec::new();
            drop(stranger.read_to_end(&mut got));
            assert!(got.len() < 20_000, "a greeting at most, not an image");
        }
    }
    serving.end();
}

#[test]
fn a_client_that_goes_away_leaves_no_port() {
    let serving = Serving::at(Ipv4Addr::LOCALHOST.into(), 1);
    let (source, clock): (_, Arc<dyn Clock>) = (serving.source(), Arc::new(SystemClock));
    for protocol in PROTOCOLS {
        let waiting = source.wait(&plan(protocol, Rate::Max, Some(1)), &clock).unwrap();
        let address = waiting.address();
        let recorder = TcpStream::connect(address).unwrap();
        // Another client is refused meanwhile.
        let refused = source.wait(&plan(protocol, Rate::Max, Some(1)), &clock).err().unwrap().to_string();
        assert!(refused.contains("in use by another client"), "{refused}");
        drop(waiting);
        assert!(closes(address), "{address} is open");
        drop(recorder);
        is_exact(&trial(source.clone(), plan(protocol, Rate::Max, Some(20))), 20);
    }
    serving.end();
}

#[test]
fn a_server_that_is_stopped_closes_the_port() {
    let serving = Serving::at(Ipv4Addr::LOCALHOST.into(), 1);
    let (source, clock): (_, Arc<dyn Clock>) = (serving.source(), Arc::new(SystemClock));
    let mut waiting = source.wait(&plan(V2, Rate::Max, Some(1)), &clock).unwrap();
    let address = waiting.address();
    serving.end();
    assert!(closes(address), "{address} is open");
    let lost = waiting.idle.end().err().unwrap().to_string();
    assert!(lost.contains("the server was stopped"), "{lost}");
}

/// Reads messages until one has this request.
fn await_request(stream: &mut TcpStream, wanted: &SourceRequest) {
    let is_wanted = |message: Option<Message>| match message.unwrap() {
        Message::Source { request } => *request == *wanted,
        _ => false,
    };
    while !is_wanted(wire::read(stream, MESSAGE_BYTES_MAX).unwrap()) {}
}

#[test]
fn answers_of_a_server_about_its_port_are_checked() {
    let images = || plan(V2, Rate::EventsPerSecond(100.0), None);
    let waiting = |port| SourceAnswer::Waiting { port };
    let failed = failure_of(images(), move |to| send(to, waiting(0)));
    assert!(failed.contains("unexpected SourceAnswer"), "{failed}");
    let failed = failure_of(images(), move |to| send(to, waiting(9)));
    assert!(failed.contains("it disconnected"), "{failed}");
    let failed = failure_of(images(), move |to| {
        send(to, waiting(9));
        // Nobody has asked for it.
        send(to, SourceAnswer::Ceiling { bytes_per_second: 1.0 });
        drop(to.read_to_end(&mut Vec::new()));
    });
    assert!(failed.contains("unexpected SourceAnswer"), "{failed}");
    let failed = failure_of(images(), move |to| {
        send(to, waiting(9));
        await_request(to, &SourceRequest::Run);
        send(to, SourceAnswer::NoRecorder { why: "nobody\ncame".into() });
    });
    assert!(failed.starts_with("cannot use the source on 127.0.0.1:") && failed.ends_with(": nobody came"));
}

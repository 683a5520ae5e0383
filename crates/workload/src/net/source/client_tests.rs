//! A source on a server, in trials over loopback, with servers that refuse, vanish or report nonsense.
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread::JoinHandle;

use keepup_measure::clock::SystemClock;
use keepup_peer::{Endpoint, Token};
use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_stream::ledger::Count;
use keepup_stream::source::{EventSize, Protocol, Rate, StreamReport};

use super::*;
use crate::net::proof::{Credentials, Nonces, SECRET_BYTES, Side};
use crate::net::wire::{self, CONTROL_MAGIC, STRANGER_BYTES_MAX, VERSION};
use crate::net::{Listening, ServerSettings};
use crate::record::{Generator, RecordTrial, TrialMeasured, TrialSpec};
use crate::testing::{context, stopped};

const TOKEN: &str = "0123456789abcdef";

fn credentials(token: &str) -> Credentials {
    Credentials { token: Token::new(token).unwrap(), random: || Ok("0".repeat(SECRET_BYTES)) }
}

fn client(address: SocketAddr, token: &str) -> Server {
    Server { endpoint: address.into(), credentials: credentials(token), name: None }
}

/// A server with `sources` concurrent sources, until `stop` is set.
pub(in crate::net) struct Serving {
    pub(in crate::net) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

impl Serving {
    fn start(sources: u32) -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into(), sources)
    }

    pub(in crate::net) fn at(ip: IpAddr, sources: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let settings = ServerSettings { sources, ..ServerSettings::default() };
        let endpoint = Endpoint::from((ip, 0));
        let server = Listening::bind(
            &endpoint,
            credentials(TOKEN),
            settings,
            Arc::new(SystemClock),
            Arc::clone(&stop),
        );
        let server = server.unwrap();
        let address = server.address();
        let thread = std::thread::spawn(move || {
            let mut log = Vec::new();
            server.serve(|words| log.push(words.to_owned()));
            log
        });
        Self { address, stop, thread }
    }

    pub(in crate::net) fn source(&self) -> RemoteSource {
        self.source_at(self.address)
    }

    /// The server by another of its addresses.
    pub(in crate::net) fn source_at(&self, address: SocketAddr) -> RemoteSource {
        RemoteSource::connect(client(address, TOKEN), Arc::new(SystemClock)).unwrap()
    }

    /// Stops the server and returns its log.
    pub(in crate::net) fn end(self) -> Vec<String> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap()
    }
}

fn plan(rate: Rate, events: Option<u64>, seconds: u64) -> SourcePlan {
    let duration = Some(Duration::from_secs(seconds));
    SourcePlan {
        events,
        duration,
        streams: 3,
        connections: 2,
        ..SourcePlan::new(EventSize::Fixed(4096), rate)
    }
}

/// A trial without a disk.
pub(in crate::net) fn without_disk(generator: Arc<dyn Generator>, plan: SourcePlan) -> RecordTrial {
    let recorder = RecorderConfig {
        pool_bytes: 32 << 20,
        ..RecorderConfig::new((Ipv4Addr::LOCALHOST, 0).into(), Target::Null, "trial")
    };
    RecordTrial::new(TrialSpec {
        source: plan,
        generator,
        recorder,
        recording: Id::random().unwrap(),
        drain: None,
        verify: None,
        read_back: false,
        cut_off: None,
        first_events: None,
        sample_every: Duration::from_millis(10),
        watcher_slot: None,
    })
}

fn trial(source: &RemoteSource, plan: SourcePlan) -> Result<TrialMeasured, WorkloadError> {
    run(&mut without_disk(Arc::new(source.clone()), plan), &mut context())
}

#[test]
fn a_trial_has_the_counts_of_a_source_elsewhere() {
    let serving = Serving::start(1);
    let source = serving.source();
    assert!(!source.host().host.is_empty() && source.host().cores.is_some_and(|cores| cores > 0));
    assert!(Generator::is_loopback(&source), "the server is on this machine");
    // One trial right after another: the server's last session may still be ending.
    for _ in 0..3 {
        let measured = trial(&source, plan(Rate::EventsPerSecond(2000.0), Some(400), 10)).unwrap();
        let (due, total) = (measured.source.total(|s| s.due), measured.record.ledger.total());
        assert_eq!((due.events, due), (400, measured.source.total(|s| s.sent)));
        assert_eq!((total.received, total.durable), (due, due));
        let last = measured.samples.last().unwrap();
        assert_eq!((last.due_bytes, last.backlog_bytes()), (due.bytes, 0));
        assert!(measured.samples.iter().any(|sample| (1..due.bytes).contains(&sample.due_bytes)));
        assert!(measured.source_gap_ns_max.is_some_and(|gap_ns| gap_ns > 0));
        assert!(measured.lead_ns < measured.elapsed_ns && measured.broken.is_none());
        assert_eq!(measured.source.streams.len(), 3);
        assert!(measured.source.is_acknowledged);
    }
    let log = serving.end();
    assert!(log.iter().any(|line| line.contains("source to 127.0.0.1:")), "{log:?}");
}

#[test]
fn packets_from_elsewhere_are_not_acknowledged() {
    let serving = Serving::start(1);
    let packets = SourcePlan { streams: 1, ..plan(Rate::EventsPerSecond(1000.0), Some(50), 10) };
    let measured = trial(&serving.source(), packets.in_protocol(Protocol::Udp)).unwrap();
    // The trial then waits for the last events, which its duration includes.
    assert!(!measured.source.is_acknowledged && measured.source.durable_events == 0);
    assert_eq!(measured.source.total(|s| s.sent).events, 50);
    serving.end();
}

#[test]
fn ceilings_are_measured_at_the_server() {
    let serving = Serving::start(1);
    let source = serving.source();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let time = Duration::from_millis(200);
    assert!(source.ceiling(&plan(Rate::Max, None, 1), time, &clock).unwrap() > 0.0);
    assert!(source.network_ceiling(time, &mut context()).unwrap() > 0.0);
    serving.end();
}

#[test]
fn a_stop_ends_the_schedule_early_and_in_order() {
    let serving = Serving::start(1);
    let source = serving.source();
    let endless = plan(Rate::EventsPerSecond(1000.0), None, 600);
    let measured = run(&mut without_disk(Arc::new(source), endless), &mut stopped()).unwrap();
    let (due, total) = (measured.source.total(|s| s.due), measured.record.ledger.total());
    assert!(measured.broken.is_none() && due == total.durable, "{due:?} {total:?}");
    serving.end();
}

fn connect(address: SocketAddr, token: &str) -> WorkloadError {
    RemoteSource::connect(client(address, token), Arc::new(SystemClock)).unwrap_err()
}

#[test]
fn a_wrong_token_and_a_server_without_sources_are_refused() {
    let serving = Serving::start(1);
    let refused = connect(serving.address, "fedcba9876543210").to_string();
    assert!(refused.contains("the token is wrong"), "{refused}");
    serving.end();
    let serving = Serving::start(0);
    let refused = connect(serving.address, TOKEN).to_string();
    assert!(refused.contains("it runs network tests only"), "{refused}");
    serving.end();
}

#[test]
fn one_client_at_a_time_has_the_source() {
    let serving = Serving::start(1);
    let source = serving.source();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    // A client whose recorder accepts the source's connection and stays silent.
    let recorder = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = recorder.local_addr().unwrap().port();
    let mut first = source.open(&clock).unwrap();
    let one = SourcePlan { streams: 1, connections: 1, ..plan(Rate::Max, Some(1), 60) };
    first.ask(SourceRequest::Start { plan: one, port }).unwrap();
    let accepted = recorder.accept().unwrap();
    let few = || plan(Rate::EventsPerSecond(100.0), Some(3), 10);
    let refused = trial(&source, few()).err().unwrap().to_string();
    assert!(refused.contains("in use by another client"), "{refused}");
    drop((first, accepted, recorder));
    let measured = trial(&source, few()).unwrap();
    assert_eq!(measured.record.ledger.total().durable.events, 3);
    serving.end();
}

/// A server that accepts a client with the token, reads one request per connection and runs `answer`.
fn hostile(answer: impl Fn(&mut TcpStream) + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        for is_first in [true, false] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut magic = [0; 8];
            std::io::Read::read_exact(&mut stream, &mut magic).unwrap();
            assert_eq!(magic, CONTROL_MAGIC);
            let Ok(Some(Message::Hello { nonce, .. })) = wire::read(&mut stream, STRANGER_BYTES_MAX) else {
                panic!("no hello")
            };
            let nonces = Nonces { client: nonce, server: "5".repeat(SECRET_BYTES) };
            let challenge = Message::Challenge { version: VERSION, nonce: nonces.server.clone() };
            wire::write(&mut stream, &challenge).unwrap();
            wire::read(&mut stream, STRANGER_BYTES_MAX).unwrap();
            let proof = credentials(TOKEN).prove(Side::Server, &nonces);
            wire::write(&mut stream, &Message::Welcome { proof, host: "x".into() }).unwrap();
            let request = wire::read(&mut stream, STRANGER_BYTES_MAX).unwrap();
            assert!(matches!(request, Some(Message::Source { .. })), "{request:?}");
            match is_first {
                true => {
                    let machine = crate::net::wire::source::SourceMachine {
                        host: "a\nb".into(),
                        cpu: None,
                        cores: None,
                        tool_version: "1".into(),
                    };
                    send(&mut stream, SourceAnswer::Machine { machine });
                }
                false => answer(&mut stream),
            }
        }
    });
    (address, thread)
}

pub(in crate::net) fn send(stream: &mut TcpStream, answer: SourceAnswer) {
    wire::write(stream, &Message::SourceAnswer { answer: Box::new(answer) }).unwrap();
}

/// Error of a trial with a hostile server.
fn failure(answer: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    failure_of(plan(Rate::EventsPerSecond(100.0), None, 60), answer)
}

pub(in crate::net) fn failure_of(
    plan: SourcePlan,
    answer: impl Fn(&mut TcpStream) + Send + 'static,
) -> String {
    let (address, thread) = hostile(answer);
    let source = RemoteSource::connect(client(address, TOKEN), Arc::new(SystemClock)).unwrap();
    assert_eq!(source.host().host, "a b", "text of a peer is one line");
    let failed = trial(&source, plan).err().unwrap().to_string();
    thread.join().unwrap();
    failed
}

fn stream(id: u32, due: u64, sent: u64) -> StreamReport {
    let count = |events| Count { events, bytes: events };
    StreamReport {
        id,
        due: count(due),
        sent: count(sent),
        lost: Count::default(),
        first_sequence: 0,
        next_sequence: 0,
    }
}

fn end(streams: Vec<StreamReport>) -> SourceAnswer {
    let mut report = SourceReport::empty(false).unwrap();
    report.streams = streams;
    SourceAnswer::End { end: SourceEnd::new(&report, 0, None) }
}

#[test]
fn a_server_that_vanishes_breaks_the_trial() {
    let failed =
        failure(|stream| send(stream, SourceAnswer::Progress { progress: SourceProgress::default() }));
    assert!(failed.contains("it disconnected"), "{failed}");
}

#[test]
fn a_server_that_falls_silent_breaks_the_trial() {
    // The client closes the connection after its time limit, which ends the server's read.
    let failed = failure(|stream| drop(std::io::Read::read_to_end(stream, &mut Vec::new())));
    assert!(failed.contains("no message for"), "{failed}");
}

#[test]
fn figures_of_a_server_are_checked() {
    let wrong = vec![stream(0, 5, 4), stream(1, 0, 0), stream(2, 0, 0)];
    let failed = failure(move |to| send(to, end(wrong.clone())));
    assert!(failed.contains("events of stream 0 do not add up"), "{failed}");
    let failed = failure(|to| send(to, end(vec![stream(0, 5, 5)])));
    assert!(failed.contains("counts of 1 streams of 3"), "{failed}");
    let failed = failure(|to| send(to, SourceAnswer::Ceiling { bytes_per_second: 1.0 }));
    assert!(failed.contains("unexpected SourceAnswer"), "{failed}");
}

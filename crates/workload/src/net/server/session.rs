//! Server side of a session: runs the client's test on sockets restricted to that client, or hands
//! the session to `source`.
mod source;

use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::NetServerState;
use crate::WorkloadError;
use crate::error::{NetError, system};
use crate::net::control::ControlConnections;
use crate::net::flow::{Flow, Wire, is_datagrams, set_buffers};
use crate::net::local_end::{LocalEnd, host};
use crate::net::spec::NetSpec;
use crate::net::wire::source::SourceRequest;
use crate::net::wire::{self, Message};

/// Timeout of each step before the start.
const STEP_MAX: Duration = Duration::from_secs(5);
/// Timeout of one poll of a channel or socket.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time for which a server waits for the client after its window.
const OVERTIME_MAX: Duration = Duration::from_secs(10);

/// State of a session.
struct Session<'a> {
    state: &'a NetServerState,
    talk: ControlConnections,
    /// The client's address, required of all datagrams, and the local address that it connected to.
    client: IpAddr,
    here: SocketAddr,
}

/// First request of a client.
enum Request {
    Test(NetSpec),
    Source(SourceRequest),
}

/// Runs one test or source for the client.
pub(super) fn serve(
    mut stream: TcpStream,
    proof: String,
    state: &NetServerState,
    log: &dyn Fn(String),
) -> Result<(), WorkloadError> {
    let welcome = Message::Welcome { proof, host: host() };
    wire::write(&mut stream, &welcome).map_err(system("send the welcome message"))?;
    let client = stream.peer_addr().map_err(system("read the address of a connection"))?.ip();
    let here = stream.local_addr().map_err(system("read the address of a connection"))?;
    let mut talk = ControlConnections::new(Arc::clone(&state.clock));
    talk.add(stream).map_err(system("set up the control connection"))?;
    let mut session = Session { state, talk, client, here };
    let spec = match session.receive_request()? {
        None => return Ok(()),
        Some(Request::Source(request)) => return source::serve(&mut session, request, log),
        Some(Request::Test(spec)) => spec,
    };
    if let Err(why) = spec.check() {
        session.talk.send(0, &Message::Refused { why: why.to_string() })?;
        return Ok(());
    }
    let flows = match session.flows(&spec) {
        Err(WorkloadError::System { action, source }) => {
            let why = format!("cannot {action}: {source}");
            session.talk.send(0, &Message::Refused { why: why.clone() })?;
            log(why);
            return Ok(());
        }
        flows => flows?,
    };
    let over = if is_datagrams(&spec) { "UDP" } else { "TCP" };
    let plural = if flows.len() == 1 { "" } else { "s" };
    let seconds = (spec.ramp + spec.run).as_secs_f64();
    log(format!("{} {over} flow{plural} for {seconds} s", flows.len()));
    session.measure(flows, &spec)
}

impl Session<'_> {
    fn is_stopped(&self) -> bool {
        self.state.stop.load(Ordering::Acquire)
    }

    /// Fails when the step has timed out or the server is stopping.
    fn check_timeout(&mut self, since_ns: u64) -> Result<(), NetError> {
        if self.is_stopped() {
            return self.end_stopped_session();
        }
        self.talk.check_timeout(0, since_ns, STEP_MAX)
    }

    /// Ends the session because the server is stopping.
    fn end_stopped_session(&mut self) -> Result<(), NetError> {
        self.talk.send(0, &Message::Refused { why: "the server was stopped".into() })?;
        Err(NetError::Stopped { peer: self.talk.peer(0).into() })
    }

    /// The client's request; none if it disconnects without one.
    fn receive_request(&mut self) -> Result<Option<Request>, NetError> {
        let begin_ns = self.state.clock.now_ns();
        loop {
            match self.talk.receive(POLL_INTERVAL) {
                Ok(Some((_, Message::Prepare { spec }))) => return Ok(Some(Request::Test(*spec))),
                Ok(Some((_, Message::Source { request }))) => return Ok(Some(Request::Source(*request))),
                Ok(Some((_, other))) => return Err(self.talk.unexpected(0, &other)),
                Err(NetError::Disconnected { why: None, .. }) => return Ok(None),
                Err(why) => return Err(why),
                Ok(None) => self.check_timeout(begin_ns)?,
            }
        }
    }

    /// Waits for the client, which disconnects once it has its answer.
    fn await_disconnect(&mut self) {
        while !matches!(self.talk.receive(POLL_INTERVAL), Err(_) | Ok(Some(_))) {}
    }

    /// Opens all flows and waits until the client has connected each.
    fn flows(&mut self, spec: &NetSpec) -> Result<Vec<Flow>, WorkloadError> {
        let (secret, connections) = self.state.open().map_err(system("create a session secret"))?;
        let sockets = match is_datagrams(spec) {
            true => self.sockets(spec).map_err(system("open a datagram port"))?,
            false => Vec::new(),
        };
        let port = |socket: &UdpSocket| socket.local_addr().map(|address| address.port());
        let ports: Result<Vec<u16>, _> = sockets.iter().map(port).collect();
        let ports = ports.map_err(system("read a port number"))?;
        self.talk.send(0, &Message::Ready { secret: secret.text.clone(), ports })?;
        let wires = match is_datagrams(spec) {
            true => self.connect_sockets(sockets, &secret.text)?.into_iter().map(Wire::Datagrams).collect(),
            false => self.accept_connections(&connections, spec)?,
        };
        self.talk.send(0, &Message::Set)?;
        let flows = spec.roles().into_iter().zip(0..).zip(wires);
        Ok(flows.map(|((role, number), wire)| Flow { number, role, wire, is_client: false }).collect())
    }

    fn sockets(&self, spec: &NetSpec) -> std::io::Result<Vec<UdpSocket>> {
        let one = |_| {
            let mut address = self.here;
            address.set_port(0);
            let socket = UdpSocket::bind(address)?;
            set_buffers(&socket, spec)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        spec.roles().iter().map(one).collect()
    }

    /// Connects each datagram socket to the client's port, learned from a datagram with the session
    /// secret.
    fn connect_sockets(
        &mut self,
        sockets: Vec<UdpSocket>,
        secret: &str,
    ) -> Result<Vec<UdpSocket>, WorkloadError> {
        let begin_ns = self.state.clock.now_ns();
        let mut buffer = [0; 128];
        for (number, socket) in sockets.iter().enumerate() {
            let expected = wire::preamble(secret, number as u32);
            loop {
                match socket.recv_from(&mut buffer) {
                    Ok((bytes, from)) if from.ip() == self.client && buffer[..bytes] == expected[..] => {
                        socket.connect(from).map_err(system("connect a datagram port to the client"))?;
                        socket.set_nonblocking(false).map_err(system("configure a datagram port"))?;
                        break;
                    }
                    Ok(_) => {}
                    Err(_) => {
                        self.idle()?;
                        self.check_timeout(begin_ns)?;
                    }
                }
            }
        }
        Ok(sockets)
    }

    /// Accepts the client's connections, one per flow.
    fn accept_connections(
        &mut self,
        connections: &Receiver<(u32, TcpStream)>,
        spec: &NetSpec,
    ) -> Result<Vec<Wire>, WorkloadError> {
        let begin_ns = self.state.clock.now_ns();
        let mut found: Vec<Option<TcpStream>> = spec.roles().iter().map(|_| None).collect();
        while found.iter().any(Option::is_none) {
            match connections.recv_timeout(POLL_INTERVAL) {
                Ok((number, stream)) => {
                    let is_same = stream.peer_addr().is_ok_and(|peer| peer.ip() == self.client);
                    if let Some(place) = found.get_mut(number as usize).filter(|_| is_same) {
                        set_buffers(&stream, spec).map_err(system("set the buffers of a socket"))?;
                        *place = Some(stream);
                    }
                }
                Err(_) => {
                    self.idle()?;
                    self.check_timeout(begin_ns)?;
                }
            }
        }
        Ok(found.into_iter().flatten().map(Wire::Stream).collect())
    }

    /// Keeps the control connection alive while no message is expected.
    fn idle(&mut self) -> Result<(), NetError> {
        match self.talk.receive(Duration::from_millis(1))? {
            Some((_, message)) => Err(self.talk.unexpected(0, &message)),
            None => Ok(()),
        }
    }

    fn measure(&mut self, flows: Vec<Flow>, spec: &NetSpec) -> Result<(), WorkloadError> {
        let mut local_end = LocalEnd::new(flows, spec, Arc::clone(&self.state.clock))?;
        let begin_ns = self.state.clock.now_ns();
        loop {
            match self.talk.receive(POLL_INTERVAL)? {
                Some((_, Message::Start)) => break,
                Some((_, other)) => return Err(self.talk.unexpected(0, &other).into()),
                None => self.check_timeout(begin_ns)?,
            }
        }
        local_end.start()?;
        let (begin_ns, mut sessions) = (self.state.clock.now_ns(), 1);
        let limit_ns = (spec.ramp + spec.run + OVERTIME_MAX).as_nanos() as u64;
        loop {
            local_end.tick();
            sessions = self.state.sessions().max(sessions);
            let now_ns = self.state.clock.now_ns();
            let until_ns = local_end.next_ns().unwrap_or(now_ns + POLL_INTERVAL.as_nanos() as u64);
            match self
                .talk
                .receive(Duration::from_nanos(until_ns.saturating_sub(now_ns)).min(POLL_INTERVAL))?
            {
                Some((_, Message::Quiet { .. })) => break,
                Some((_, other)) => return Err(self.talk.unexpected(0, &other).into()),
                None => {}
            }
            if now_ns.saturating_sub(begin_ns) > limit_ns {
                let what = "the test did not end in time".into();
                return Err(NetError::Protocol { peer: self.talk.peer(0).into(), what }.into());
            }
            if self.is_stopped() {
                return Ok(self.end_stopped_session()?);
            }
        }
        local_end.cut_short();
        let sent = local_end.stop_sending();
        self.talk.send(0, &Message::Quiet { sent })?;
        let report = local_end.finish(self.here.to_string(), sessions);
        self.talk.send(0, &Message::Done { report: Box::new(report) })?;
        self.await_disconnect();
        Ok(())
    }
}

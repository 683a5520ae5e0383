//! Client side of a network test: connects to the servers, runs both ends on the same schedule and
//! combines their reports.
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_results::{NetEnd, NetFlow, NetLedger, NetRun};

use super::control::ControlConnections;
use super::flow::{Flow, Wire, is_datagrams, set_buffers};
use super::handshake::{CONNECT_MAX, Server, authenticate};
use super::ledger::{Pair, ledger};
use super::local_end::{LocalEnd, TAIL};
use super::server::reject_multicast;
use super::spec::{NetSpec, Role};
use super::wire::{self, FlowReport, Message, Report};
use crate::error::{NetError, system};
use crate::{Context, Footprint, Workload, WorkloadError};

/// What starts a server.
const SERVE: &str = "start a server on the other machine: keepup net serve --listen ADDR:PORT";
/// Timeout of each step before the start and after the end.
const STEP_MAX: Duration = Duration::from_secs(6);
/// Interval between the datagrams that announce the client's port until the server answers.
const KNOCK_EVERY: Duration = Duration::from_millis(50);

/// Result of a test, and the error that ended it early.
#[derive(Debug)]
pub struct NetMeasured {
    /// The run, possibly incomplete.
    pub run: NetRun,
    /// Why the run is incomplete.
    pub failure: Option<WorkloadError>,
}

/// A test of flows to or from one or several servers.
pub struct NetTest {
    spec: NetSpec,
    servers: Vec<Server>,
    name: String,
    talk: Option<ControlConnections>,
    local_end: Option<LocalEnd>,
    /// Address of each connected server.
    reached: Vec<SocketAddr>,
    /// Server and role of each flow, by flow number.
    flows: Vec<(usize, Role)>,
    mine: Option<Report>,
    theirs: Vec<Option<Report>>,
    failure: Option<WorkloadError>,
    /// Live counter of the bytes that this end has received.
    live: Option<Arc<AtomicU64>>,
}

impl NetTest {
    /// A test of `servers`; `name` is this end's name in the result.
    ///
    /// # Errors
    /// Specification out of bounds, or an address that is not a single machine.
    pub fn new(spec: NetSpec, servers: Vec<Server>, name: String) -> Result<Self, WorkloadError> {
        spec.check().map_err(NetError::from)?;
        for server in &servers {
            reject_multicast(&server.endpoint)?;
        }
        let theirs = servers.iter().map(|_| None).collect();
        Ok(Self {
            spec,
            servers,
            name,
            talk: None,
            local_end: None,
            reached: Vec::new(),
            flows: Vec::new(),
            mine: None,
            theirs,
            failure: None,
            live: None,
        })
    }

    /// Updates `live` with the bytes received at this end, ten times per second during the run.
    #[must_use]
    pub fn with_live_bytes(mut self, live: Arc<AtomicU64>) -> Self {
        self.live = Some(live);
        self
    }

    /// Opens all flows to one server.
    fn open(
        &mut self,
        talk: &mut ControlConnections,
        number: usize,
        clock: &dyn Clock,
    ) -> Result<Vec<Wire>, WorkloadError> {
        talk.send(number, &Message::Prepare { spec: Box::new(self.spec.clone()) })?;
        let ready = wait(talk, clock, number, |message| match message {
            Message::Ready { secret, ports } => Ok((secret, ports)),
            other => Err(other),
        })?;
        let (secret, ports) = ready;
        let roles = self.spec.roles();
        let server = self.reached[number];
        let mut wires = Vec::new();
        let mut knocks = Vec::new();
        for flow in 0..roles.len() as u32 {
            let opened = match is_datagrams(&self.spec) {
                true => ports.get(flow as usize).map_or_else(
                    || Err(std::io::Error::other("the server sent no port")),
                    |port| knock_socket(SocketAddr::new(server.ip(), *port), &self.spec).map(Wire::Datagrams),
                ),
                false => connect(server, &self.spec, &wire::preamble(&secret, flow)).map(Wire::Stream),
            };
            let peer = server.to_string();
            let wire =
                opened.map_err(|source| NetError::Flow { number: flow, peer, action: "open", source })?;
            knocks.push(wire::preamble(&secret, flow));
            wires.push(wire);
        }
        let begin_ns = clock.now_ns();
        loop {
            for (wire, knock) in wires.iter().zip(&knocks) {
                if let Wire::Datagrams(socket) = wire {
                    // A port that is not open yet refuses; the next datagram may arrive.
                    drop(socket.send(knock));
                }
            }
            match talk.receive(KNOCK_EVERY)? {
                Some((_, Message::Set)) => return Ok(wires),
                Some((_, other)) => return Err(talk.unexpected(number, &other).into()),
                None => talk.check_timeout(number, begin_ns, STEP_MAX)?,
            }
        }
    }

    /// Runs both ends until the window is over.
    fn run_window(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        let (Some(talk), Some(local_end)) = (&mut self.talk, &mut self.local_end) else { return Ok(()) };
        talk.send_to_all(&Message::Start)?;
        local_end.start()?;
        while let Some(next_ns) = local_end.next_ns() {
            let now_ns = context.clock.now_ns();
            if let Some((number, message)) =
                talk.receive(Duration::from_nanos(next_ns.saturating_sub(now_ns)).min(KNOCK_EVERY))?
            {
                return Err(talk.unexpected(number, &message).into());
            }
            local_end.tick();
            if let Some(live) = &self.live {
                live.store(local_end.received_bytes(), Ordering::Relaxed);
            }
            if let Some((number, why)) = local_end.broken() {
                // An end that disconnects breaks its flows first; its error message follows a
                // moment later.
                talk.receive(KNOCK_EVERY)?;
                let server = self.flows.get(number as usize).map_or(0, |flow| flow.0);
                let (peer, source) = (self.servers[server].endpoint.to_string(), std::io::Error::other(why));
                return Err(NetError::Flow { number, peer, action: "continue", source }.into());
            }
            if context.stop.load(Ordering::Acquire) {
                break;
            }
        }
        local_end.cut_short();
        Ok(())
    }

    /// Shuts down both ends in order and collects the servers' reports.
    fn conclude(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        let (Some(talk), Some(local_end)) = (&mut self.talk, &mut self.local_end) else { return Ok(()) };
        std::thread::sleep(TAIL);
        let sent = local_end.stop_sending();
        talk.send_to_all(&Message::Quiet { sent })?;
        let mut quiet = vec![false; talk.len()];
        let begin_ns = context.clock.now_ns();
        while !(quiet.iter().all(|quiet| *quiet) && self.theirs.iter().all(Option::is_some)) {
            match talk.receive(KNOCK_EVERY)? {
                Some((number, Message::Quiet { .. })) => quiet[number] = true,
                Some((number, Message::Done { report })) => self.theirs[number] = Some(*report),
                Some((number, other)) => return Err(talk.unexpected(number, &other).into()),
                None => {
                    let late = self.theirs.iter().position(Option::is_none).unwrap_or(0);
                    talk.check_timeout(late, begin_ns, STEP_MAX)?;
                }
            }
            if quiet.iter().all(|quiet| *quiet) && self.mine.is_none() {
                self.mine = self.local_end.take().map(|local_end| local_end.finish("client".into(), 1));
            }
        }
        Ok(())
    }

    /// Reports of a flow from this end and from its server.
    fn reports(&self, index: usize) -> (Option<&FlowReport>, Option<&FlowReport>) {
        let each = self.spec.roles().len().max(1);
        let theirs = self.theirs.get(index / each).and_then(Option::as_ref);
        let mine = self.mine.as_ref().and_then(|report| report.flows.get(index));
        (mine, theirs.and_then(|report| report.flows.get(index % each)))
    }

    fn flow(&self, index: usize, server: usize, from_client: bool) -> NetFlow {
        let (mine, theirs) = self.reports(index);
        let (sender, receiver) = if from_client { (mine, theirs) } else { (theirs, mine) };
        NetFlow {
            number: index as u32,
            server: self.servers[server].label(),
            from_client,
            target_bytes_per_second: self.spec.rate,
            sent: sender.and_then(|report| report.moved.clone()),
            received: receiver.and_then(|report| report.moved.clone()),
            sender: sender.and_then(|report| report.transport.clone()),
            receive_buffer_bytes: receiver.and_then(|report| report.receive_buffer_bytes),
        }
    }

    /// Reports of the servers' ends, as far as received.
    fn their_ends(&self) -> impl Iterator<Item = NetEnd> {
        let pairs = self.servers.iter().zip(&self.theirs);
        pairs.filter_map(|(server, report)| {
            let end = report.as_ref()?.end.clone();
            Some(NetEnd { name: server.name.clone().unwrap_or(end.name), ..end })
        })
    }

    /// Datagram loss ledger; requires the reports of all ends.
    fn ledger(&self) -> Option<NetLedger> {
        let mine = self.mine.as_ref()?;
        let theirs: Option<Vec<&Report>> = self.theirs.iter().map(Option::as_ref).collect();
        let theirs = theirs?;
        let mut pairs = Vec::new();
        let (mut client_sends, mut server_sends) = (false, false);
        for (index, (_, role)) in self.flows.iter().enumerate() {
            let Role::Bulk { from_client } = *role else { continue };
            let (Some(here), Some(there)) = self.reports(index) else { return None };
            let (sender, receiver) = if from_client { (here, there) } else { (there, here) };
            client_sends |= from_client;
            server_sends |= !from_client;
            pairs.push(Pair { sender, receiver });
        }
        if pairs.is_empty() {
            return None;
        }
        // Ends on one machine share counters, which must count once.
        let mut hosts = vec![mine.end.host.as_str()];
        let others = theirs.iter().filter(|report| {
            let is_new = !hosts.contains(&report.end.host.as_str());
            hosts.push(&report.end.host);
            is_new
        });
        let others: Vec<_> = others.filter_map(|report| report.counters).collect();
        let here: Vec<_> = mine.counters.into_iter().collect();
        let both = || here.iter().chain(&others).copied().collect::<Vec<_>>();
        let train = self.spec.segments() as u64;
        Some(match (client_sends, server_sends, others.is_empty()) {
            (true, false, false) => ledger(&pairs, &here, &others, train),
            (false, true, false) => ledger(&pairs, &others, &here, train),
            _ => ledger(&pairs, &both(), &both(), train),
        })
    }
}

impl Workload for NetTest {
    type Measured = NetMeasured;
    type Error = WorkloadError;

    fn name(&self) -> &'static str {
        "net"
    }

    fn plan(&self) -> Footprint {
        Footprint { time: self.spec.ramp + self.spec.run + TAIL, ..Footprint::default() }
    }

    fn prepare(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        let mut talk = ControlConnections::new(Arc::clone(&context.clock));
        for server in &self.servers {
            let stream = authenticate(server, SERVE)?;
            self.reached.push(stream.peer_addr().map_err(system("read the address of a connection"))?);
            talk.add(stream).map_err(system("set up the control connection"))?;
        }
        let roles = self.spec.roles();
        let mut flows = Vec::new();
        for server in 0..self.servers.len() {
            let wires = self.open(&mut talk, server, context.clock.as_ref())?;
            for ((role, number), wire) in roles.iter().zip(0..).zip(wires) {
                self.flows.push((server, *role));
                flows.push(Flow { number, role: *role, wire, is_client: true });
            }
        }
        self.local_end = Some(LocalEnd::new(flows, &self.spec, Arc::clone(&context.clock))?);
        self.talk = Some(talk);
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        self.failure = self.run_window(context).err();
        Ok(())
    }

    fn drain(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        if self.failure.is_none() {
            self.failure = self.conclude(context).err();
        }
        // This end's report is kept even if the other end failed.
        if let Some(mut local_end) = self.local_end.take() {
            local_end.cut_short();
            local_end.stop_sending();
            self.mine = Some(local_end.finish("client".into(), 1));
        }
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), WorkloadError> {
        (self.talk, self.local_end) = (None, None);
        Ok(())
    }

    fn measured(&mut self) -> Result<NetMeasured, WorkloadError> {
        let bulk = self.flows.iter().enumerate().filter_map(|(index, (server, role))| match role {
            Role::Bulk { from_client } => Some(self.flow(index, *server, *from_client)),
            Role::Probe => None,
        });
        let probes = self.mine.iter().flat_map(|report| &report.flows);
        let run = NetRun {
            name: self.name.clone(),
            repeat: 1,
            flows: bulk.collect(),
            ends: self.mine.iter().map(|report| report.end.clone()).chain(self.their_ends()).collect(),
            ledger: if is_datagrams(&self.spec) { self.ledger() } else { None },
            latency: probes.filter_map(|flow| flow.latency.clone()).next(),
            loads: Vec::new(),
        };
        Ok(NetMeasured { run, failure: self.failure.take() })
    }
}

/// Opens the connection of a flow.
fn connect(server: SocketAddr, spec: &NetSpec, preamble: &[u8]) -> std::io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let family = if server.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Buffer sizes limit window scaling, so they are set before connecting.
    set_buffers(&socket, spec)?;
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Send,
        Some(CONNECT_MAX),
    )?;
    rustix::net::connect(&socket, &server)?;
    let mut stream = TcpStream::from(socket);
    std::io::Write::write_all(&mut stream, preamble)?;
    Ok(stream)
}

/// Creates a socket connected to the server's port.
fn knock_socket(server: SocketAddr, spec: &NetSpec) -> std::io::Result<UdpSocket> {
    let any: SocketAddr = match server.is_ipv6() {
        true => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        false => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    set_buffers(&socket, spec)?;
    socket.connect(server)?;
    Ok(socket)
}

/// Waits until one server sends a message that `wanted` accepts.
fn wait<T>(
    talk: &mut ControlConnections,
    clock: &dyn Clock,
    number: usize,
    wanted: impl Fn(Message) -> Result<T, Message>,
) -> Result<T, NetError> {
    let begin_ns = clock.now_ns();
    loop {
        match talk.receive(KNOCK_EVERY)? {
            Some((from, message)) if from == number => {
                return wanted(message).map_err(|other| talk.unexpected(number, &other));
            }
            Some((from, message)) => return Err(talk.unexpected(from, &message)),
            None => talk.check_timeout(number, begin_ns, STEP_MAX)?,
        }
    }
}

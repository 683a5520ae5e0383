//! `keepup net serve` and `keepup source --serve`: accepts and authenticates clients and hands each
//! connection to its session.
//!
//! Invariants: unauthenticated peers get no lasting memory or thread; connections, sessions and
//! waits are bounded; nothing is written to a disk.
mod session;

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_peer::{Endpoint, listen_hint};

use super::proof::{Credentials, Nonces, SECRET_BYTES, Side, is_nonce};
use super::wire::{self, CONTROL_MAGIC, FLOW_MAGIC, Message, STRANGER_BYTES_MAX, VERSION};
use crate::error::NetError;

/// Timeout of the handshake of a connection.
const GREETING_MAX: Duration = Duration::from_secs(3);
/// Longest wait for the source of another session to end.
const SOURCE_WAIT_MAX: Duration = Duration::from_secs(2);
/// Interval between checks of the stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Limits and ports of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Maximum number of concurrent sessions.
    pub sessions: u32,
    /// Maximum number of concurrent unauthenticated connections.
    pub pending: u32,
    /// Maximum number of concurrent sources; 0: the server runs no source.
    pub sources: u32,
    /// Port at which a source waits for its recorder, if its protocol requires that; 0: any free port.
    pub detector_port: u16,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { sessions: 32, pending: 64, sources: 0, detector_port: 0 }
    }
}

/// A listening server.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<NetServerState>,
    words: Receiver<String>,
}

/// State shared by all connections of a server.
struct NetServerState {
    credentials: Credentials,
    settings: ServerSettings,
    clock: Arc<dyn Clock>,
    /// Session connection channels, by session secret.
    session_channels: Mutex<HashMap<String, Sender<(u32, TcpStream)>>>,
    pending: Mutex<PendingConnections>,
    sessions: AtomicU32,
    sources: AtomicU32,
    /// Stop flag of the server.
    stop: Arc<AtomicBool>,
    /// Log messages for the operator.
    words: Sender<String>,
}

impl Listening {
    /// Listens on the first usable address of `endpoint` for clients that know the token.
    ///
    /// # Errors
    /// An address that is not a single machine, or no usable address.
    pub fn bind(
        endpoint: &Endpoint,
        credentials: Credentials,
        settings: ServerSettings,
        clock: Arc<dyn Clock>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, NetError> {
        reject_multicast(endpoint)?;
        let listen = |source: std::io::Error| {
            let hint = listen_hint(&source);
            NetError::Listen { address: endpoint.to_string(), source, hint }
        };
        let listener = TcpListener::bind(endpoint).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (sender, words) = channel();
        let state = Arc::new(NetServerState {
            credentials,
            settings,
            clock,
            session_channels: Mutex::new(HashMap::new()),
            pending: Mutex::new(PendingConnections::default()),
            sessions: AtomicU32::new(0),
            sources: AtomicU32::new(0),
            stop,
            words: sender,
        });
        Ok(Self { listener, address, state, words })
    }

    /// Local address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the stop flag is set. `log` receives messages about clients.
    pub fn serve(&self, mut log: impl FnMut(&str)) {
        while !self.state.stop.load(Ordering::Acquire) {
            match self.listener.accept() {
                Ok((stream, _)) => greet(stream, &self.state),
                // No connection, or no file descriptor left: both are temporary.
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
            self.words.try_iter().for_each(|words| log(&words));
        }
        // Sessions check the same flag, so none outlives the server for long.
        for _ in 0..100 {
            if self.state.sessions.load(Ordering::Acquire) == 0 {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.words.try_iter().for_each(|words| log(&words));
    }
}

/// Rejects an `endpoint` with multicast or broadcast addresses.
pub(super) fn reject_multicast(endpoint: &Endpoint) -> Result<(), NetError> {
    for address in endpoint.addresses() {
        let why = match address.ip() {
            ip if ip.is_multicast() => "it is a multicast address",
            IpAddr::V4(ip) if ip.is_broadcast() => "it is the broadcast address",
            _ => continue,
        };
        return Err(NetError::Address { address: address.to_string(), why });
    }
    Ok(())
}

/// Decrements a counter when dropped.
struct CountGuard<'a>(&'a AtomicU32);

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Increments a counter unless it is at its limit.
fn count(counter: &AtomicU32, most: u32) -> Option<CountGuard<'_>> {
    let counted = CountGuard(counter);
    if counter.fetch_add(1, Ordering::AcqRel) < most { Some(counted) } else { None }
}

/// Unauthenticated connections, oldest first.
#[derive(Default)]
struct PendingConnections {
    waiting: VecDeque<(u64, TcpStream)>,
    next: u64,
}

impl PendingConnections {
    /// Adds a connection. Above the limit the oldest one is closed, so that silent connections
    /// cannot lock out new clients.
    fn enter(&mut self, stream: TcpStream, most: u32) -> u64 {
        if self.waiting.len() >= most as usize
            && let Some((_, oldest)) = self.waiting.pop_front()
        {
            drop(oldest.shutdown(Shutdown::Both));
        }
        self.next += 1;
        self.waiting.push_back((self.next, stream));
        self.next
    }

    fn leave(&mut self, number: u64) {
        self.waiting.retain(|(waiting, _)| *waiting != number);
    }
}

/// Starts a thread for a connection.
fn greet(stream: TcpStream, state: &Arc<NetServerState>) {
    // Without a descriptor or thread the connection is closed.
    let Ok(handle) = stream.try_clone() else { return };
    let number = state.pending().enter(handle, state.settings.pending);
    let shared = Arc::clone(state);
    let meet = move || {
        let introduced = read_preamble(stream, &shared);
        shared.pending().leave(number);
        if let Ok(Some((stream, proof))) = introduced {
            host(stream, proof, &shared);
        }
    };
    if std::thread::Builder::new().name("ku-net-session".into()).spawn(meet).is_err() {
        state.pending().leave(number);
    }
}

/// Reads the preamble of a connection. A flow goes to its session; the control connection of an
/// authenticated client is returned with the server's proof.
fn read_preamble(
    mut stream: TcpStream,
    state: &NetServerState,
) -> std::io::Result<Option<(TcpStream, String)>> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(GREETING_MAX))?;
    stream.set_write_timeout(Some(GREETING_MAX))?;
    let mut magic = [0; 8];
    stream.read_exact(&mut magic)?;
    match magic {
        CONTROL_MAGIC => {}
        FLOW_MAGIC => {
            let (mut secret, mut number) = ([0; SECRET_BYTES], [0; 4]);
            stream.read_exact(&mut secret)?;
            stream.read_exact(&mut number)?;
            let place = state.session_channels().get(&String::from_utf8_lossy(&secret).into_owned()).cloned();
            if let Some(place) = place {
                drop(place.send((u32::from_le_bytes(number), stream)));
            }
            return Ok(None);
        }
        _ => return Ok(None),
    }
    verify_client(&mut stream, state).map(|proof| proof.map(|proof| (stream, proof)))
}

/// Authenticates a client; returns the server's own proof.
fn verify_client(stream: &mut TcpStream, state: &NetServerState) -> std::io::Result<Option<String>> {
    let (version, client) = match wire::read(stream, STRANGER_BYTES_MAX) {
        Ok(Some(Message::Hello { version, nonce })) if is_nonce(&nonce) => (version, nonce),
        Ok(None) => return Ok(None),
        // Version 2 sent the token itself.
        Ok(Some(_)) | Err(_) => {
            return refuse(stream, state, other_version("another version"), "no hello message");
        }
    };
    let nonces = Nonces { client, server: state.credentials.draw()? };
    wire::write(stream, &Message::Challenge { version: VERSION, nonce: nonces.server.clone() })?;
    let Some(Message::Proof { proof }) = wire::read(stream, STRANGER_BYTES_MAX)? else { return Ok(None) };
    // The token comes first: no version is accepted without it.
    if !state.credentials.accepts(Side::Client, &nonces, &proof) {
        let why = "the token is wrong: use the one that the server printed".to_owned();
        return refuse(stream, state, why, "wrong token");
    }
    if version != VERSION {
        let theirs = format!("version {version}");
        return refuse(stream, state, other_version(&theirs), &format!("it uses protocol {theirs}"));
    }
    Ok(Some(state.credentials.prove(Side::Server, &nonces)))
}

fn other_version(theirs: &str) -> String {
    format!(
        "the server uses protocol version {VERSION}, the client {theirs}; \
         use the same version of keepup on both machines"
    )
}

/// Refuses a client with `why` and logs `note`.
fn refuse(
    stream: &mut TcpStream,
    state: &NetServerState,
    why: String,
    note: &str,
) -> std::io::Result<Option<String>> {
    let peer = stream.peer_addr()?;
    drop(state.words.send(format!("{peer}: refused, {note}")));
    wire::write(stream, &Message::Refused { why })?;
    Ok(None)
}

/// Runs one session, from the welcome message to its end.
fn host(mut stream: TcpStream, proof: String, state: &NetServerState) {
    let Ok(peer) = stream.peer_addr() else { return };
    let Some(session) = count(&state.sessions, state.settings.sessions) else {
        let why = format!("the server is busy with {} sessions, its maximum", state.settings.sessions);
        drop(wire::write(&mut stream, &Message::Refused { why }));
        return;
    };
    let log = |words: String| drop(state.words.send(format!("{peer}: {words}")));
    match session::serve(stream, proof, state, &log) {
        Ok(()) => {}
        Err(why) => log(Cause::of(&why).to_text()),
    }
    drop(session);
}

impl NetServerState {
    fn pending(&self) -> MutexGuard<'_, PendingConnections> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session_channels(&self) -> MutexGuard<'_, HashMap<String, Sender<(u32, TcpStream)>>> {
        self.session_channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new session secret; returns it with the channel of the session's connections.
    ///
    /// # Errors
    /// No random bytes from the system.
    fn open(&self) -> std::io::Result<(Secret<'_>, Receiver<(u32, TcpStream)>)> {
        let text = self.credentials.draw()?;
        let (sender, receiver) = channel();
        self.session_channels().insert(text.clone(), sender);
        Ok((Secret { state: self, text }, receiver))
    }

    /// Permission to run a source, until dropped; none after a short wait while other clients use it. A
    /// client that starts one source after another may be faster than the end of its last session.
    fn take_source(&self) -> Option<CountGuard<'_>> {
        let begin_ns = self.clock.now_ns();
        loop {
            let taken = count(&self.sources, self.settings.sources);
            let waited_ns = self.clock.now_ns().saturating_sub(begin_ns);
            if taken.is_some() || !self.runs_sources() || waited_ns > SOURCE_WAIT_MAX.as_nanos() as u64 {
                return taken;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Whether clients may use a source.
    fn runs_sources(&self) -> bool {
        self.settings.sources > 0
    }

    /// Number of active sessions.
    fn sessions(&self) -> u32 {
        self.sessions.load(Ordering::Acquire)
    }
}

/// A session's secret, unregistered when dropped.
struct Secret<'a> {
    state: &'a NetServerState,
    text: String,
}

impl Drop for Secret<'_> {
    fn drop(&mut self) {
        self.state.session_channels().remove(&self.text);
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

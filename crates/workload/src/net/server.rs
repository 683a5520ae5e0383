//! `keepup net serve`: waits for clients, asks each for the token, and gives every connection to its session.
//!
//! Invariants: nobody gets memory or a thread for long without the token; connections, sessions and waiting
//! times are bounded; nothing is written to a disk.
use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;

use super::error::NetError;
use super::proof::{Credentials, Nonces, SECRET_BYTES, Side, is_nonce};
use super::session;
use super::wire::{self, CONTROL_MAGIC, FLOW_MAGIC, Message, STRANGER_BYTES_MAX, VERSION};
use crate::error::listen_hint;

/// How long a connection may take to say what it is.
const GREETING_MAX: Duration = Duration::from_secs(3);
/// How often the server looks whether it should end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Bounds of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Sessions at the same time.
    pub sessions: u32,
    /// Connections at the same time that have not yet said what they are.
    pub strangers: u32,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { sessions: 32, strangers: 64 }
    }
}

/// A server that can be connected to.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    desk: Arc<Desk>,
    words: Receiver<String>,
}

/// What all connections of a server share.
pub(super) struct Desk {
    credentials: Credentials,
    limits: ServerLimits,
    pub(super) clock: Arc<dyn Clock>,
    /// Where the connections of a session go, by its secret.
    places: Mutex<HashMap<String, Sender<(u32, TcpStream)>>>,
    strangers: Mutex<Strangers>,
    sessions: AtomicU32,
    /// The server ends.
    pub(super) stop: Arc<AtomicBool>,
    /// What people are told.
    words: Sender<String>,
}

impl Listening {
    /// Listens at the first address of `endpoint` that works, for clients that know the token.
    ///
    /// # Errors
    /// An address that is not one machine, and when none can be listened at.
    pub fn bind(
        endpoint: &Endpoint,
        credentials: Credentials,
        limits: ServerLimits,
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
        let desk = Arc::new(Desk {
            credentials,
            limits,
            clock,
            places: Mutex::new(HashMap::new()),
            strangers: Mutex::new(Strangers::default()),
            sessions: AtomicU32::new(0),
            stop,
            words: sender,
        });
        Ok(Self { listener, address, desk, words })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until told to stop. `say` is told who comes and goes.
    pub fn serve(&self, mut say: impl FnMut(&str)) {
        while !self.desk.stop.load(Ordering::Acquire) {
            match self.listener.accept() {
                Ok((stream, _)) => greet(stream, &self.desk),
                // Nobody, or no descriptor left: both pass.
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
            self.words.try_iter().for_each(|words| say(&words));
        }
        // Sessions see the same switch; none outlives the server for long.
        for _ in 0..100 {
            if self.desk.sessions.load(Ordering::Acquire) == 0 {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.words.try_iter().for_each(|words| say(&words));
    }
}

/// Fails when an address of `endpoint` is not one machine.
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

/// Counts something down when it ends.
struct Counted<'a>(&'a AtomicU32);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One more, if that is within the limit.
fn count(counter: &AtomicU32, most: u32) -> Option<Counted<'_>> {
    let counted = Counted(counter);
    if counter.fetch_add(1, Ordering::AcqRel) < most { Some(counted) } else { None }
}

/// Connections that have not yet said what they are, oldest first.
#[derive(Default)]
struct Strangers {
    waiting: VecDeque<(u64, TcpStream)>,
    next: u64,
}

impl Strangers {
    /// One more; when there are too many the one that has said nothing for longest goes, so that a crowd of
    /// silent ones keeps nobody out.
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

/// Gives a connection a thread of its own.
fn greet(stream: TcpStream, desk: &Arc<Desk>) {
    // Without a descriptor or a thread for it, it is closed.
    let Ok(handle) = stream.try_clone() else { return };
    let number = desk.strangers().enter(handle, desk.limits.strangers);
    let shared = Arc::clone(desk);
    let meet = move || {
        let introduced = introduce(stream, &shared);
        shared.strangers().leave(number);
        if let Ok(Some((stream, proof))) = introduced {
            host(stream, proof, &shared);
        }
    };
    if std::thread::Builder::new().name("ku-net-session".into()).spawn(meet).is_err() {
        desk.strangers().leave(number);
    }
}

/// Hears what a connection is. One of a flow goes to its session; the control connection of a client that
/// knows the token comes back, with the server's own proof.
fn introduce(mut stream: TcpStream, desk: &Desk) -> std::io::Result<Option<(TcpStream, String)>> {
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
            let place = desk.places().get(&String::from_utf8_lossy(&secret).into_owned()).cloned();
            if let Some(place) = place {
                drop(place.send((u32::from_le_bytes(number), stream)));
            }
            return Ok(None);
        }
        _ => return Ok(None),
    }
    admit(&mut stream, desk).map(|proof| proof.map(|proof| (stream, proof)))
}

/// Lets the client prove that it knows the token; the server's proof, for one that does.
fn admit(stream: &mut TcpStream, desk: &Desk) -> std::io::Result<Option<String>> {
    let (version, client) = match wire::read(stream, STRANGER_BYTES_MAX) {
        Ok(Some(Message::Hello { version, nonce })) if is_nonce(&nonce) => (version, nonce),
        Ok(None) => return Ok(None),
        // Version 2 sent the token itself.
        Ok(Some(_)) | Err(_) => return refuse(stream, desk, other_version("another version"), "no greeting"),
    };
    let nonces = Nonces { client, server: desk.credentials.draw()? };
    wire::write(stream, &Message::Challenge { version: VERSION, nonce: nonces.server.clone() })?;
    let Some(Message::Proof { proof }) = wire::read(stream, STRANGER_BYTES_MAX)? else { return Ok(None) };
    // The token first: no version lets a client in without it.
    if !desk.credentials.accepts(Side::Client, &nonces, &proof) {
        let why = "the token is wrong: take the one that the server printed".to_owned();
        return refuse(stream, desk, why, "it does not know the token");
    }
    if version != VERSION {
        let theirs = format!("version {version}");
        return refuse(stream, desk, other_version(&theirs), &format!("it has {theirs} of the conversation"));
    }
    Ok(Some(desk.credentials.prove(Side::Server, &nonces)))
}

fn other_version(theirs: &str) -> String {
    format!(
        "this server has version {VERSION} of the conversation and the client {theirs}; \
         take the same keepup on both machines"
    )
}

/// Refuses a client, telling it `why`, and people `note`.
fn refuse(stream: &mut TcpStream, desk: &Desk, why: String, note: &str) -> std::io::Result<Option<String>> {
    let peer = stream.peer_addr()?;
    drop(desk.words.send(format!("{peer}: refused, {note}")));
    wire::write(stream, &Message::Refused { why })?;
    Ok(None)
}

/// One session from the welcome to the end.
fn host(mut stream: TcpStream, proof: String, desk: &Desk) {
    let Ok(peer) = stream.peer_addr() else { return };
    let Some(session) = count(&desk.sessions, desk.limits.sessions) else {
        let why = format!("{} sessions are under way, more are not possible", desk.limits.sessions);
        drop(wire::write(&mut stream, &Message::Refused { why }));
        return;
    };
    let say = |words: String| drop(desk.words.send(format!("{peer}: {words}")));
    match session::serve(stream, proof, desk, &say) {
        Ok(()) => {}
        Err(why) => say(why.to_string()),
    }
    drop(session);
}

impl Desk {
    fn strangers(&self) -> MutexGuard<'_, Strangers> {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn places(&self) -> MutexGuard<'_, HashMap<String, Sender<(u32, TcpStream)>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A secret that no session has, and where its connections come.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub(super) fn open(&self) -> std::io::Result<(Secret<'_>, Receiver<(u32, TcpStream)>)> {
        let text = self.credentials.draw()?;
        let (sender, receiver) = channel();
        self.places().insert(text.clone(), sender);
        Ok((Secret { desk: self, text }, receiver))
    }

    /// Sessions under way.
    pub(super) fn sessions(&self) -> u32 {
        self.sessions.load(Ordering::Acquire)
    }
}

/// A session's secret; taken back when dropped.
pub(super) struct Secret<'a> {
    desk: &'a Desk,
    pub(super) text: String,
}

impl Drop for Secret<'_> {
    fn drop(&mut self) {
        self.desk.places().remove(&self.text);
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

//! Control connection of a session: incoming messages as a channel, keep-alive and silence timeout.
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use keepup_measure::clock::Clock;

use super::wire::{self, MESSAGE_BYTES_MAX, Message};
use crate::error::NetError;

/// Keep-alive interval.
pub(super) const ALIVE_EVERY: Duration = Duration::from_millis(500);
/// Longest silence of the peer before the session fails.
pub(super) const SILENCE_MAX: Duration = Duration::from_millis(3500);

/// Event on a control connection.
enum Heard {
    Message(Message),
    /// The connection ended, in order or with an error.
    Ended(Option<std::io::Error>),
}

/// One control connection, closed when dropped.
struct Control {
    stream: TcpStream,
    peer: String,
    heard_ns: u64,
    sent_ns: u64,
}

impl Control {
    /// Takes over an authenticated connection. Incoming events are sent to `heard` with `tag`.
    fn start(
        stream: TcpStream,
        tag: usize,
        heard: Sender<(usize, Heard)>,
        now_ns: u64,
    ) -> std::io::Result<Self> {
        let peer = stream.peer_addr()?.to_string();
        stream.set_nodelay(true)?;
        stream.set_read_timeout(None)?;
        // Messages are small: a blocked write means that the peer does not read.
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        let mut from = stream.try_clone()?;
        let listen = move || {
            loop {
                let event = match wire::read(&mut from, MESSAGE_BYTES_MAX) {
                    Ok(Some(message)) => Heard::Message(message),
                    Ok(None) => Heard::Ended(None),
                    Err(why) => Heard::Ended(Some(why)),
                };
                let was_last = matches!(event, Heard::Ended(_));
                if heard.send((tag, event)).is_err() || was_last {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("ku-net-control".into()).spawn(listen)?;
        Ok(Self { stream, peer, heard_ns: now_ns, sent_ns: now_ns })
    }

    fn send(&mut self, message: &Message, now_ns: u64) -> Result<(), NetError> {
        self.sent_ns = now_ns;
        let gone = |why| NetError::Disconnected { peer: self.peer.clone(), why: Some(why) };
        wire::write(&mut self.stream, message).and_then(|()| self.stream.flush()).map_err(gone)
    }

    /// Sends a keep-alive message when one is due; fails when the peer has been silent too long.
    fn keep_alive(&mut self, now_ns: u64) -> Result<(), NetError> {
        let silence = Duration::from_nanos(now_ns.saturating_sub(self.heard_ns));
        if silence > SILENCE_MAX {
            return Err(NetError::Silent { peer: self.peer.clone(), silence });
        }
        match now_ns.saturating_sub(self.sent_ns) >= ALIVE_EVERY.as_nanos() as u64 {
            true => self.send(&Message::Alive, now_ns),
            false => Ok(()),
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(self.stream.shutdown(Shutdown::Both));
    }
}

/// The control connections of one session: one at a server, one per server at a client.
pub(super) struct ControlConnections {
    controls: Vec<Control>,
    /// Time of the last receive call.
    listened_ns: u64,
    clock: Arc<dyn Clock>,
    inbox: Receiver<(usize, Heard)>,
    outbox: Sender<(usize, Heard)>,
}

impl ControlConnections {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let (outbox, inbox) = channel();
        Self { controls: Vec::new(), listened_ns: clock.now_ns(), clock, inbox, outbox }
    }

    /// Adds an authenticated connection and returns its number.
    pub(super) fn add(&mut self, stream: TcpStream) -> std::io::Result<usize> {
        let number = self.controls.len();
        let outbox = self.outbox.clone();
        self.controls.push(Control::start(stream, number, outbox, self.clock.now_ns())?);
        Ok(number)
    }

    /// Time on the clock of the silence, ns.
    pub(super) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Number of connections.
    pub(super) fn len(&self) -> usize {
        self.controls.len()
    }

    /// Address of the peer.
    pub(super) fn peer(&self, number: usize) -> &str {
        self.controls.get(number).map_or("", |control| &control.peer)
    }

    pub(super) fn send(&mut self, number: usize, message: &Message) -> Result<(), NetError> {
        let now_ns = self.clock.now_ns();
        self.controls.get_mut(number).map_or(Ok(()), |control| control.send(message, now_ns))
    }

    pub(super) fn send_to_all(&mut self, message: &Message) -> Result<(), NetError> {
        (0..self.len()).try_for_each(|number| self.send(number, message))
    }

    /// Next message and the number of its connection, or none after `patience`. Sends keep-alive
    /// messages on all connections as needed.
    ///
    /// # Errors
    /// The peer disconnected, refused, or was silent too long.
    pub(super) fn receive(&mut self, patience: Duration) -> Result<Option<(usize, Message)>, NetError> {
        let patience = patience.min(ALIVE_EVERY);
        let heard = self.inbox.recv_timeout(patience);
        let now_ns = self.clock.now_ns();
        self.excuse(now_ns, patience);
        if let Ok((number, Heard::Message(_))) = &heard {
            // Send keep-alives first: this thread may have been suspended while the peers were not.
            self.controls[*number].heard_ns = now_ns;
        }
        let event = match heard {
            Ok((number, Heard::Message(Message::Refused { why }))) => {
                return Err(NetError::Refused { server: self.peer(number).to_owned(), why });
            }
            Ok((number, Heard::Ended(why))) => {
                return Err(NetError::Disconnected { peer: self.peer(number).to_owned(), why });
            }
            Ok((_, Heard::Message(Message::Alive))) | Err(RecvTimeoutError::Timeout) => None,
            Ok((number, Heard::Message(message))) => Some((number, message)),
            // This end holds a sender, so the channel cannot be disconnected.
            Err(RecvTimeoutError::Disconnected) => None,
        };
        for control in &mut self.controls {
            control.keep_alive(now_ns)?;
        }
        Ok(event)
    }

    /// Time in which this end was suspended (for example a paused virtual machine) does not count
    /// as silence of the peers.
    fn excuse(&mut self, now_ns: u64, patience: Duration) {
        let passed = Duration::from_nanos(now_ns.saturating_sub(self.listened_ns));
        self.listened_ns = now_ns;
        let away = passed.saturating_sub(patience);
        if away > ALIVE_EVERY {
            for control in &mut self.controls {
                control.heard_ns = (control.heard_ns + away.as_nanos() as u64).min(now_ns);
            }
        }
    }

    /// Error for a message that the protocol does not allow now.
    pub(super) fn unexpected(&self, number: usize, message: &Message) -> NetError {
        let text = format!("{message:?}");
        let name = text.split([' ', '{']).next().unwrap_or("").to_owned();
        NetError::Protocol { peer: self.peer(number).into(), what: format!("unexpected {name} message") }
    }

    /// Fails when more than `most` has passed since `begin_ns`.
    pub(super) fn check_timeout(&self, number: usize, begin_ns: u64, most: Duration) -> Result<(), NetError> {
        let silence = Duration::from_nanos(self.clock.now_ns().saturating_sub(begin_ns));
        match silence > most {
            true => Err(NetError::Late { peer: self.peer(number).into(), silence }),
            false => Ok(()),
        }
    }
}

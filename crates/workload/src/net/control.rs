//! The control connection of a session: what the other end says, in a channel, and when it was last heard.
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use keepup_measure::clock::Clock;

use super::error::NetError;
use super::wire::{self, MESSAGE_BYTES_MAX, Message};

/// How often each end says that it is there.
pub(super) const ALIVE_EVERY: Duration = Duration::from_millis(500);
/// How long the other end may say nothing.
pub(super) const SILENCE_MAX: Duration = Duration::from_millis(3500);

/// What was heard.
enum Heard {
    Message(Message),
    /// It has ended, in order or not.
    Ended(Option<std::io::Error>),
}

/// One control connection. Dropping it closes it.
struct Control {
    stream: TcpStream,
    peer: String,
    heard_ns: u64,
    said_ns: u64,
}

impl Control {
    /// Takes over a connection on which the token was shown. Whatever is heard goes to `heard`, with `tag`.
    fn start(
        stream: TcpStream,
        tag: usize,
        heard: Sender<(usize, Heard)>,
        now_ns: u64,
    ) -> std::io::Result<Self> {
        let peer = stream.peer_addr()?.to_string();
        stream.set_nodelay(true)?;
        stream.set_read_timeout(None)?;
        // The messages are small: a write that waits means that the other end reads nothing.
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        let mut from = stream.try_clone()?;
        let listen = move || {
            loop {
                let said = match wire::read(&mut from, MESSAGE_BYTES_MAX) {
                    Ok(Some(message)) => Heard::Message(message),
                    Ok(None) => Heard::Ended(None),
                    Err(why) => Heard::Ended(Some(why)),
                };
                let was_last = matches!(said, Heard::Ended(_));
                if heard.send((tag, said)).is_err() || was_last {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("ku-net-control".into()).spawn(listen)?;
        Ok(Self { stream, peer, heard_ns: now_ns, said_ns: now_ns })
    }

    fn say(&mut self, message: &Message, now_ns: u64) -> Result<(), NetError> {
        self.said_ns = now_ns;
        let gone = |why| NetError::Gone { peer: self.peer.clone(), why: Some(why) };
        wire::write(&mut self.stream, message).and_then(|()| self.stream.flush()).map_err(gone)
    }

    /// Says that this end is there, when it is time to, and fails when the other has not for too long.
    fn keep_alive(&mut self, now_ns: u64) -> Result<(), NetError> {
        let silence = Duration::from_nanos(now_ns.saturating_sub(self.heard_ns));
        if silence > SILENCE_MAX {
            return Err(NetError::Silent { peer: self.peer.clone(), silence });
        }
        match now_ns.saturating_sub(self.said_ns) >= ALIVE_EVERY.as_nanos() as u64 {
            true => self.say(&Message::Alive, now_ns),
            false => Ok(()),
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(self.stream.shutdown(Shutdown::Both));
    }
}

/// The control connections of one session: one at a server, one for each server at a client.
pub(super) struct Conversation {
    controls: Vec<Control>,
    /// When it was last listened.
    listened_ns: u64,
    clock: Arc<dyn Clock>,
    inbox: Receiver<(usize, Heard)>,
    outbox: Sender<(usize, Heard)>,
}

impl Conversation {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let (outbox, inbox) = channel();
        Self { controls: Vec::new(), listened_ns: clock.now_ns(), clock, inbox, outbox }
    }

    /// Adds a connection on which the token was shown; its number.
    pub(super) fn add(&mut self, stream: TcpStream) -> std::io::Result<usize> {
        let number = self.controls.len();
        let outbox = self.outbox.clone();
        self.controls.push(Control::start(stream, number, outbox, self.clock.now_ns())?);
        Ok(number)
    }

    /// Number of connections.
    pub(super) fn len(&self) -> usize {
        self.controls.len()
    }

    /// Address of the other end.
    pub(super) fn peer(&self, number: usize) -> &str {
        self.controls.get(number).map_or("", |control| &control.peer)
    }

    pub(super) fn say(&mut self, number: usize, message: &Message) -> Result<(), NetError> {
        let now_ns = self.clock.now_ns();
        self.controls.get_mut(number).map_or(Ok(()), |control| control.say(message, now_ns))
    }

    pub(super) fn say_to_all(&mut self, message: &Message) -> Result<(), NetError> {
        (0..self.len()).try_for_each(|number| self.say(number, message))
    }

    /// The next thing said, and by whom; none when `patience` is over. Says on all connections that this
    /// end is there, as often as needed.
    ///
    /// # Errors
    /// An end that has gone, refuses or is silent for too long.
    pub(super) fn hear(&mut self, patience: Duration) -> Result<Option<(usize, Message)>, NetError> {
        let patience = patience.min(ALIVE_EVERY);
        let heard = self.inbox.recv_timeout(patience);
        let now_ns = self.clock.now_ns();
        self.excuse(now_ns, patience);
        if let Ok((number, Heard::Message(_))) = &heard {
            // Before the others are asked: this thread may have been away for long, they were not.
            self.controls[*number].heard_ns = now_ns;
        }
        let said = match heard {
            Ok((number, Heard::Message(Message::Refused { why }))) => {
                return Err(NetError::Refused { server: self.peer(number).to_owned(), why });
            }
            Ok((number, Heard::Ended(why))) => {
                return Err(NetError::Gone { peer: self.peer(number).to_owned(), why });
            }
            Ok((_, Heard::Message(Message::Alive))) | Err(RecvTimeoutError::Timeout) => None,
            Ok((number, Heard::Message(message))) => Some((number, message)),
            // This end holds a sender too.
            Err(RecvTimeoutError::Disconnected) => None,
        };
        for control in &mut self.controls {
            control.keep_alive(now_ns)?;
        }
        Ok(said)
    }

    /// While this end itself stood still, as in a virtual machine that was not let run, nobody was silent.
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

    /// What it is when the other end says something out of its turn.
    pub(super) fn unexpected(&self, number: usize, message: &Message) -> NetError {
        let text = format!("{message:?}");
        let name = text.split([' ', '{']).next().unwrap_or("").to_owned();
        NetError::Conversation { peer: self.peer(number).into(), what: format!("{name} was not its turn") }
    }

    /// Fails when more than `most` has passed since `begin_ns`.
    pub(super) fn in_time(&self, number: usize, begin_ns: u64, most: Duration) -> Result<(), NetError> {
        let silence = Duration::from_nanos(self.clock.now_ns().saturating_sub(begin_ns));
        match silence > most {
            true => Err(NetError::Late { peer: self.peer(number).into(), silence }),
            false => Ok(()),
        }
    }
}

//! Ports at which simulated detectors wait for their receivers.
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::client::ClientError;
use crate::time::monotonic_ns;

/// Action in errors of waiting.
const WAIT: &str = "wait for a receiver at";

/// Port at which a simulated detector waits for its receiver.
#[derive(Clone, Debug)]
pub struct Door {
    listener: Arc<TcpListener>,
    addr: SocketAddr,
    patience: Option<Duration>,
    /// The only address from which receivers connect; none: any.
    only_from: Option<IpAddr>,
    /// Connections of receivers that have everything.
    served: Arc<Mutex<Vec<TcpStream>>>,
}

impl Door {
    /// Opens a port; `patience` is the longest wait for a receiver, `None` for any time.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn open(at: SocketAddr, patience: Option<Duration>) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        Ok(Self { listener: Arc::new(listener), addr, patience, only_from: None, served: Arc::default() })
    }

    /// Closes connections from other addresses than `only_from` at once.
    #[must_use]
    pub fn only_from(self, only_from: IpAddr) -> Self {
        Self { only_from: Some(only_from.to_canonical()), ..self }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addr
    }

    /// The listening socket.
    pub(super) fn listener(&self) -> &TcpListener {
        &self.listener
    }

    /// Keeps the connection of a receiver that has everything open until the port is closed, as servers do
    /// that outlive a run.
    pub(super) fn keep(&self, socket: TcpStream) {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
    }

    /// A connection that has arrived, without waiting.
    pub(super) fn accept(&self) -> Result<Option<(TcpStream, SocketAddr)>, ClientError> {
        loop {
            match self.listener.accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                // The caller checks its limits before the next one: strangers may come without end.
                Ok((_, peer)) if !self.admits(peer.ip()) => return Ok(None),
                accepted => return accepted.map(Some).map_err(|source| self.failed(source)),
            }
        }
    }

    fn admits(&self, peer: IpAddr) -> bool {
        self.only_from.is_none_or(|only_from| only_from == peer.to_canonical())
    }

    /// Error of waiting.
    pub(super) fn failed(&self, source: io::Error) -> ClientError {
        ClientError::Io { action: WAIT, addr: self.addr, source }
    }

    /// A wait for a receiver that begins now and ends when `stop` is set.
    pub(super) fn wait<'a>(&'a self, stop: &'a AtomicBool) -> Wait<'a> {
        Wait { door: self, stop, begin_ns: monotonic_ns(), failure: None }
    }
}

/// A wait for a receiver.
pub(super) struct Wait<'a> {
    door: &'a Door,
    stop: &'a AtomicBool,
    begin_ns: u64,
    failure: Option<ClientError>,
}

impl Wait<'_> {
    /// Notes that a peer at `addr` was not a receiver. Others, such as port scanners, may connect.
    pub(super) fn rejected(&mut self, addr: SocketAddr, source: io::Error) {
        self.failure = Some(ClientError::Io { action: "greet", addr, source });
    }

    /// Checks whether to go on.
    ///
    /// # Errors
    /// Stopped, or no receiver came in time: the last one that was rejected, if any.
    pub(super) fn check(&mut self) -> Result<(), ClientError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ClientError::Stopped);
        }
        let waited = Duration::from_nanos(monotonic_ns() - self.begin_ns);
        if self.door.patience.is_some_and(|most| waited >= most) {
            let timeout = || ClientError::TimedOut { action: WAIT, addr: self.door.addr, waited };
            return Err(self.failure.take().unwrap_or_else(timeout));
        }
        Ok(())
    }
}

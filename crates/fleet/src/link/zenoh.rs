//! Links over a network, by Zenoh.
//!
//! The controller is a router that listens on one TCP port; the hosts are clients, which dial out and listen
//! nowhere. Discovery is off: no multicast, no gossip. A TLS connection requires the certificates of this
//! controller and its agents. A session requires the host's password, which is derived from its token;
//! messages are authenticated in addition ([`super::seal`]).
//!
//! Keys: `keepup/HOST/heartbeat`, `keepup/HOST/order`; liveliness tokens `keepup/HOST/alive/INCARNATION` of
//! the hosts and `keepup/alive` of the controller.
mod certificates;
mod closing;
mod config;
mod memory_file;
mod refusal;

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use ::zenoh::key_expr::KeyExpr;
use ::zenoh::qos::{CongestionControl, Priority};
use ::zenoh::sample::{Sample, SampleKind};
use ::zenoh::{Session, Wait as _};
use keepup_error::Cause;
use keepup_peer::Token;

pub use self::certificates::ControllerTls;
use self::certificates::TlsFiles;
use self::closing::ClosedOnDrop;
use self::memory_file::MemoryFile;
use super::ends::{AgentEnd, ControllerEnd};
use super::{AgentLink, ControllerLink, FromController, FromHost, Secret, Traffic, Waker, seal};
use crate::error::FleetError;
use crate::message::{Heartbeat, HostId, Order};
use crate::tls::AgentTls;

/// Key of the controller's liveliness token.
const ALIVE: &str = "keepup/alive";
/// Timeout for discovering the controller's liveliness token.
const ALIVE_TIME: Duration = Duration::from_secs(5);
/// Attempts to open a session, and the time between them.
const ATTEMPTS: u32 = 4;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(500);
/// Hint of an agent that has no session.
const JOIN_HINT: &str = "a token is valid until its controller ends; `keepup fleet up FILE` starts both";

/// End of the controller.
pub struct ZenohController {
    end: Arc<ControllerEnd>,
    session: ClosedOnDrop,
}

impl ZenohController {
    /// Listens on `address` for hosts 0 to `hosts` - 1, with TLS if there are certificates.
    ///
    /// # Errors
    /// An address on which it cannot listen.
    pub fn listen(
        address: SocketAddr,
        secret: &Secret,
        hosts: HostId,
        tls: Option<&ControllerTls>,
    ) -> Result<Self, FleetError> {
        let failed = |why: String| FleetError::Listen { address: address.to_string(), why: why.into() };
        let end = Arc::new(ControllerEnd::new(secret, hosts).map_err(|error| failed(error.to_string()))?);
        // Zenoh's text for an address in use has source lines.
        drop(TcpListener::bind(address).map_err(|error| failed(error.to_string()))?);
        let session = open_router(address, secret, hosts, tls).map_err(failed)?;
        subscribe(&session, "keepup/*/heartbeat", {
            let end = Arc::clone(&end);
            move |sample| end.accept(host_of(sample.key_expr()), &sample.payload().to_bytes())
        })
        .map_err(failed)?;
        watch(&session, "keepup/*/alive/*", {
            let end = Arc::clone(&end);
            move |sample| {
                if let Some((host, incarnation)) = incarnation_of(sample.key_expr())
                    && sample.kind() == SampleKind::Delete
                {
                    end.close(host, incarnation);
                }
            }
        })
        .map_err(failed)?;
        let alive = session.liveliness().declare_token(ALIVE).wait().map_err(|e| failed(e.to_string()))?;
        Ok(Self { end, session: ClosedOnDrop::new(session, alive) })
    }
}

/// Opens the session of the controller.
fn open_router(
    address: SocketAddr,
    secret: &Secret,
    hosts: HostId,
    tls: Option<&ControllerTls>,
) -> Result<Session, String> {
    let mut users = String::new();
    for host in 0..hosts {
        let token = secret.token(host).map_err(|error| error.to_string())?;
        users.push_str(&format!("{}:{}\n", user(host), seal::password(&token)));
    }
    // Zenoh reads the files now.
    let dictionary = MemoryFile::create(&users).map_err(|e| format!("cannot store passwords: {e}"))?;
    let files = tls.map(TlsFiles::of_controller).transpose();
    let files = files.map_err(|error| format!("cannot store certificates: {error}"))?;
    let config = config::router(address, &dictionary.path(), hosts, files.as_ref());
    let config = config.map_err(|error| error.to_string())?;
    ::zenoh::open(config).wait().map_err(|error| error.to_string())
}

impl ControllerLink for ZenohController {
    fn send(&mut self, order: &Order) {
        if let Some(bytes) = self.end.seal(order) {
            put(self.session.get(), format!("keepup/{}/order", order.host), bytes);
        }
    }

    fn receive(&mut self, timeout: Duration) -> Option<FromHost> {
        self.end.receive(timeout)
    }

    fn traffic(&self) -> Traffic {
        self.end.traffic()
    }

    fn waker(&self) -> Waker {
        let end = Arc::clone(&self.end);
        Waker::new(move || end.wake())
    }
}

/// End of a host.
pub struct ZenohAgent {
    end: Arc<AgentEnd>,
    session: ClosedOnDrop,
    key: String,
    /// Zenoh reads them at each connection.
    _files: Option<TlsFiles>,
}

impl ZenohAgent {
    /// Connects to the controller at `address`, with TLS if there are certificates. Reconnects when the
    /// connection is lost.
    ///
    /// # Errors
    /// No controller there, another one, or one that does not know this token.
    pub fn connect(
        address: SocketAddr,
        host: HostId,
        incarnation: u64,
        token: &Token,
        tls: Option<&AgentTls>,
    ) -> Result<Self, FleetError> {
        let failed = |why: Cause| FleetError::Join { address: address.to_string(), why };
        let text = |why: String| failed(why.into());
        let end = Arc::new(AgentEnd::new(host, token));
        let files = tls.map(TlsFiles::of_agent).transpose();
        let files = files.map_err(|error| text(format!("cannot store certificates: {error}")))?;
        let session = open_client(address, host, token, files.as_ref());
        let session = session
            .map_err(|error| text(error.to_string()))?
            .ok_or_else(|| failed(Cause::new(refusal::cause(address, tls)).with_hint(JOIN_HINT)))?;
        subscribe(&session, &format!("keepup/{host}/order"), {
            let end = Arc::clone(&end);
            move |sample| end.accept(&sample.payload().to_bytes())
        })
        .map_err(text)?;
        let (found, is_found) = mpsc::channel();
        watch(&session, ALIVE, {
            let end = Arc::clone(&end);
            move |sample| match sample.kind() {
                // Only the first one has a receiver.
                SampleKind::Put => drop(found.send(())),
                SampleKind::Delete => end.close(),
            }
        })
        .map_err(text)?;
        // Its loss is reported only if the token was seen before.
        is_found.recv_timeout(ALIVE_TIME).map_err(|_| text("no controller there".to_owned()))?;
        let alive = session.liveliness().declare_token(format!("keepup/{host}/alive/{incarnation}"));
        let alive = alive.wait().map_err(|error| text(error.to_string()))?;
        let session = ClosedOnDrop::new(session, alive);
        Ok(Self { end, session, key: format!("keepup/{host}/heartbeat"), _files: files })
    }
}

/// Opens the session of a host. Retries, because the controller may be busy and the network just coming up.
/// Zenoh does not report why it fails.
fn open_client(
    address: SocketAddr,
    host: HostId,
    token: &Token,
    files: Option<&TlsFiles>,
) -> Result<Option<Session>, ::zenoh::Error> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(ATTEMPT_PAUSE);
        }
        let config = config::client(address, &user(host), &seal::password(token), files)?;
        if let Ok(session) = ::zenoh::open(config).wait() {
            return Ok(Some(session));
        }
    }
    Ok(None)
}

impl AgentLink for ZenohAgent {
    fn send(&mut self, heartbeat: &Heartbeat) {
        if let Some(bytes) = self.end.seal(heartbeat) {
            put(self.session.get(), self.key.clone(), bytes);
        }
    }

    fn receive(&mut self, timeout: Duration) -> Option<FromController> {
        self.end.receive(timeout)
    }

    fn traffic(&self) -> Traffic {
        self.end.traffic()
    }

    fn waker(&self) -> Waker {
        let end = Arc::clone(&self.end);
        Waker::new(move || end.wake())
    }
}

/// User name of a host for its session.
fn user(host: HostId) -> String {
    format!("host-{host}")
}

/// Sends without waiting for an acknowledgement. A message that does not fit the queue of its peer is
/// dropped; the next heartbeat or order replaces it.
fn put(session: Option<&Session>, key: String, bytes: Vec<u8>) {
    let Some(session) = session else { return };
    let put = session.put(key, bytes).congestion_control(CongestionControl::Drop);
    drop(put.priority(Priority::InteractiveHigh).express(true).wait());
}

fn subscribe(
    session: &Session,
    key: &str,
    take: impl Fn(Sample) + Send + Sync + 'static,
) -> Result<(), String> {
    let subscriber = session.declare_subscriber(key.to_owned()).callback(take).background();
    subscriber.wait().map_err(|error| error.to_string())
}

/// Subscribes to liveliness tokens, also to those that are there already.
fn watch(session: &Session, key: &str, take: impl Fn(Sample) + Send + Sync + 'static) -> Result<(), String> {
    let subscriber = session.liveliness().declare_subscriber(key.to_owned()).history(true);
    subscriber.callback(take).background().wait().map_err(|error| error.to_string())
}

/// Host of `keepup/HOST/…`.
fn host_of(key: &KeyExpr) -> Option<HostId> {
    key.as_str().split('/').nth(1)?.parse().ok()
}

/// Host and incarnation of `keepup/HOST/alive/INCARNATION`.
fn incarnation_of(key: &KeyExpr) -> Option<(HostId, u64)> {
    Some((host_of(key)?, key.as_str().split('/').nth(3)?.parse().ok()?))
}

#[cfg(test)]
#[path = "zenoh_tests.rs"]
mod tests;

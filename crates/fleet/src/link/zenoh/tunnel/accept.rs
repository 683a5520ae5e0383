//! The controller's side: TLS connections of agents, each passed on to the Unix socket of Zenoh.
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{FAILURE_PAUSE, HANDSHAKE_TIME, Tunnel, relay};

/// Maximum number of concurrent handshakes. At this limit the oldest one is dropped: an agent's takes
/// milliseconds.
const HANDSHAKES_MAX: usize = 256;
/// Connections that wait until they are accepted.
const BACKLOG: i32 = 1024;

/// Listens on `address`.
///
/// # Errors
/// An address on which it cannot listen.
pub(in super::super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Accepts connections of `listener`, of which `connections_max` may be past their handshake, and connects
/// each of them to the Unix socket `local`.
///
/// # Errors
/// No thread.
pub(in super::super) fn accept(
    listener: TcpListener,
    config: ServerConfig,
    local: PathBuf,
    connections_max: usize,
) -> io::Result<Tunnel> {
    listener.set_nonblocking(true)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Tunnel::start(|| {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        Ok(serve(listener, acceptor, local.into(), connections_max))
    })
}

async fn serve(
    listener: tokio::net::TcpListener,
    acceptor: TlsAcceptor,
    local: Arc<Path>,
    connections_max: usize,
) -> Infallible {
    let permits = Arc::new(Semaphore::new(connections_max));
    let mut handshakes = Handshakes::default();
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(FAILURE_PAUSE).await;
            continue;
        };
        let (acceptor, local, permits) = (acceptor.clone(), Arc::clone(&local), Arc::clone(&permits));
        let handshake = tokio::spawn(async move {
            // No delay by Nagle's algorithm: messages are small and urgent.
            let _ = socket.set_nodelay(true);
            if let Ok(Ok(tls)) = timeout(HANDSHAKE_TIME, acceptor.accept(socket)).await
                && let Ok(permit) = permits.try_acquire_owned()
            {
                tokio::spawn(async move {
                    pass_on(tls, &local).await;
                    drop(permit);
                });
            }
        });
        handshakes.add(handshake.abort_handle());
        // A flood of connections does not hold up those that exist.
        tokio::task::yield_now().await;
    }
}

/// Handshakes in progress, oldest first. They end with this.
#[derive(Default)]
struct Handshakes(VecDeque<AbortHandle>);

impl Handshakes {
    fn add(&mut self, handshake: AbortHandle) {
        self.0.retain(|handshake| !handshake.is_finished());
        self.0.push_back(handshake);
        if self.0.len() > HANDSHAKES_MAX
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
    }
}

impl Drop for Handshakes {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

async fn pass_on(tls: tokio_rustls::server::TlsStream<TcpStream>, local: &Path) {
    // Fails while Zenoh starts or closes, or without free descriptors. The agent tries again.
    if let Ok(local) = UnixStream::connect(local).await {
        relay(tls, local).await;
    }
}

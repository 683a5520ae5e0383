//! The thread that serves: one runtime on one thread, and limits on everything a client can take.
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use keepup_peer::Endpoint;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio_io_timeout::TimeoutStream;

use crate::LiveError;
use crate::answers::{AnswerLimits, Peer};
use crate::board::{Board, Scene};
use crate::guard::Access;
use crate::orders::{OrderDesk, Orders};
use crate::routes::{self, App};
use crate::shelf::Shelf;
use crate::tap::{TapDesk, TapSource};

/// A request's head must be complete within this time, and connections that ask nothing are closed after it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// A client that takes nothing of what it is owed for so long is cut off.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Pause after the system refused a connection, as when descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// For how long clients may still read what they are owed when it ends.
const LINGER: Duration = Duration::from_millis(500);

/// What is served, and to whom.
pub struct Parts {
    /// Where to listen: the first address that works; port 0 lets the kernel choose.
    pub listen: Endpoint,
    /// Who may ask what.
    pub access: Access,
    /// Connections at a time; more are closed at once.
    pub connections_max: usize,
    /// What is on the page's head.
    pub title: String,
    /// The colours of all pages, light and dark, as custom properties.
    pub colours: &'static str,
    /// The drawing library, as a script.
    pub charts: &'static str,
    /// Whether somebody takes commands for run control.
    pub commands: bool,
    /// Stored results and recordings to look at.
    pub shelf: Option<Arc<dyn Shelf>>,
    /// What answers with them may hold of this process.
    pub answers: AnswerLimits,
    /// Where copies of events come from.
    pub tap: Option<Arc<dyn TapSource>>,
    /// Called on the serving thread before anything else, as to give it a lower priority.
    pub on_start: Box<dyn FnOnce() + Send>,
}

/// The running server.
#[derive(Debug)]
pub struct Live {
    address: SocketAddr,
    board: Arc<Board>,
    orders: Orders,
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Listens and starts the thread.
    pub fn start(parts: Parts) -> Result<Self, LiveError> {
        let fail = |source| LiveError::Listen { endpoint: parts.listen.clone(), source };
        let listener = TcpListener::bind(&parts.listen).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|source| LiveError::Start { source })?;
        let (desk, orders) = OrderDesk::new();
        let board = Arc::new(Board::default());
        let (over, ended) = oneshot::channel();
        let connections_max = parts.connections_max;
        let tap = parts.tap.clone().map(TapDesk::new);
        let app = App::new(&parts, Arc::clone(&board), desk, tap.clone());
        let router = routes::router(app);
        let on_start = parts.on_start;
        let thread = std::thread::Builder::new()
            .name("ku-live".into())
            .spawn(move || {
                on_start();
                if let Some(tap) = tap {
                    runtime.spawn(async move { tap.serve().await });
                }
                runtime.block_on(serve(listener, router, connections_max, ended));
                // What still runs is for clients that do not read.
                runtime.shutdown_timeout(Duration::ZERO);
            })
            .map_err(|source| LiveError::Start { source })?;
        Ok(Self { address, board, orders, over: Some(over), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows a scene from now on.
    pub fn publish(&self, scene: Scene<'_>) {
        self.board.publish(scene);
    }

    /// Where commands arrive.
    pub fn orders(&self) -> &Orders {
        &self.orders
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; it must not end what this window looks at.
            let _ = thread.join();
        }
    }
}

async fn serve(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    mut over: oneshot::Receiver<()>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Arc::new(Semaphore::new(connections_max));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut over => break,
        };
        let Ok((socket, address)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Without a place the socket is closed at once.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let peer = Peer::new(address.ip());
        let service = TowerToHyperService::new(router.clone().layer(Extension(peer.clone())));
        tokio::spawn(async move {
            tokio::select! {
                () = converse(socket, service) => {}
                () = peer.closed() => {}
            }
            drop(place);
        });
    }
    tokio::time::sleep(LINGER).await;
}

async fn converse(socket: TcpStream, service: TowerToHyperService<Router>) {
    // Small answers go at once; failing is no reason to refuse.
    let _ = socket.set_nodelay(true);
    let mut socket = TimeoutStream::new(socket);
    socket.set_write_timeout(Some(WRITE_TIMEOUT));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Box::pin(socket)), service)
        .with_upgrades();
    // A client that breaks off or breaks the rules has its connection closed; nobody else minds.
    let _ = connection.await;
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

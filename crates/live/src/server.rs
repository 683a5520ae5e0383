//! Server thread: one single-threaded runtime, and limits on the resources of each client.
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_io_timeout::TimeoutStream;

use crate::LiveError;
use crate::board::{Board, Scene};
use crate::commands::{CommandQueue, CommandSender};
use crate::parts::Parts;
use crate::places::{Peer, Places, Standing};
use crate::routes::{self, App};
use crate::tap::TapHub;

/// Timeout for a complete request head, and for idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// A client that reads nothing of its response for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest request head, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Pause after a failed accept, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for clients to read their last data when the server ends.
const LINGER: Duration = Duration::from_millis(500);

/// Running server.
#[derive(Debug)]
pub struct Live {
    address: SocketAddr,
    board: Arc<Board>,
    orders: CommandQueue,
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
        let (commands, orders) = CommandSender::new();
        let board = Arc::new(Board::default());
        let (over, ended) = oneshot::channel();
        let connections_max = parts.connections_max;
        let tap = parts.tap.clone().map(TapHub::new);
        let app = App::new(&parts, Arc::clone(&board), commands, tap.clone());
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
                // The remaining tasks belong to clients that do not read.
                runtime.shutdown_timeout(Duration::ZERO);
            })
            .map_err(|source| LiveError::Start { source })?;
        Ok(Self { address, board, orders, over: Some(over), thread: Some(thread) })
    }

    /// Listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Publishes a scene.
    pub fn publish(&self, scene: Scene<'_>) {
        self.board.publish(scene);
    }

    /// Receiving end of the command queue.
    pub fn command_queue(&self) -> &CommandQueue {
        &self.orders
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been printed; it must not end the recorder.
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
    let places = Places::new(connections_max);
    let may_go = |standing| standing < Standing::Known;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut over => break,
        };
        let Ok((socket, address)) = accepted else {
            places.close_one(may_go);
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let peer = Peer::new(address.ip());
        // Where all places have known clients, the socket is closed at once.
        let Some(place) = places.enter(&peer, may_go) else { continue };
        let service = TowerToHyperService::new(router.clone().layer(Extension(peer.clone())));
        tokio::spawn(async move {
            tokio::select! {
                () = serve_connection(socket, service) => {}
                () = peer.closed() => {}
            }
            drop(place);
        });
        // A flood of connections must not hold up the closing of others.
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(LINGER).await;
}

async fn serve_connection(socket: TcpStream, service: TowerToHyperService<Router>) {
    // Small responses are sent at once; a failure is no reason to refuse.
    let _ = socket.set_nodelay(true);
    let mut socket = TimeoutStream::new(socket);
    socket.set_write_timeout(Some(WRITE_TIMEOUT));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Box::pin(socket)), service)
        .with_upgrades();
    // A client error closes only its own connection.
    let _ = connection.await;
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

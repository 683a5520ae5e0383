//! TLS between the controller and its agents, around the connections of Zenoh.
//!
//! Zenoh's own TLS uses a connection from two threads at the same time
//! (<https://github.com/eclipse-zenoh/zenoh/issues/2557>), which corrupts memory. Here, Zenoh has Unix
//! sockets within its process, and one thread per process copies between them and the TLS connections.
//!
//! Invariants: a connection is copied only after its handshake, so bytes of strangers reach only rustls;
//! no connection waits for another one; the number of connections is limited.
mod accept;
mod dial;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

pub(super) use self::accept::{accept, listen};
pub(super) use self::dial::dial;

/// Limit on a handshake, as on opening a session of Zenoh.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// Timeout of a write: the lease of a Zenoh session. A peer that reads nothing for this long has closed its
/// session.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// Pause after a connection that could not be accepted, such as for lack of descriptors.
const FAILURE_PAUSE: Duration = Duration::from_millis(100);
/// Time for the last bytes of one direction after the other one has ended, and for all connections at the
/// end.
const END_TIME: Duration = Duration::from_millis(500);
/// Bytes that are copied at once: one record of TLS.
const COPY_BYTES: usize = 16 << 10;

/// Thread with TLS connections. Dropping it ends them; what Zenoh wrote before still reaches its peers.
pub(super) struct Tunnel {
    /// Dropped to end the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Tunnel {
    /// Runs what `serve` returns, which spawns a task per connection and does not end by itself. `serve` is
    /// called in the context of the runtime.
    fn start<S: Future<Output = Infallible> + Send + 'static>(
        serve: impl FnOnce() -> io::Result<S>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let serve = {
            let _context = runtime.enter();
            serve()?
        };
        let (end, is_over) = oneshot::channel::<()>();
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    never = serve => match never {},
                    _ = is_over => {}
                }
                let is_idle = || tokio::runtime::Handle::current().metrics().num_alive_tasks() == 0;
                let ended = async {
                    while !is_idle() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                };
                let _ = timeout(END_TIME, ended).await;
            });
        };
        let thread = std::thread::Builder::new().name("ku-fleet-tls".into()).spawn(run)?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported by its thread.
            let _ = thread.join();
        }
    }
}

/// Copies between a TLS connection and a connection of Zenoh until one of them ends.
async fn relay(tls: impl AsyncRead + AsyncWrite, local: UnixStream) {
    let (tls_read, tls_write) = tokio::io::split(tls);
    let (local_read, local_write) = local.into_split();
    let mut inward = std::pin::pin!(copy(tls_read, local_write));
    let mut outward = std::pin::pin!(copy(local_read, tls_write));
    // The messages in the other direction may include the cause.
    let _ = tokio::select! {
        () = &mut inward => timeout(END_TIME, outward).await,
        () = &mut outward => timeout(END_TIME, inward).await,
    };
}

/// Copies one direction until it ends or fails, and passes on its end.
async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let mut bytes = vec![0; COPY_BYTES];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let write = async {
            to.write_all(&bytes[..length]).await?;
            to.flush().await
        };
        match timeout(WRITE_TIME, write).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => {
                // A connection that is closed with unread bytes is reset, and its last output lost.
                let discard = async { while let Ok(1..) = from.read(&mut bytes).await {} };
                let _ = timeout(END_TIME, discard).await;
                return;
            }
        }
    }
    let _ = timeout(END_TIME, to.shutdown()).await;
}

#[cfg(test)]
#[path = "tunnel_tests.rs"]
mod tests;

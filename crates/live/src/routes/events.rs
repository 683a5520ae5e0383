//! What is shown, as it changes: server-sent events.
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::{App, problem, text};
use crate::board::{Frame, PARTS};

/// Who may watch at a time.
pub(super) const WATCHERS_MAX: usize = 256;
/// Where nothing changes, a comment shows that the connection lives.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// One who watches.
struct Watcher {
    frames: watch::Receiver<Arc<Frame>>,
    sent: [u64; PARTS],
    is_new: bool,
    _place: OwnedSemaphorePermit,
}

impl Watcher {
    /// What it has not got yet, once there is something. Nothing when there will never be more.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !std::mem::take(&mut self.is_new) {
                match tokio::time::timeout(HEARTBEAT, self.frames.changed()).await {
                    Err(_) => return Some(Bytes::from_static(b": still here\n\n")),
                    Ok(Err(_)) => return None,
                    Ok(Ok(())) => {}
                }
            }
            let frame = self.frames.borrow_and_update().clone();
            let mut fresh = BytesMut::new();
            for (part, sent) in frame.parts.iter().zip(&mut self.sent) {
                if part.version > *sent {
                    *sent = part.version;
                    fresh.extend_from_slice(&part.event);
                }
            }
            if !fresh.is_empty() {
                return Some(fresh.freeze());
            }
        }
    }
}

/// The stream of events: `run`, `streams`, `now` and `search`, each whenever it has changed. Who reads slowly
/// is given the newest and misses what was between.
pub(super) async fn events(State(app): State<Arc<App>>) -> Response {
    let Ok(place) = Arc::clone(&app.watchers).try_acquire_owned() else {
        return problem(StatusCode::SERVICE_UNAVAILABLE, "too many watch already", Some("close other pages"));
    };
    let watcher = Watcher { frames: app.board.look(), sent: [0; PARTS], is_new: true, _place: place };
    let parts = stream::unfold(watcher, |mut watcher| async {
        let part = watcher.next().await?;
        Some((Ok::<_, std::convert::Infallible>(part), watcher))
    });
    text("text/event-stream", Body::from_stream(parts))
}

//! Event stream of state changes: server-sent events.
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use tokio::sync::watch;

use super::App;
use crate::board::{Frame, PARTS};
use crate::places::{Peer, Place};
use crate::response::{problem, text};

/// Most concurrent event streams.
pub(super) const CLIENTS_MAX: usize = 256;
/// Interval of comments that keep an idle connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Client of the event stream.
struct StreamClient {
    frames: watch::Receiver<Arc<Frame>>,
    sent: [u64; PARTS],
    is_new: bool,
    _place: Place,
}

impl StreamClient {
    /// Parts that this client has not received, once there are any. `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !std::mem::take(&mut self.is_new) {
                match tokio::time::timeout(HEARTBEAT, self.frames.changed()).await {
                    Err(_) => return Some(Bytes::from_static(b": keep-alive\n\n")),
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

/// The event stream: `run`, `streams`, `now`, `search` and `fleet`, each after a change. A slow reader
/// gets the latest state and misses intermediate ones.
pub(super) async fn events(State(app): State<Arc<App>>, Extension(peer): Extension<Peer>) -> Response {
    let Some(place) = app.watchers.enter(&peer, |standing| standing < peer.standing()) else {
        return problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many event streams are open",
            Some("close other pages"),
        );
    };
    let client =
        StreamClient { frames: app.board.subscribe(), sent: [0; PARTS], is_new: true, _place: place };
    let parts = stream::unfold(client, |mut client| async {
        let part = client.next().await?;
        Some((Ok::<_, std::convert::Infallible>(part), client))
    });
    text("text/event-stream", Body::from_stream(parts))
}

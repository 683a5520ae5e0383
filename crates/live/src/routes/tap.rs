//! Event tap: copies of events over a WebSocket, for monitoring programs and for the page.
//!
//! An event is two messages: a text with its description as a JSON object, and a binary message
//! with its payload. Another text every few seconds has the numbers of sent and missed events.
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::SinkExt as _;
use serde::Serialize;

use super::App;
use crate::response::problem;
use crate::tap::Subscription;
use crate::tap_query::TapQuery;

/// Largest message from a subscriber, in bytes; none are expected.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Most messages from a subscriber between two reports.
const MESSAGES_MAX: u32 = 64;
/// Interval between reports of sent and missed events.
const ACCOUNT_EVERY: Duration = Duration::from_secs(5);

/// Opens a subscription to the tap.
pub(super) async fn tap(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let asked = match TapQuery::parse(&query.unwrap_or_default()) {
        Ok(asked) => asked,
        Err(why) => return problem(StatusCode::BAD_REQUEST, &why, Some("?stream=3&rate=5")),
    };
    let Some(hub) = &app.tap else {
        return problem(
            StatusCode::NOT_FOUND,
            "the event tap is not available here",
            Some("keepup record --http ADDR"),
        );
    };
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(e) => {
            return problem(StatusCode::UPGRADE_REQUIRED, &e.body_text(), Some("connect with a WebSocket"));
        }
    };
    let subscription = match hub.subscribe(asked.filter) {
        Ok(subscription) => subscription,
        Err(why) => return problem(StatusCode::SERVICE_UNAVAILABLE, &why, Some("close other subscribers")),
    };
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
    // The buffer is zeroed before every read, however little arrives.
    let upgrade = upgrade.read_buffer_size(MESSAGE_BYTES_MAX);
    upgrade.on_upgrade(move |socket| forward(socket, subscription, asked.preview)).into_response()
}

#[derive(Debug, Serialize)]
struct Account {
    sent: u64,
    missed: u64,
}

/// Forwards copies until the subscriber disconnects or sends too much.
async fn forward(mut socket: WebSocket, mut subscription: Subscription, preview: Option<u64>) {
    let (mut sent, mut received) = (0u64, 0u32);
    let mut accounts = tokio::time::interval(ACCOUNT_EVERY);
    loop {
        let message = tokio::select! {
            copy = subscription.next() => {
                let Some(copy) = copy else { return };
                sent += 1;
                let (head, payload) = copy.serialize(preview, Some(subscription.missed()));
                if socket.feed(Message::Text(head.into())).await.is_err() {
                    return;
                }
                Message::Binary(payload)
            }
            _ = accounts.tick() => {
                received = 0;
                let account = Account { sent, missed: subscription.missed() };
                // Two numbers always serialize.
                Message::Text(serde_json::to_string(&account).unwrap_or_default().into())
            }
            message = socket.recv() => match message {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {
                    received += 1;
                    if received <= MESSAGES_MAX {
                        continue;
                    }
                    let frame = CloseFrame { code: close_code::POLICY, reason: "too many messages".into() };
                    Message::Close(Some(frame))
                }
            },
        };
        let is_last = matches!(message, Message::Close(_));
        // The connection's time limit disconnects a subscriber that does not read.
        if socket.send(message).await.is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;

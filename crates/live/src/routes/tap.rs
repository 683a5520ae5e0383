//! The event tap: copies of events over a WebSocket, for monitoring programs and for the page.
//!
//! An event is two messages: a text, which is a JSON object that tells what it is, and a binary one, which is
//! its payload. Another text every few seconds tells what was sent and what was missed.
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::SinkExt as _;
use serde::Serialize;

use super::{App, problem};
use crate::tap::Seat;
use crate::tap_query::TapQuery;

/// Largest message that a subscriber may send, in bytes; it has nothing to say.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Messages that it may send within one pause between two accounts.
const MESSAGES_MAX: u32 = 64;
/// Pause between two accounts of what was sent and missed.
const ACCOUNT_EVERY: Duration = Duration::from_secs(5);

/// Takes a seat at the tap.
pub(super) async fn tap(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let asked = match TapQuery::parse(&query.unwrap_or_default()) {
        Ok(asked) => asked,
        Err(why) => return problem(StatusCode::BAD_REQUEST, &why, Some("?stream=3&rate=5")),
    };
    let Some(desk) = &app.tap else {
        return problem(StatusCode::NOT_FOUND, "there is no tap here", Some("keepup record --http ADDR"));
    };
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(e) => return problem(StatusCode::UPGRADE_REQUIRED, &e.body_text(), Some("it is a WebSocket")),
    };
    let seat = match desk.sit(asked.filter) {
        Ok(seat) => seat,
        Err(why) => return problem(StatusCode::SERVICE_UNAVAILABLE, &why, Some("close other subscribers")),
    };
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
    // It is cleared before every read, however little comes.
    let upgrade = upgrade.read_buffer_size(MESSAGE_BYTES_MAX);
    upgrade.on_upgrade(move |socket| pass_on(socket, seat, asked.preview)).into_response()
}

#[derive(Debug, Serialize)]
struct Account {
    sent: u64,
    missed: u64,
}

/// Passes copies on until the subscriber goes, or says too much.
async fn pass_on(mut socket: WebSocket, mut seat: Seat, preview: Option<u64>) {
    let (mut sent, mut heard) = (0u64, 0u32);
    let mut accounts = tokio::time::interval(ACCOUNT_EVERY);
    loop {
        let message = tokio::select! {
            copy = seat.next() => {
                let Some(copy) = copy else { return };
                sent += 1;
                let (head, payload) = copy.told(preview, Some(seat.missed()));
                if socket.feed(Message::Text(head.into())).await.is_err() {
                    return;
                }
                Message::Binary(payload)
            }
            _ = accounts.tick() => {
                heard = 0;
                let account = Account { sent, missed: seat.missed() };
                // Two numbers can always be written.
                Message::Text(serde_json::to_string(&account).unwrap_or_default().into())
            }
            said = socket.recv() => match said {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {
                    heard += 1;
                    if heard <= MESSAGES_MAX {
                        continue;
                    }
                    let frame = CloseFrame { code: close_code::POLICY, reason: "too many messages".into() };
                    Message::Close(Some(frame))
                }
            },
        };
        let is_last = matches!(message, Message::Close(_));
        // A subscriber that does not read is cut off by the time limit of its connection.
        if socket.send(message).await.is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;

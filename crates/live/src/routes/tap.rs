//! Event tap: copies of events over a WebSocket, for monitoring programs and for the page.
//!
//! An event is two messages: a text with its description as a JSON object, and a binary message
//! with its payload. Another text every few seconds has the numbers of sent and missed events.
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::SinkExt as _;
use keepup_results::live::TapFilter;
use serde::Serialize;

use super::App;
use crate::places::{Peer, Place};
use crate::response::problem;
use crate::tap::{Subscription, TapHub};
use crate::tap_query::TapQuery;

/// Largest message from a subscriber, in bytes; none are expected.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Most messages from a subscriber between two reports.
const MESSAGES_MAX: u32 = 64;
/// Checks for the end of a subscription that has just been closed, and the interval between them.
const CLOSING_CHECKS: u32 = 20;
const CLOSING_CHECK: Duration = Duration::from_millis(25);
/// Interval between reports of sent and missed events.
const ACCOUNT_EVERY: Duration = Duration::from_secs(5);

/// Opens a subscription to the tap.
pub(super) async fn tap(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
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
    let full = |why: &str| problem(StatusCode::SERVICE_UNAVAILABLE, why, Some("close other subscribers"));
    let Some(place) = app.subscribers.enter(&peer, |standing| standing < peer.standing()) else {
        return full("all subscriptions are taken");
    };
    let subscription = match subscribe(hub, &asked.filter).await {
        Ok(subscription) => subscription,
        Err(why) => return full(&why),
    };
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
    // The buffer is zeroed before every read, however little arrives.
    let upgrade = upgrade.read_buffer_size(MESSAGE_BYTES_MAX);
    let subscriber = Subscriber { subscription, peer, _place: place };
    upgrade.on_upgrade(move |socket| forward(socket, subscriber, asked.preview)).into_response()
}

#[derive(Debug, Serialize)]
struct Account {
    sent: u64,
    missed: u64,
}

/// A subscription with its client.
struct Subscriber {
    subscription: Subscription,
    peer: Peer,
    _place: Place,
}

/// Opens a subscription; one that has just been closed for this client may need a moment to end.
async fn subscribe(hub: &Arc<TapHub>, filter: &TapFilter) -> Result<Subscription, String> {
    for _ in 0..CLOSING_CHECKS {
        if let Ok(subscription) = hub.subscribe(filter.clone()) {
            return Ok(subscription);
        }
        tokio::time::sleep(CLOSING_CHECK).await;
    }
    hub.subscribe(filter.clone())
}

/// Forwards copies until the subscriber disconnects, sends too much or must go.
async fn forward(mut socket: WebSocket, subscriber: Subscriber, preview: Option<u64>) {
    let Subscriber { mut subscription, peer, _place } = subscriber;
    let (mut sent, mut received) = (0u64, 0u32);
    let mut accounts = tokio::time::interval(ACCOUNT_EVERY);
    loop {
        let message = tokio::select! {
            () = peer.closed() => return,
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
        let sent = tokio::select! {
            () = peer.closed() => return,
            sent = socket.send(message) => sent,
        };
        if sent.is_err() || is_last {
            return;
        }
    }
}

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;

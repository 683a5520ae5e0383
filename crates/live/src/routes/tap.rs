//! The event tap: copies of events over a WebSocket, for monitoring programs and for the page.
//!
//! A binary message is an event: four bytes with the length of a JSON object (little-endian), the object, and
//! the payload. The object is filled up with blanks so that the payload begins at a multiple of eight. A text
//! message every few seconds tells what was sent and what was missed.
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, Bytes, BytesMut};
use keepup_results::live::TapFilter;
use serde::Serialize;

use super::{App, problem};
use crate::tap::{Seat, TapCopy};
use crate::thin::thin;

/// Streams that one subscriber may name.
const STREAMS_MAX: usize = 1024;
/// Largest message that a subscriber may send, in bytes; it has nothing to say.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Messages that it may send within one pause between two accounts.
const MESSAGES_MAX: u32 = 64;
/// Pause between two accounts of what was sent and missed.
const ACCOUNT_EVERY: Duration = Duration::from_secs(5);

/// What is asked for: `stream=N` (again and again), `every=N`, `rate=R`, `preview=N`.
#[derive(Debug, Default, PartialEq)]
struct Asked {
    wish: TapFilter,
    /// Images and waveforms are thinned to at most so many elements along each dimension.
    preview: Option<u64>,
}

fn parse(query: &str) -> Result<Asked, String> {
    let mut asked = Asked { wish: TapFilter { every: 1, ..TapFilter::default() }, preview: None };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wrong = || format!("{key}={value} cannot be: {key} takes a number above zero");
        match key {
            "stream" => asked.wish.streams.push(value.parse().map_err(|_| format!("{value} is no stream"))?),
            "every" => asked.wish.every = value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?,
            "rate" => {
                let rate = value.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
                asked.wish.per_second = Some(rate.ok_or_else(wrong)?);
            }
            "preview" => asked.preview = Some(value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?),
            _ => return Err(format!("{key} is not known: stream, every, rate and preview are")),
        }
    }
    if asked.wish.streams.len() > STREAMS_MAX {
        return Err(format!("more than {STREAMS_MAX} streams: leave them out to get all"));
    }
    Ok(asked)
}

/// Takes a seat at the tap.
pub(super) async fn tap(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let asked = match parse(&query.unwrap_or_default()) {
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
    let seat = match desk.sit(asked.wish) {
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
    // Its memory is used again once a message is gone: fresh memory for each would be cleared by the kernel.
    let mut memory = BytesMut::new();
    let mut accounts = tokio::time::interval(ACCOUNT_EVERY);
    loop {
        let message = tokio::select! {
            copy = seat.next() => {
                let Some(copy) = copy else { return };
                sent += 1;
                Message::Binary(packed(&mut memory, &copy, seat.missed(), preview))
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

/// The head of a binary message: what the event is, and what there is beside it.
#[derive(Debug, Serialize)]
struct Head<'a> {
    stream: u32,
    name: &'a str,
    element: &'a str,
    shape: &'a [u64],
    compression: Option<&'a str>,
    sequence: u64,
    timestamp_ns: u64,
    /// Payload of the event, in bytes, before it was thinned.
    bytes: usize,
    /// Shape before it was thinned, where it was.
    whole_shape: Option<&'a [u64]>,
    /// Events that this subscriber wished for and did not get, so far.
    missed: u64,
}

fn packed(memory: &mut BytesMut, copy: &TapCopy, missed: u64, preview: Option<u64>) -> Bytes {
    let card = &copy.card;
    let thinned = preview.and_then(|most| thin(card, &copy.payload, most));
    let (shape, payload) = match &thinned {
        Some((shape, payload)) => (shape.as_slice(), payload.as_slice()),
        None => (card.shape.as_slice(), copy.payload.as_ref()),
    };
    let head = Head {
        stream: card.stream,
        name: &card.name,
        element: &card.element,
        shape,
        compression: card.compression.as_deref(),
        sequence: card.sequence,
        timestamp_ns: card.timestamp_ns,
        bytes: copy.payload.len(),
        whole_shape: thinned.is_some().then_some(card.shape.as_slice()),
        missed,
    };
    // Texts and numbers can always be written.
    let mut json = serde_json::to_vec(&head).unwrap_or_default();
    json.resize((json.len() + 4).next_multiple_of(8) - 4, b' ');
    memory.reserve(4 + json.len() + payload.len());
    memory.put_u32_le(json.len() as u32);
    memory.put_slice(&json);
    memory.put_slice(payload);
    memory.split().freeze()
}

#[cfg(test)]
#[path = "tap_tests.rs"]
mod tests;

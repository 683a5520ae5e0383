//! Stored results and recordings: lists, reports, comparisons and events.
//!
//! Invariants: a client names an entry by its id only; reports are sandboxed in an opaque origin,
//! so that no content of a report can access this server; the memory of an answer is counted
//! until it is sent.
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use keepup_error::Cause;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::App;
use crate::answers::{AnswerLimits, Answers};
use crate::catalog::Catalog;
use crate::event::{EVENT_HEADER, EventCopy};
use crate::places::Peer;
use crate::response::{problem, text};

/// Most concurrent lookups on disks.
pub(super) const LOOKUPS_MAX: usize = 2;
/// Timeout of waiting for other lookups, and of the lookup itself.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Seconds after which a client should retry.
const RETRY_SECONDS: &str = "2";
/// Longest id, in characters.
const ID_CHARACTERS_MAX: usize = 64;

/// A stored report contains its scripts and styles, loads nothing, and has an opaque origin.
const REPORT_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The catalog, with limits on concurrent lookups and on answers.
pub(super) struct CatalogService {
    catalog: Arc<dyn Catalog>,
    places: Arc<Semaphore>,
    answers: Arc<Answers>,
}

/// Result of a lookup, ready for the response.
struct Reply {
    kind: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    /// Memory reserved before the body was read.
    memory: Option<OwnedSemaphorePermit>,
}

impl Reply {
    fn new(kind: &'static str, body: impl Into<Bytes>) -> Self {
        Self { kind, headers: Vec::new(), body: body.into(), memory: None }
    }
}

/// Result of a lookup; `None` for an unknown id.
type Lookup = Result<Option<Reply>, Refused>;

/// Why there is no answer.
enum Refused {
    /// The entry cannot be read; description.
    Unreadable(Cause),
    /// The memory is in use by other answers.
    Full,
}

impl From<Cause> for Refused {
    fn from(why: Cause) -> Self {
        Self::Unreadable(why)
    }
}

impl CatalogService {
    pub(super) fn new(catalog: Arc<dyn Catalog>, limits: AnswerLimits) -> Self {
        Self { catalog, places: Arc::new(Semaphore::new(LOOKUPS_MAX)), answers: Answers::new(limits) }
    }

    /// Answers with the result of `lookup`.
    async fn answer(
        &self,
        peer: &Peer,
        lookup: impl FnOnce(&dyn Catalog, &Answers) -> Lookup + Send + 'static,
    ) -> Response {
        let full = || busy("all memory for answers is in use");
        let Some(place) = self.answers.enter(peer) else {
            return busy("too many concurrent requests from this address");
        };
        let reply = match self.lookup(lookup).await {
            Ok(Ok(Some(reply))) => reply,
            Ok(Ok(None)) => return unknown(),
            Ok(Err(Refused::Full)) => return full(),
            Ok(Err(Refused::Unreadable(why))) => {
                let (what, hint) = (why.to_string(), why.hint());
                return problem(StatusCode::UNPROCESSABLE_ENTITY, &what, hint.as_deref());
            }
            Err(refusal) => return refusal,
        };
        let bytes = reply.body.len();
        let Some(memory) = reply.memory.or_else(|| self.answers.reserve(bytes as u64)) else {
            return full();
        };
        let mut response = text(reply.kind, place.body(reply.body, memory));
        response.headers_mut().insert(header::CONTENT_LENGTH, bytes.into());
        response.headers_mut().extend(reply.headers);
        response
    }

    /// Runs a lookup on a thread that may block on disks. The slot is taken until it ends, even
    /// if the client has gone.
    async fn lookup(
        &self,
        lookup: impl FnOnce(&dyn Catalog, &Answers) -> Lookup + Send + 'static,
    ) -> Result<Lookup, Response> {
        let place = tokio::time::timeout(TIMEOUT, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(busy("other lookups are taking too long"));
        };
        let (catalog, answers) = (Arc::clone(&self.catalog), Arc::clone(&self.answers));
        let job = tokio::task::spawn_blocking(move || {
            let found = lookup(&*catalog, &answers);
            drop(place);
            found
        });
        match tokio::time::timeout(TIMEOUT, job).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) => Err(problem(StatusCode::INTERNAL_SERVER_ERROR, "the lookup failed", None)),
            Err(_) => Err(busy("the disks did not answer in time")),
        }
    }
}

/// Ids of two results to compare.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    /// Baseline.
    a: String,
    /// Result compared with the baseline.
    b: String,
}

/// Query of a recording's event.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventQuery {
    /// Stream id.
    stream: u32,
    /// Sequence number; the first event with this number or a higher one.
    #[serde(default)]
    from: u64,
    /// Thin to at most this many elements along each dimension.
    preview: Option<NonZeroU64>,
}

/// List of results.
pub(super) async fn results(State(app): State<Arc<App>>, Extension(peer): Extension<Peer>) -> Response {
    answer(&app, &peer, |catalog, _| json(&catalog.list()?.results).map(Some)).await
}

/// List of recordings.
pub(super) async fn recordings(State(app): State<Arc<App>>, Extension(peer): Extension<Peer>) -> Response {
    answer(&app, &peer, |catalog, _| json(&catalog.list()?.recordings).map(Some)).await
}

/// Report of a result.
pub(super) async fn result(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
) -> Response {
    if !is_id(&id) {
        return unknown();
    }
    answer(&app, &peer, move |catalog, _| Ok(catalog.page(&id)?.map(report))).await
}

/// Comparison of two results.
pub(super) async fn compare(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    pair: Result<Query<Pair>, QueryRejection>,
) -> Response {
    let Ok(Query(Pair { a, b })) = pair else {
        let hint = "GET /compare?a=ID&b=ID, with ids of /api/v1/results";
        return problem(StatusCode::BAD_REQUEST, "a comparison needs the ids of two results", Some(hint));
    };
    if !is_id(&a) || !is_id(&b) {
        return unknown();
    }
    answer(&app, &peer, move |catalog, _| Ok(catalog.compare(&a, &b)?.map(report))).await
}

/// Summary of a recording.
pub(super) async fn recording(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
) -> Response {
    if !is_id(&id) {
        return unknown();
    }
    answer(&app, &peer, move |catalog, _| catalog.recording(&id)?.map(|found| json(&found)).transpose()).await
}

/// Event of a recording: payload, with its description in a header.
pub(super) async fn event(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    which: Result<Query<EventQuery>, QueryRejection>,
) -> Response {
    let Ok(Query(EventQuery { stream, from, preview })) = which else {
        let hint = "GET /recordings/ID/event?stream=0&from=1000&preview=640";
        return problem(StatusCode::BAD_REQUEST, "an event needs a stream and a sequence number", Some(hint));
    };
    if !is_id(&id) {
        return unknown();
    }
    let lookup = move |catalog: &dyn Catalog, answers: &Answers| {
        let (mut memory, mut is_full) = (None, false);
        let mut admit = |bytes| {
            memory = answers.reserve(bytes);
            is_full = memory.is_none();
            !is_full
        };
        let found = catalog.event(&id, stream, from, &mut admit);
        if is_full {
            return Err(Refused::Full);
        }
        Ok(found?.map(|copy| Reply { memory, ..payload(&copy, preview) }))
    };
    answer(&app, &peer, lookup).await
}

fn payload(copy: &EventCopy, preview: Option<NonZeroU64>) -> Reply {
    let (head, payload) = copy.serialize(preview.map(NonZeroU64::get), None);
    let mut reply = Reply::new("application/octet-stream", payload);
    // Non-ASCII characters are escaped, so the text is a valid header.
    if let Ok(head) = HeaderValue::from_str(&ascii(&head)) {
        reply.headers.push((HeaderName::from_static(EVENT_HEADER), head));
    }
    reply
}

fn json(value: &impl Serialize) -> Result<Reply, Refused> {
    let json = serde_json::to_vec(value).map_err(|e| Cause::from(e.to_string()))?;
    Ok(Reply::new("application/json", json))
}

/// Escapes all non-ASCII characters of a JSON text.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for unit in json.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => text.push(byte.into()),
            _ => text.push_str(&format!("\\u{unit:04x}")),
        }
    }
    text
}

async fn answer(
    app: &App,
    peer: &Peer,
    lookup: impl FnOnce(&dyn Catalog, &Answers) -> Lookup + Send + 'static,
) -> Response {
    let Some(stored) = &app.stored else {
        let hint = "keepup serve DIR shows results and recordings";
        return problem(StatusCode::NOT_FOUND, "stored results are not available here", Some(hint));
    };
    stored.answer(peer, lookup).await
}

/// Response for a request that may succeed later.
fn busy(why: &str) -> Response {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, why, Some("retry later"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
    response
}

/// Whether a text is a valid id; others are not looked up.
fn is_id(text: &str) -> bool {
    (1..=ID_CHARACTERS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn unknown() -> Response {
    let hint = "GET /api/v1/results and /api/v1/recordings list the ids";
    problem(StatusCode::NOT_FOUND, "unknown id", Some(hint))
}

fn report(page: String) -> Reply {
    let headers = vec![
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(REPORT_POLICY)),
        // Browsers refuse a page with both an opaque origin and this policy.
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("unsafe-none")),
    ];
    Reply { headers, ..Reply::new("text/html; charset=utf-8", page) }
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;

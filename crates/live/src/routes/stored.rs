//! Stored results and recordings: lists of them, their reports, and two beside each other.
//!
//! Invariants: a client names an entry by its id alone; reports come with a policy under which they are of no
//! origin, so that whatever stands in one cannot ask this server for anything; what an answer holds is
//! counted until it was sent.
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{App, problem, text};
use crate::answers::{AnswerLimits, Answers, Peer};
use crate::event::{EVENT_HEADER, EventCopy};
use crate::shelf::Shelf;

/// Looks at disks that are under way at a time.
pub(super) const LOOKS_MAX: usize = 2;
/// For how long a look may wait for others, and then for how long it may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// After how many seconds it is worth to ask again.
const RETRY_SECONDS: &str = "2";
/// Longest id, in characters.
const ID_CHARACTERS_MAX: usize = 64;

/// A stored report brings its scripts and styles with it, loads nothing, and is of no origin.
const REPORT_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What is shown, how many may look for more at a time, and what answers may hold.
pub(super) struct Desk {
    shelf: Arc<dyn Shelf>,
    places: Arc<Semaphore>,
    answers: Arc<Answers>,
}

/// What was found, as it will be answered.
struct Reply {
    kind: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    /// Memory that was taken before the body was read.
    memory: Option<OwnedSemaphorePermit>,
}

impl Reply {
    fn new(kind: &'static str, body: impl Into<Bytes>) -> Self {
        Self { kind, headers: Vec::new(), body: body.into(), memory: None }
    }
}

/// What a look comes to: nothing where nothing has the id.
type Looked = Result<Option<Reply>, Refused>;

/// Why nothing can be answered.
enum Refused {
    /// It cannot be read, in words.
    Unreadable(String),
    /// Others have the memory.
    Full,
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Unreadable(why)
    }
}

impl Desk {
    pub(super) fn new(shelf: Arc<dyn Shelf>, limits: AnswerLimits) -> Self {
        Self { shelf, places: Arc::new(Semaphore::new(LOOKS_MAX)), answers: Answers::new(limits) }
    }

    /// Answers with what `look` finds.
    async fn answer(
        &self,
        peer: &Peer,
        look: impl FnOnce(&dyn Shelf, &Answers) -> Looked + Send + 'static,
    ) -> Response {
        let full = || busy("other answers take all memory that there is for them");
        let Some(place) = self.answers.enter(peer) else {
            return busy("this address has as many requests under way as it may have");
        };
        let reply = match self.look(look).await {
            Ok(Ok(Some(reply))) => reply,
            Ok(Ok(None)) => return unknown(),
            Ok(Err(Refused::Full)) => return full(),
            Ok(Err(Refused::Unreadable(why))) => {
                let (why, hint) = why.split_once("\nhint: ").map_or((&*why, None), |(a, b)| (a, Some(b)));
                return problem(StatusCode::UNPROCESSABLE_ENTITY, why, hint);
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

    /// Looks something up on a thread that may wait for disks. The place is taken until it has ended, also
    /// when nobody waits for it any more.
    async fn look(
        &self,
        look: impl FnOnce(&dyn Shelf, &Answers) -> Looked + Send + 'static,
    ) -> Result<Looked, Response> {
        let place = tokio::time::timeout(PATIENCE, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(busy("others have results looked up, which takes long"));
        };
        let (shelf, answers) = (Arc::clone(&self.shelf), Arc::clone(&self.answers));
        let job = tokio::task::spawn_blocking(move || {
            let found = look(&*shelf, &answers);
            drop(place);
            found
        });
        match tokio::time::timeout(PATIENCE, job).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) => Err(problem(StatusCode::INTERNAL_SERVER_ERROR, "it could not be looked up", None)),
            Err(_) => Err(busy("the disks have not answered in time")),
        }
    }
}

/// Two results to be put beside each other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pair {
    /// The baseline.
    a: String,
    /// What is compared with it.
    b: String,
}

/// Which event of a recording, and how much of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Of this stream.
    stream: u32,
    /// The first with this sequence number or a higher one.
    #[serde(default)]
    from: u64,
    /// Thinned to at most so many elements along each dimension.
    preview: Option<NonZeroU64>,
}

/// The results that there are.
pub(super) async fn results(State(app): State<Arc<App>>, Extension(peer): Extension<Peer>) -> Response {
    answer(&app, &peer, |shelf, _| json(&shelf.list()?.results).map(Some)).await
}

/// The recordings that there are.
pub(super) async fn recordings(State(app): State<Arc<App>>, Extension(peer): Extension<Peer>) -> Response {
    answer(&app, &peer, |shelf, _| json(&shelf.list()?.recordings).map(Some)).await
}

/// The report of a result.
pub(super) async fn result(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
) -> Response {
    if !is_id(&id) {
        return unknown();
    }
    answer(&app, &peer, move |shelf, _| Ok(shelf.page(&id)?.map(report))).await
}

/// Two results beside each other.
pub(super) async fn compare(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    pair: Result<Query<Pair>, QueryRejection>,
) -> Response {
    let Ok(Query(Pair { a, b })) = pair else {
        let hint = "GET /compare?a=ID&b=ID, with ids of /api/v1/results";
        return problem(StatusCode::BAD_REQUEST, "two results are compared by their ids", Some(hint));
    };
    if !is_id(&a) || !is_id(&b) {
        return unknown();
    }
    answer(&app, &peer, move |shelf, _| Ok(shelf.compare(&a, &b)?.map(report))).await
}

/// What a recording has.
pub(super) async fn recording(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
) -> Response {
    if !is_id(&id) {
        return unknown();
    }
    answer(&app, &peer, move |shelf, _| shelf.recording(&id)?.map(|found| json(&found)).transpose()).await
}

/// An event of a recording: its payload, and what it is in a header of its own.
pub(super) async fn event(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    which: Result<Query<Which>, QueryRejection>,
) -> Response {
    let Ok(Query(Which { stream, from, preview })) = which else {
        let hint = "GET /recordings/ID/event?stream=0&from=1000&preview=640";
        return problem(
            StatusCode::BAD_REQUEST,
            "an event is asked for by its stream and number",
            Some(hint),
        );
    };
    if !is_id(&id) {
        return unknown();
    }
    let look = move |shelf: &dyn Shelf, answers: &Answers| {
        let (mut memory, mut is_full) = (None, false);
        let mut admit = |bytes| {
            memory = answers.reserve(bytes);
            is_full = memory.is_none();
            !is_full
        };
        let found = shelf.event(&id, stream, from, &mut admit);
        if is_full {
            return Err(Refused::Full);
        }
        Ok(found?.map(|copy| Reply { memory, ..payload(&copy, preview) }))
    };
    answer(&app, &peer, look).await
}

fn payload(copy: &EventCopy, preview: Option<NonZeroU64>) -> Reply {
    let (head, payload) = copy.told(preview.map(NonZeroU64::get), None);
    let mut reply = Reply::new("application/octet-stream", payload);
    // What is not ASCII is escaped, so that it can always be a header.
    if let Ok(head) = HeaderValue::from_str(&ascii(&head)) {
        reply.headers.push((HeaderName::from_static(EVENT_HEADER), head));
    }
    reply
}

fn json(value: &impl Serialize) -> Result<Reply, Refused> {
    let json = serde_json::to_vec(value).map_err(|e| e.to_string())?;
    Ok(Reply::new("application/json", json))
}

/// A JSON text with everything escaped that is not ASCII.
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
    look: impl FnOnce(&dyn Shelf, &Answers) -> Looked + Send + 'static,
) -> Response {
    let Some(desk) = &app.stored else {
        let hint = "keepup serve DIR shows results and recordings";
        return problem(StatusCode::NOT_FOUND, "nothing that is stored can be seen here", Some(hint));
    };
    desk.answer(peer, look).await
}

/// The answer to what can be had in a moment.
fn busy(why: &str) -> Response {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, why, Some("ask again later"));
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
    response
}

/// Whether a text can be an id; nothing else is even looked up.
fn is_id(text: &str) -> bool {
    (1..=ID_CHARACTERS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn unknown() -> Response {
    let hint = "GET /api/v1/results and /api/v1/recordings tell the ids";
    problem(StatusCode::NOT_FOUND, "nothing has this id", Some(hint))
}

fn report(page: String) -> Reply {
    let headers = vec![
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(REPORT_POLICY)),
        // Browsers do not open a page that is both of no origin and alone in its group of windows.
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("unsafe-none")),
    ];
    Reply { headers, ..Reply::new("text/html; charset=utf-8", page) }
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;

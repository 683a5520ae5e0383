//! Stored results and recordings: lists of them, their reports, and two beside each other.
//!
//! Invariants: a client names an entry by its id alone; reports come with a policy under which they are of no
//! origin, so that whatever stands in one cannot ask this server for anything.
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::{App, problem, text};
use crate::event::{EVENT_HEADER, EventCopy};
use crate::shelf::Shelf;

/// Looks at disks that are under way at a time.
pub(super) const LOOKS_MAX: usize = 2;
/// For how long a look may wait for others, and then for how long it may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest id, in characters.
const ID_CHARACTERS_MAX: usize = 64;

/// A stored report brings its scripts and styles with it, loads nothing, and is of no origin.
const REPORT_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; \
     style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What is shown, and how many may look for more at a time.
pub(super) struct Desk {
    shelf: Arc<dyn Shelf>,
    places: Arc<Semaphore>,
}

impl Desk {
    pub(super) fn new(shelf: Arc<dyn Shelf>) -> Self {
        Self { shelf, places: Arc::new(Semaphore::new(LOOKS_MAX)) }
    }

    /// Looks something up on a thread that may wait for disks. The place is taken until it has ended, also
    /// when nobody waits for it any more.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&dyn Shelf) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Response> {
        let busy = |why| problem(StatusCode::SERVICE_UNAVAILABLE, why, Some("ask again later"));
        let place = tokio::time::timeout(PATIENCE, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            return Err(busy("others have results looked up, which takes long"));
        };
        let shelf = Arc::clone(&self.shelf);
        let job = tokio::task::spawn_blocking(move || {
            let found = look(&*shelf);
            drop(place);
            found
        });
        match tokio::time::timeout(PATIENCE, job).await {
            Ok(Ok(Ok(found))) => Ok(found),
            Ok(Ok(Err(why))) => {
                let (why, hint) = why.split_once("\nhint: ").map_or((&*why, None), |(a, b)| (a, Some(b)));
                Err(problem(StatusCode::UNPROCESSABLE_ENTITY, why, hint))
            }
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
pub(super) async fn results(State(app): State<Arc<App>>) -> Response {
    answer(&app, |shelf| shelf.list().map(|listing| Json(listing.results))).await
}

/// The recordings that there are.
pub(super) async fn recordings(State(app): State<Arc<App>>) -> Response {
    answer(&app, |shelf| shelf.list().map(|listing| Json(listing.recordings))).await
}

/// The report of a result.
pub(super) async fn result(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    if !is_id(&id) {
        return unknown();
    }
    answer(&app, move |shelf| shelf.page(&id).map(|page| page.map_or_else(unknown, report))).await
}

/// Two results beside each other.
pub(super) async fn compare(
    State(app): State<Arc<App>>,
    pair: Result<Query<Pair>, QueryRejection>,
) -> Response {
    let Ok(Query(Pair { a, b })) = pair else {
        let hint = "GET /compare?a=ID&b=ID, with ids of /api/v1/results";
        return problem(StatusCode::BAD_REQUEST, "two results are compared by their ids", Some(hint));
    };
    if !is_id(&a) || !is_id(&b) {
        return unknown();
    }
    answer(&app, move |shelf| shelf.compare(&a, &b).map(|page| page.map_or_else(unknown, report))).await
}

/// What a recording has.
pub(super) async fn recording(State(app): State<Arc<App>>, Path(id): Path<String>) -> Response {
    if !is_id(&id) {
        return unknown();
    }
    let told = |found: Option<serde_json::Value>| found.map_or_else(unknown, |it| Json(it).into_response());
    answer(&app, move |shelf| shelf.recording(&id).map(told)).await
}

/// An event of a recording: its payload, and what it is in a header of its own.
pub(super) async fn event(
    State(app): State<Arc<App>>,
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
    let look = move |shelf: &dyn Shelf| {
        let found = shelf.event(&id, stream, from)?;
        Ok(found.map_or_else(unknown, |copy| payload(&copy, preview)))
    };
    answer(&app, look).await
}

fn payload(copy: &EventCopy, preview: Option<NonZeroU64>) -> Response {
    let (head, payload) = copy.told(preview.map(NonZeroU64::get), None);
    let mut response = text("application/octet-stream", payload);
    // What is not ASCII is escaped, so that it can always be a header.
    if let Ok(head) = HeaderValue::from_str(&ascii(&head)) {
        response.headers_mut().insert(HeaderName::from_static(EVENT_HEADER), head);
    }
    response
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

async fn answer<T: IntoResponse + Send + 'static>(
    app: &App,
    look: impl FnOnce(&dyn Shelf) -> Result<T, String> + Send + 'static,
) -> Response {
    let Some(desk) = &app.stored else {
        let hint = "keepup serve DIR shows results and recordings";
        return problem(StatusCode::NOT_FOUND, "nothing that is stored can be seen here", Some(hint));
    };
    desk.look(look).await.map_or_else(|refusal| refusal, IntoResponse::into_response)
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

fn report(page: String) -> Response {
    let mut response = text("text/html; charset=utf-8", page);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(REPORT_POLICY));
    // Browsers do not open a page that is both of no origin and alone in its group of windows.
    let group = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(group, HeaderValue::from_static("unsafe-none"));
    response
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;

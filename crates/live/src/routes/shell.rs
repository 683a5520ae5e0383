//! The page's HTML frame and its assets.
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::App;
use crate::guard::COOKIE;
use crate::page;
use crate::response::{not_found, text};

/// Assets of the page that are part of this crate.
const SCRIPTS: [(&str, &str); 11] = [
    ("live.js", include_str!("../../assets/live.js")),
    ("draw.js", include_str!("../../assets/draw.js")),
    ("flow.js", include_str!("../../assets/flow.js")),
    ("fleet.js", include_str!("../../assets/fleet.js")),
    ("streams.js", include_str!("../../assets/streams.js")),
    ("picture.js", include_str!("../../assets/picture.js")),
    ("browse.js", include_str!("../../assets/browse.js")),
    ("view.js", include_str!("../../assets/view.js")),
    ("run.js", include_str!("../../assets/run.js")),
    ("search.js", include_str!("../../assets/search.js")),
    ("catalog.js", include_str!("../../assets/catalog.js")),
];
const STYLE: &str = include_str!("../../assets/live.css");

pub(super) async fn page(State(app): State<Arc<App>>) -> Response {
    text("text/html; charset=utf-8", page::page(&app.title, app.stored.is_some()).into_string())
}

pub(super) async fn asset(State(app): State<Arc<App>>, Path(name): Path<String>) -> Response {
    let css = "text/css; charset=utf-8";
    match name.as_str() {
        "live.css" => return text(css, STYLE),
        "colours.css" => return text(css, app.colours),
        _ => {}
    }
    let own = SCRIPTS.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
    match own.or_else(|| (name == "charts.js").then_some(app.charts)) {
        Some(script) => text("text/javascript; charset=utf-8", script),
        None => not_found().await.into_response(),
    }
}

/// Sets the cookie with which a browser that has the token may read, until the browser is closed.
pub(super) async fn session(State(app): State<Arc<App>>) -> Response {
    let cookie = format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict", app.access.pass.reveal());
    let mut response = StatusCode::NO_CONTENT.into_response();
    // A token is visible ASCII, which a header accepts.
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

//! Routes of the server.
mod events;
mod figures;
mod run;
mod shell;
mod stored;
mod tap;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Router, middleware};

use crate::board::Board;
use crate::commands::CommandSender;
use crate::guard::{Access, guard};
use crate::parts::Parts;
use crate::places::Places;
use crate::response::{not_found, problem};
use crate::tap::{SUBSCRIBERS_MAX, TapHub};

/// Largest request body, in bytes: settings with the maximum of metadata, twice.
const BODY_BYTES_MAX: usize = 160 << 10;

/// State shared by all routes.
pub(crate) struct App {
    access: Arc<Access>,
    board: Arc<Board>,
    commands: Option<CommandSender>,
    title: String,
    colours: &'static str,
    charts: &'static str,
    watchers: Arc<Places>,
    subscribers: Arc<Places>,
    stored: Option<stored::CatalogService>,
    tap: Option<Arc<TapHub>>,
}

impl App {
    pub(crate) fn new(
        parts: &Parts,
        board: Arc<Board>,
        commands: CommandSender,
        tap: Option<Arc<TapHub>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            access: Arc::new(parts.access.clone()),
            board,
            commands: parts.commands.then_some(commands),
            title: parts.title.clone(),
            colours: parts.colours,
            charts: parts.charts,
            watchers: Places::new(events::CLIENTS_MAX),
            subscribers: Places::new(SUBSCRIBERS_MAX),
            stored: parts.catalog.clone().map(|catalog| stored::CatalogService::new(catalog, parts.answers)),
            tap,
        })
    }
}

/// All routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    let access = Arc::clone(&app.access);
    Router::new()
        .route("/", get(shell::page))
        .route("/assets/{name}", get(shell::asset))
        .route("/metrics", get(figures::metrics))
        .route("/health", get(figures::health))
        .route("/api/v1/openapi.json", get(figures::openapi))
        .route("/api/v1/session", post(shell::session))
        .route("/api/v1/run", get(run::status))
        .route("/api/v1/run/{command}", post(run::command))
        .route("/api/v1/now", get(figures::now))
        .route("/api/v1/history", get(figures::history))
        .route("/api/v1/events", get(events::events))
        .route("/api/v1/tap", get(tap::tap))
        .route("/api/v1/results", get(stored::results))
        .route("/api/v1/recordings", get(stored::recordings))
        .route("/results/{id}", get(stored::result))
        .route("/recordings/{id}", get(stored::recording))
        .route("/recordings/{id}/event", get(stored::event))
        .route("/compare", get(stored::compare))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn_with_state(access, guard))
        .with_state(app)
}

async fn not_allowed() -> Response {
    problem(
        StatusCode::METHOD_NOT_ALLOWED,
        "method not allowed",
        Some("GET /api/v1/openapi.json lists the methods"),
    )
}

//! Figures for programs: current, history, metrics, health, and the API description.
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use keepup_results::live::{FleetNow, Moment, RunState};

use super::App;
use crate::exposition::TextFormat;
use crate::response::{problem, text};

/// Description of the API.
pub(crate) const OPENAPI: &str = include_str!("../../assets/openapi.json");

/// Latest figures.
pub(super) async fn now(State(app): State<Arc<App>>) -> Response {
    let frame = app.board.now();
    match (&frame.moment, &frame.fleet) {
        (Some(moment), _) => Json(Moment::clone(moment)).into_response(),
        (None, Some(fleet)) => Json(FleetNow::clone(fleet)).into_response(),
        (None, None) => problem(StatusCode::NOT_FOUND, "nothing is being recorded", None),
    }
}

/// Rates of the last ten minutes.
pub(super) async fn history(State(app): State<Arc<App>>) -> Response {
    Json(app.board.history()).into_response()
}

/// Metrics in the requested format: OpenMetrics 1.0, or the older format of Prometheus.
pub(super) async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let form = match accepted.into_iter().any(|value| value.contains("application/openmetrics-text")) {
        true => TextFormat::OpenMetrics,
        false => TextFormat::Prometheus,
    };
    text(form.content_type(), app.board.now().metrics(form))
}

/// Health: 200, or 503 when data is being lost or the run has failed. Warnings alone are healthy.
pub(super) async fn health(State(app): State<Arc<App>>) -> Response {
    let frame = app.board.now();
    let mut failures: Vec<String> = Vec::new();
    if let Some(run) = frame.run.as_deref().filter(|run| run.state == RunState::Error) {
        failures.push(run.error.clone().unwrap_or_else(|| "the run failed".into()));
    }
    let moment = frame.moment.as_deref();
    let failed = moment.iter().flat_map(|moment| &moment.volumes).filter_map(|volume| {
        volume.failure.as_ref().map(|why| format!("{} takes no more data: {why}", volume.path))
    });
    failures.extend(failed);
    let fleet = frame.fleet.as_deref();
    failures.extend(fleet.iter().flat_map(|fleet| fleet.failures.iter().cloned()));
    let missing = moment.map(|moment| moment.flow.missing_events);
    let missing = missing.or(fleet.map(|fleet| fleet.flow.missing_events));
    if let Some(missing) = missing.filter(|missing| *missing > 0) {
        failures.push(format!("{missing} events are missing"));
    }
    let rejected = moment.iter().flat_map(|moment| &moment.flow.rejected).filter(|row| !row.foreign);
    failures.extend(rejected.map(|row| row.text.clone()));
    let warnings = moment.map(|moment| &moment.warnings).or(fleet.map(|fleet| &fleet.warnings));
    let warnings = warnings.cloned().unwrap_or_default();
    let (status, word) = match (failures.is_empty(), warnings.is_empty()) {
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "failed"),
        (true, false) => (StatusCode::OK, "warning"),
        (true, true) => (StatusCode::OK, "ok"),
    };
    let state = frame.run.as_deref().map(|run| run.state);
    let body =
        serde_json::json!({ "status": word, "state": state, "failures": failures, "warnings": warnings });
    (status, Json(body)).into_response()
}

/// API description as OpenAPI 3.1.
pub(super) async fn openapi() -> Response {
    text("application/json", OPENAPI)
}

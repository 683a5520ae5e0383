//! Run control over HTTP: status and commands.
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use keepup_results::live::{RefusalKind, RunCommand, RunOrder, RunRefusal, RunSettings, RunStatus};
use serde::Deserialize;

use super::App;
use crate::commands::Unanswered;
use crate::response::problem;

/// Timeout of a command: arming allocates memory, which the kernel zeroes first.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Body of a command.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Body {
    /// The revision that the client saw last; `None` accepts any.
    revision: Option<u64>,
    /// Settings for `configure`.
    settings: Option<RunSettings>,
}

/// Status of run control.
pub(super) async fn status(State(app): State<Arc<App>>) -> Response {
    match &app.board.now().run {
        Some(run) => Json(RunStatus::clone(run)).into_response(),
        None => {
            problem(StatusCode::NOT_FOUND, "no recorder is running here", Some("keepup record --http ADDR"))
        }
    }
}

/// Carries out a command and answers with the status after it.
pub(super) async fn command(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    body: Result<Json<Body>, JsonRejection>,
) -> Response {
    let Some(command) = RunCommand::ALL.into_iter().find(|command| command.name() == name) else {
        let names = RunCommand::ALL.map(RunCommand::name).join(", ");
        return problem(StatusCode::NOT_FOUND, "unknown command", Some(&format!("one of {names}")));
    };
    let Json(body) = match body {
        Ok(body) => body,
        Err(e) => {
            let hint =
                "Content-Type: application/json and {\"revision\": N, \"settings\": {…}}, both optional";
            return problem(e.status(), &e.body_text(), Some(hint));
        }
    };
    if body.settings.is_some() && command != RunCommand::Configure {
        let why = format!("{command} takes no settings");
        return problem(StatusCode::UNPROCESSABLE_ENTITY, &why, Some("settings go with configure"));
    }
    let Some(commands) = &app.commands else {
        return problem(
            StatusCode::NOT_FOUND,
            "commands are not available here",
            Some("keepup record --http ADDR"),
        );
    };
    let order = RunOrder { command, settings: body.settings, revision: body.revision };
    match commands.send(order, TIMEOUT).await {
        Ok(Ok(status)) => Json(status).into_response(),
        Ok(Err(refusal)) => refused(&refusal),
        Err(Unanswered::Busy) => {
            problem(StatusCode::SERVICE_UNAVAILABLE, "too many commands are waiting", None)
        }
        Err(Unanswered::Gone) => {
            problem(StatusCode::GATEWAY_TIMEOUT, "the recorder ended, or has not answered in time", None)
        }
    }
}

/// Response for a refusal: reason, hint, and kind for programs.
fn refused(refusal: &RunRefusal) -> Response {
    let status = match refusal.kind {
        RefusalKind::State | RefusalKind::Revision => StatusCode::CONFLICT,
        RefusalKind::Settings => StatusCode::UNPROCESSABLE_ENTITY,
        RefusalKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        RefusalKind::Uncontrolled => StatusCode::FORBIDDEN,
    };
    let why = &refusal.why;
    let body = serde_json::json!({ "error": why.to_string(), "hint": why.hint(), "refusal": refusal.kind });
    (status, Json(body)).into_response()
}

//! Responses that every route and the access control use.
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Error response: `{"error": …, "hint": …}`.
pub(crate) fn problem(status: StatusCode, why: &str, hint: Option<&str>) -> Response {
    (status, Json(serde_json::json!({ "error": why, "hint": hint }))).into_response()
}

/// Response with a fixed text.
pub(crate) fn text(kind: &'static str, body: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Response for an unknown path.
pub(crate) async fn not_found() -> impl IntoResponse {
    problem(StatusCode::NOT_FOUND, "unknown path", Some("GET /api/v1/openapi.json lists all paths"))
}

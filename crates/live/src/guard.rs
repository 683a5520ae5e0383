//! Who may ask what: the token, the names under which this host may be asked for, and where a page that asks
//! comes from.
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use keepup_peer::{Endpoint, Token};

use crate::LiveError;
use crate::routes::problem;

/// Name of the cookie with which a browser may look, once it has shown the token.
pub(crate) const COOKIE: &str = "keepup";

/// A page may load and connect to nothing but this host, and no text becomes a script. Charts set colours and
/// places as attributes of what they draw.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     style-src-attr 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Who may ask what.
#[derive(Clone, Debug)]
pub struct Access {
    /// What who changes something must know.
    pub token: Token,
    /// What a browser gets in its place, once it has shown the token: enough to look, not to change.
    pub pass: Token,
    /// Whether who only looks must know it too.
    pub closed: bool,
    /// Names of this host, beside addresses and "localhost".
    pub names: Vec<String>,
}

impl Access {
    /// Loopback is open to who only looks; beyond it everybody must know a token that was `given`.
    ///
    /// `random` makes tokens where none was given; `names` are those of this host, beside addresses and
    /// "localhost".
    pub fn new(
        listen: &Endpoint,
        given: Option<Token>,
        names: Vec<String>,
        random: &mut dyn FnMut() -> Token,
    ) -> Result<Self, LiveError> {
        let closed = !listen.is_loopback();
        if closed && given.is_none() {
            return Err(LiveError::Open { endpoint: listen.clone() });
        }
        Ok(Self { token: given.unwrap_or_else(&mut *random), pass: random(), closed, names })
    }

    /// Whether the request asks for this host by a name that it has. A page of another name that was made to
    /// lead here (DNS rebinding) asks for that name.
    fn knows_host(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let Ok(host) = host.to_str().unwrap_or_default().parse::<Authority>() else { return false };
        if host.as_str().contains('@') {
            return false;
        }
        let name = host.host();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.names.iter().any(|known| name.eq_ignore_ascii_case(known))
    }

    /// Whether the token comes with the request.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let bearer = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = bearer.and_then(|value| value.strip_prefix(b"Bearer "));
        token.is_some_and(|token| self.token.is(token.trim_ascii()))
    }

    /// Whether it comes from a browser that has shown the token before. That is enough to look.
    fn has_pass(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == COOKIE && self.pass.is(value.as_bytes()))
    }
}

/// Whether a page of another origin is behind the request. Browsers say so; other programs say nothing.
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return true;
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    let origin = origin.to_str().unwrap_or_default();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) != Some(host)
}

/// Paths that tell nothing: the page before it knows anything, and what it is made of.
fn is_shell(path: &str) -> bool {
    path == "/" || path.starts_with("/assets/")
}

/// Lets a request through, or says why not. Every answer carries what keeps a browser from misusing it.
pub(crate) async fn guard(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let refusal = refusal(&access, &request);
    let mut response = match refusal {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    let fixed: [(HeaderName, &'static str); 5] = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    // A stored report has a policy of its own, under which it is of no origin.
    for (name, value) in fixed {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(PAGE_POLICY));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn refusal(access: &Access, request: &Request) -> Option<Response> {
    let headers = request.headers();
    if !access.knows_host(headers) {
        let why = "this host is not known under the name that was asked for";
        let hint = "ask by address, or name it when keepup starts: --http-name NAME";
        return Some(problem(StatusCode::MISDIRECTED_REQUEST, why, Some(hint)));
    }
    let (path, method) = (request.uri().path(), request.method());
    if is_shell(path) && method == Method::GET {
        return None;
    }
    if is_foreign(headers) {
        return Some(problem(StatusCode::FORBIDDEN, "pages of other origins may not ask here", None));
    }
    let changes = method != Method::GET && method != Method::HEAD;
    let needs = if changes {
        !access.is_known(headers)
    } else {
        access.closed && !access.is_known(headers) && !access.has_pass(headers)
    };
    if needs {
        let why = "the token is missing or wrong";
        let hint =
            "Authorization: Bearer TOKEN; keepup tells it when it starts, or takes it from --token-file";
        let mut response = problem(StatusCode::UNAUTHORIZED, why, Some(hint));
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Some(response);
    }
    None
}

/// The answer to what is not there.
pub(crate) async fn not_found() -> impl IntoResponse {
    problem(
        StatusCode::NOT_FOUND,
        "there is nothing of that name",
        Some("GET /api/v1/openapi.json tells what there is"),
    )
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;

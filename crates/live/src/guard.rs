//! Access control: the token, the host names of this server, and the origin of browser requests.
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use keepup_peer::{Endpoint, Token};

use crate::LiveError;
use crate::response::problem;

/// Cookie that gives a browser read access after it has presented the token.
pub(crate) const COOKIE: &str = "keepup";

/// Content security policy of the page: loads and connects to this host only, no inline scripts.
/// Charts set colours and positions as style attributes.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     style-src-attr 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Access rules.
#[derive(Clone, Debug)]
pub struct Access {
    /// Token required for changes.
    pub token: Token,
    /// Value of the browser's cookie: grants read access only.
    pub pass: Token,
    /// Whether reading also needs the token.
    pub closed: bool,
    /// Names of this host, besides addresses and "localhost".
    pub names: Vec<String>,
}

impl Access {
    /// On loopback, reading is free; beyond it, every request needs the token `given`.
    ///
    /// `random` generates tokens where none was given; `names` are this host's names, besides
    /// addresses and "localhost".
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

    /// Whether the Host header has a known name of this host. A DNS rebinding attack has the
    /// attacker's name.
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

    /// Whether the request has the token.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let bearer = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = bearer.and_then(|value| value.strip_prefix(b"Bearer "));
        token.is_some_and(|token| self.token.is(token.trim_ascii()))
    }

    /// Whether the request has the read-access cookie.
    fn has_pass(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == COOKIE && self.pass.is(value.as_bytes()))
    }
}

/// Whether the request comes from a page of another origin. Browsers send the headers for this;
/// other programs do not.
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

/// Paths without data: the page's HTML frame and its assets.
fn is_public_path(path: &str) -> bool {
    path == "/" || path.starts_with("/assets/")
}

/// Passes a request on or refuses it. Every response has the security headers.
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
    // A stored report has its own policy with an opaque origin.
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
        let why = "unknown host name in the request";
        let hint = "use an address, or start keepup with --http-name NAME";
        return Some(problem(StatusCode::MISDIRECTED_REQUEST, why, Some(hint)));
    }
    let (path, method) = (request.uri().path(), request.method());
    if is_public_path(path) && method == Method::GET {
        return None;
    }
    if is_foreign(headers) {
        return Some(problem(
            StatusCode::FORBIDDEN,
            "requests from pages of other origins are refused",
            None,
        ));
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
            "Authorization: Bearer TOKEN; keepup prints it at the start, or reads it from --token-file";
        let mut response = problem(StatusCode::UNAUTHORIZED, why, Some(hint));
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Some(response);
    }
    None
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;

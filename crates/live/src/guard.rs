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
use crate::places::{Peer, Standing};
use crate::response::problem;

/// Cookie that gives a browser read access after it has presented the token.
pub(crate) const COOKIE: &str = "keepup";

/// Content security policy of the page: loads and connects to this host only, no inline scripts.
/// Charts set colours and positions as style attributes.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     style-src-attr 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// What a request may do with its token or cookie. Reading may be free anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rights {
    /// It has neither.
    None,
    /// It may read.
    Read,
    /// It may also change things.
    Command,
}

/// Path at which a browser exchanges its token for the cookie that lets it read.
pub(crate) const SESSION: &str = "/api/v1/session";

/// Access rules.
#[derive(Clone, Debug)]
pub struct Access {
    /// Token required for changes.
    pub token: Token,
    /// Token that grants read access only, for viewers and programs that collect metrics.
    pub read_token: Option<Token>,
    /// Value of the browser's cookie: grants read access only.
    pub pass: Token,
    /// Whether reading also needs the token.
    pub closed: bool,
    /// Names of this host, besides addresses and "localhost".
    pub names: Vec<String>,
}

impl Access {
    /// On loopback, reading is free; beyond it, every request needs the token `given` or, for reading,
    /// `read_token`.
    ///
    /// `random` generates tokens where none was given; `names` are this host's names, besides
    /// addresses and "localhost".
    pub fn new(
        listen: &Endpoint,
        (given, read_token): (Option<Token>, Option<Token>),
        names: Vec<String>,
        random: &mut dyn FnMut() -> Token,
    ) -> Result<Self, LiveError> {
        let closed = !listen.is_loopback();
        if closed && given.is_none() && read_token.is_none() {
            return Err(LiveError::Open { endpoint: listen.clone() });
        }
        Ok(Self { token: given.unwrap_or_else(&mut *random), read_token, pass: random(), closed, names })
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

    /// Rights of a request: those of its token, or of its cookie.
    fn rights(&self, headers: &HeaderMap) -> Rights {
        match bearer(headers) {
            Some(token) if self.token.is(token) => Rights::Command,
            _ if self.has_read_token(headers) || self.has_pass(headers) => Rights::Read,
            _ => Rights::None,
        }
    }

    /// Whether the request has the token that only reads.
    fn has_read_token(&self, headers: &HeaderMap) -> bool {
        self.read_token.as_ref().zip(bearer(headers)).is_some_and(|(known, token)| known.is(token))
    }

    /// Whether the request has the read-access cookie.
    fn has_pass(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == COOKIE && self.pass.is(value.as_bytes()))
    }
}

/// Token of a request.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes)?;
    value.strip_prefix(b"Bearer ").map(<[u8]>::trim_ascii)
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
    let rights = access.rights(headers);
    let needed = match path {
        _ if method == Method::GET || method == Method::HEAD => match access.closed {
            true => Rights::Read,
            false => Rights::None,
        },
        SESSION => Rights::Read,
        _ => Rights::Command,
    };
    if needed == Rights::Command && access.has_read_token(headers) {
        let hint = "use the token that keepup prints at the start, or reads from --token-file";
        return Some(problem(StatusCode::FORBIDDEN, "this token may only read", Some(hint)));
    }
    if rights < needed {
        let why = "the token is missing or wrong";
        let hint =
            "Authorization: Bearer TOKEN; keepup prints it at the start, or reads it from --token-file";
        let mut response = problem(StatusCode::UNAUTHORIZED, why, Some(hint));
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return Some(response);
    }
    if let Some(peer) = request.extensions().get::<Peer>() {
        peer.raise(if rights > Rights::None { Standing::Known } else { Standing::Anonymous });
    }
    None
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;

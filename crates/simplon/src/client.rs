//! HTTP requests with limits on time and size.
use std::time::Duration;

use keepup_results::printable::one_line;
use ureq::http::Response;
use ureq::{Agent, Body};

/// Limit on the time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer, in bytes.
pub(crate) const ANSWER_BYTES_MAX: u64 = 256 << 10;
/// Most characters of a refusal that are reported.
const REASON_CHARS_MAX: usize = 200;

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The cause.
    pub(crate) why: String,
    /// Whether the detector answered that it does not carry out the request.
    pub(crate) is_refusal: bool,
}

/// Client of one HTTP server.
pub(crate) struct Client {
    base: String,
    reading: Agent,
    /// Without idle connections: one that the server has just closed would look like a failed command.
    commands: Agent,
}

impl Client {
    /// Client of the server at `base`, such as `http://eiger1`.
    pub(crate) fn new(base: String) -> Self {
        Self { base, reading: agent(1), commands: agent(0) }
    }

    /// Reads a resource. `timeout` includes the whole answer.
    pub(crate) fn get(&self, path: &str, timeout: Duration) -> Result<String, Failure> {
        let request = self.reading.get(format!("{}{path}", self.base));
        text(request.config().timeout_global(Some(timeout)).build().call())
    }

    /// Sends a command without arguments. `timeout` includes the whole answer.
    pub(crate) fn put(&self, path: &str, timeout: Duration) -> Result<String, Failure> {
        let request = self.commands.put(format!("{}{path}", self.base));
        text(request.config().timeout_global(Some(timeout)).build().send_empty())
    }
}

fn agent(idle_connections: usize) -> Agent {
    Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .max_idle_connections(idle_connections)
        .max_idle_connections_per_host(idle_connections)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .build()
        .into()
}

/// Body of an answer with status 200.
fn text(answer: Result<Response<Body>, ureq::Error>) -> Result<String, Failure> {
    let failed = |error: ureq::Error| Failure { why: cause(&error), is_refusal: false };
    let mut answer = answer.map_err(failed)?;
    let status = answer.status().as_u16();
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
    if status != 200 {
        let reason = body.map(|body| one_line(&String::from_utf8_lossy(&body))).unwrap_or_default();
        let reason: String = reason.trim().chars().take(REASON_CHARS_MAX).collect();
        let separator = if reason.is_empty() { "" } else { ": " };
        // A proxy does not know what the detector has done.
        let is_refusal = !(502..=504).contains(&status);
        return Err(Failure { why: format!("HTTP status {status}{separator}{reason}"), is_refusal });
    }
    let not_text = |_| Failure { why: "the answer is not UTF-8".to_owned(), is_refusal: false };
    String::from_utf8(body.map_err(failed)?).map_err(not_text)
}

fn cause(error: &ureq::Error) -> String {
    match error {
        // The text of the library begins with "io: ".
        ureq::Error::Io(cause) => cause.to_string(),
        ureq::Error::Timeout(_) => "no complete answer within the time limit".to_owned(),
        ureq::Error::BodyExceedsLimit(limit) => format!("the answer is longer than {limit} bytes"),
        other => one_line(&other.to_string()),
    }
}

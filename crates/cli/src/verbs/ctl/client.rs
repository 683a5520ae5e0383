//! HTTP client with limits on time and size.
use std::time::Duration;

use keepup_error::Cause;
use keepup_live::{EVENT_BYTES_MAX, EVENT_HEADER, EventCard};
use keepup_peer::{Endpoint, EndpointError, Token};
use keepup_recording::info::RecordingInfo;
use keepup_results::live::{RunCommand, RunSettings, RunStatus};
use keepup_results::printable::{deserialize_line, deserialize_optional_line, one_line};
use keepup_results::{Entries, RecordingEntry};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::Response;
use ureq::{Agent, Body, RequestBuilder};

use crate::ctl_error::CtlError;
use crate::exit::UsageError;
use crate::http::{PORT, TOKEN_VARIABLE};

/// Default port of a URL.
const HTTP_PORT: u16 = 80;
/// Limit on the size of an answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// Timeout of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of an answer. Arming takes long, because the kernel clears the memory of the pool.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(150);

/// Error in an answer.
#[derive(Deserialize)]
struct Problem {
    #[serde(deserialize_with = "deserialize_line")]
    error: String,
    #[serde(default, deserialize_with = "deserialize_optional_line")]
    hint: Option<String>,
}

/// HTTP client of one recorder.
pub(super) struct Client {
    agent: Agent,
    to: String,
    token: Option<Token>,
}

impl Client {
    /// Creates a client for `to`, a URL of scheme, host and port, or `HOST[:PORT]` with default [`PORT`].
    pub(super) fn new(to: &str, token: Option<Token>) -> Result<Self, UsageError> {
        let (host, port) = match to.strip_prefix("http://") {
            Some(host) => (host.trim_end_matches('/'), HTTP_PORT),
            None => (to, PORT),
        };
        let endpoint = Endpoint::with_default_port(host, port).map_err(|why| match why {
            EndpointError::Resolve { .. } => UsageError::of(&why),
            EndpointError::Syntax { .. } => {
                UsageError::new(Cause::new(format!("cannot use {to:?} as a recorder's address")).with_hint(
                    "use http://HOST:PORT or HOST:PORT, over an SSH tunnel if the network is not trusted",
                ))
            }
        })?;
        // Proxies and redirects would see the token.
        let config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(ANSWER_TIMEOUT))
            .build();
        Ok(Self { agent: config.into(), to: format!("http://{endpoint}"), token })
    }

    /// Status of run control.
    pub(super) fn status(&self) -> Result<RunStatus, CtlError> {
        self.get("/api/v1/run")
    }

    /// List of recordings.
    pub(super) fn recordings(&self) -> Result<Entries<RecordingEntry>, CtlError> {
        self.get("/api/v1/recordings")
    }

    /// Description of a recording.
    pub(super) fn info(&self, id: &str) -> Result<RecordingInfo, CtlError> {
        self.get(&format!("/recordings/{id}"))
    }

    /// First event of a stream at or after a sequence number, with its payload.
    pub(super) fn event(&self, id: &str, stream: u32, from: u64) -> Result<(EventCard, Vec<u8>), CtlError> {
        let mut response = self.request(&format!("/recordings/{id}/event?stream={stream}&from={from}"))?;
        let status = response.status().as_u16();
        let head =
            response.headers().get(EVENT_HEADER).and_then(|head| head.to_str().ok()).map(str::to_owned);
        let payload = response.body_mut().with_config().limit(EVENT_BYTES_MAX).read_to_vec();
        let payload = payload.map_err(|e| self.unreachable(&e))?;
        let Some(head) = head.filter(|_| status == 200) else {
            let never: serde_json::Value =
                parse_answer(&self.to, status, &String::from_utf8_lossy(&payload))?;
            return Err(CtlError::Answer {
                to: self.to.clone(),
                what: format!("it holds no event: {never}").into(),
            });
        };
        Ok((parse_answer(&self.to, status, &head)?, payload))
    }

    /// Sends a command; returns the status afterwards.
    pub(super) fn send_command(
        &self,
        command: RunCommand,
        revision: Option<u64>,
        settings: Option<&RunSettings>,
    ) -> Result<RunStatus, CtlError> {
        let mut body = serde_json::Map::new();
        body.extend(revision.map(|revision| ("revision".to_owned(), revision.into())));
        body.extend(settings.map(|settings| ("settings".to_owned(), serde_json::json!(settings))));
        let request = self.agent.post(format!("{}/api/v1/run/{command}", self.to));
        let request = self.with_token(request).header("Content-Type", "application/json");
        let sent = request.send(serde_json::Value::Object(body).to_string());
        self.read(sent.map_err(|e| self.unreachable(&e))?)
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CtlError> {
        self.read(self.request(path)?)
    }

    fn request(&self, path: &str) -> Result<Response<Body>, CtlError> {
        let request = self.with_token(self.agent.get(format!("{}{path}", self.to)));
        request.call().map_err(|e| self.unreachable(&e))
    }

    fn with_token<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {}", token.reveal())),
            None => request,
        }
    }

    fn read<T: DeserializeOwned>(&self, mut response: Response<Body>) -> Result<T, CtlError> {
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        parse_answer(&self.to, status, &body.map_err(|e| self.unreachable(&e))?)
    }

    fn unreachable(&self, why: &ureq::Error) -> CtlError {
        // The text of the library begins with "io: ".
        let why = match why {
            ureq::Error::Io(cause) => cause.to_string(),
            other => other.to_string(),
        };
        CtlError::Unreachable { to: self.to.clone(), why }
    }
}

/// Parses an answer by its HTTP status.
fn parse_answer<T: DeserializeOwned>(to: &str, status: u16, text: &str) -> Result<T, CtlError> {
    let unexpected = |what: Cause| CtlError::Answer { to: to.to_owned(), what };
    if status == 200 {
        return serde_json::from_str(text).map_err(|e| unexpected(one_line(&e.to_string()).into()));
    }
    let Ok(problem) = serde_json::from_str::<Problem>(text) else {
        return Err(unexpected(format!("HTTP status {status} without a reason").into()));
    };
    let hint = problem.hint.or_else(|| {
        (status == 401).then(|| format!("give the token with --token-file FILE or {TOKEN_VARIABLE}"))
    });
    let why = Cause::new(problem.error).with_hint(hint.unwrap_or_default());
    Err(match status {
        401 | 403 | 404 | 409 | 422 => CtlError::Refused { why },
        500 => CtlError::Failed { why },
        _ => unexpected(why.map(|why| format!("HTTP status {status}: {why}"))),
    })
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

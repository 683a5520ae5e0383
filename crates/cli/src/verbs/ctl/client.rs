//! The client of a recorder's HTTP interface: one request, one answer, bounded in time and size.
use std::borrow::Cow;
use std::time::Duration;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_live::{EVENT_BYTES_MAX, EVENT_HEADER, Entries, EventCard, RecordingEntry};
use keepup_peer::{Endpoint, EndpointError, Token};
use keepup_recording::info::RecordingInfo;
use keepup_results::live::{RunCommand, RunSettings, RunStatus};
use keepup_results::printable::{deserialize_line, deserialize_optional_line, one_line};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::Response;
use ureq::{Agent, Body, RequestBuilder};

use crate::exit::UsageError;
use crate::http::{PORT, TOKEN_VARIABLE};

/// Port of a URL without one.
const HTTP_PORT: u16 = 80;
/// A longer answer is not one of ours, bytes.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// For how long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For how long an answer may take: arming has the kernel clear memory.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(150);

/// Why there is no answer to what was asked, or not the one wanted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CtlError {
    /// Nobody answered.
    #[error("cannot reach a recorder at {to}: {why}")]
    Unreachable {
        /// Where.
        to: String,
        /// Why.
        why: String,
    },
    /// The recorder does not do it.
    #[error("{why}")]
    Refused {
        /// Why, as the recorder says.
        why: Cause,
    },
    /// It tried, and failed.
    #[error("{why}")]
    Failed {
        /// Why, as the recorder says.
        why: Cause,
    },
    /// Something else than a recorder answered.
    #[error("cannot understand the answer of {to}: {what}")]
    Answer {
        /// Where.
        to: String,
        /// What is wrong.
        what: Cause,
    },
}

impl Diagnostic for CtlError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Refused { .. } => ErrorClass::Refused,
            Self::Failed { .. } => ErrorClass::Failed,
            Self::Unreachable { .. } | Self::Answer { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Unreachable { .. } => Some("keepup record --http HOST:PORT serves there; --to URL".into()),
            Self::Refused { why } | Self::Failed { why } => why.hint(),
            Self::Answer { what, .. } => what.hint().or(Some("is it a keepup of this version?".into())),
        }
    }
}

/// An answer that says why not.
#[derive(Deserialize)]
struct Problem {
    #[serde(deserialize_with = "deserialize_line")]
    error: String,
    #[serde(default, deserialize_with = "deserialize_optional_line")]
    hint: Option<String>,
}

/// Who asks.
pub(super) struct Client {
    agent: Agent,
    to: String,
    token: Option<Token>,
}

impl Client {
    /// Of the recorder at `to`: a URL of scheme, host and port, or `HOST[:PORT]` with the port of [`PORT`].
    pub(super) fn new(to: &str, token: Option<Token>) -> Result<Self, UsageError> {
        let (host, port) = match to.strip_prefix("http://") {
            Some(host) => (host.trim_end_matches('/'), HTTP_PORT),
            None => (to, PORT),
        };
        let endpoint = Endpoint::with_default_port(host, port).map_err(|why| match why {
            EndpointError::Resolve { .. } => UsageError::of(&why),
            EndpointError::Syntax { .. } => {
                UsageError::new(Cause::new(format!("cannot use {to:?} as a recorder's address")).with_hint(
                    "http://HOST:PORT or HOST:PORT; a tunnel (ssh -L) where the network is not safe",
                ))
            }
        })?;
        // The token is for the recorder and for nobody in between or behind it.
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

    /// Where it stands.
    pub(super) fn status(&self) -> Result<RunStatus, CtlError> {
        self.get("/api/v1/run")
    }

    /// The recordings that can be seen there.
    pub(super) fn recordings(&self) -> Result<Entries<RecordingEntry>, CtlError> {
        self.get("/api/v1/recordings")
    }

    /// What a recording has.
    pub(super) fn info(&self, id: &str) -> Result<RecordingInfo, CtlError> {
        self.get(&format!("/recordings/{id}"))
    }

    /// The first event of a stream from a sequence number on: what it is, and its payload.
    pub(super) fn event(&self, id: &str, stream: u32, from: u64) -> Result<(EventCard, Vec<u8>), CtlError> {
        let mut response = self.ask(&format!("/recordings/{id}/event?stream={stream}&from={from}"))?;
        let status = response.status().as_u16();
        let head =
            response.headers().get(EVENT_HEADER).and_then(|head| head.to_str().ok()).map(str::to_owned);
        let payload = response.body_mut().with_config().limit(EVENT_BYTES_MAX).read_to_vec();
        let payload = payload.map_err(|e| self.unreachable(&e))?;
        let Some(head) = head.filter(|_| status == 200) else {
            let never: serde_json::Value = answer(&self.to, status, &String::from_utf8_lossy(&payload))?;
            return Err(CtlError::Answer {
                to: self.to.clone(),
                what: format!("no event, but {never}").into(),
            });
        };
        Ok((answer(&self.to, status, &head)?, payload))
    }

    /// Gives a command; the answer is where it stands then.
    pub(super) fn give(
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
        self.read(self.ask(path)?)
    }

    fn ask(&self, path: &str) -> Result<Response<Body>, CtlError> {
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
        answer(&self.to, status, &body.map_err(|e| self.unreachable(&e))?)
    }

    fn unreachable(&self, why: &ureq::Error) -> CtlError {
        CtlError::Unreachable { to: self.to.clone(), why: why.to_string() }
    }
}

/// What an answer means.
fn answer<T: DeserializeOwned>(to: &str, status: u16, text: &str) -> Result<T, CtlError> {
    let strange = |what: Cause| CtlError::Answer { to: to.to_owned(), what };
    if status == 200 {
        return serde_json::from_str(text).map_err(|e| strange(one_line(&e.to_string()).into()));
    }
    let Ok(problem) = serde_json::from_str::<Problem>(text) else {
        return Err(strange(format!("HTTP status {status} without a reason").into()));
    };
    let hint = problem.hint.or_else(|| {
        (status == 401).then(|| format!("--token-file FILE, or {TOKEN_VARIABLE} in the environment"))
    });
    let why = Cause::new(problem.error).with_hint(hint.unwrap_or_default());
    Err(match status {
        401 | 403 | 404 | 409 | 422 => CtlError::Refused { why },
        500 => CtlError::Failed { why },
        _ => strange(why.map(|why| format!("HTTP status {status}: {why}"))),
    })
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

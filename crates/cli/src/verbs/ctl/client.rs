//! The client of a recorder's HTTP interface: one request, one answer, bounded in time and size.
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use keepup_results::live::{RunCommand, RunSettings, RunStatus};
use serde::Deserialize;
use ureq::Agent;

use crate::exit::UsageError;

/// The environment's variable with the token.
const TOKEN_VARIABLE: &str = "KEEPUP_TOKEN";
/// A longer file is no token, bytes.
const TOKEN_BYTES_MAX: u64 = 4096;
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
    #[error("cannot reach a recorder at {to}: {why}\nhint: keepup record --http ADDR serves there; --to URL")]
    Unreachable {
        /// Where.
        to: String,
        /// Why.
        why: String,
    },
    /// The recorder does not do it.
    #[error("{why}")]
    Refused {
        /// Why, with a hint where one is known.
        why: String,
    },
    /// It tried, and failed.
    #[error("{why}")]
    Failed {
        /// Why, with a hint where one is known.
        why: String,
    },
    /// Something else than a recorder answered.
    #[error("cannot understand the answer of {to}: {what}\nhint: is it a keepup of this version?")]
    Answer {
        /// Where.
        to: String,
        /// What is wrong.
        what: String,
    },
}

/// An answer that says why not.
#[derive(Deserialize)]
struct Problem {
    error: String,
    #[serde(default)]
    hint: Option<String>,
}

/// Who asks.
pub(super) struct Client {
    agent: Agent,
    to: String,
    token: Option<String>,
}

/// The token in the file, else the one of the environment.
pub(super) fn token(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let Some(path) = file else {
        return Ok(std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.trim().is_empty()));
    };
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(TOKEN_BYTES_MAX).read_to_string(&mut text));
    read.with_context(|| format!("cannot read the token from {}", path.display()))?;
    Ok(Some(text))
}

impl Client {
    /// Of the recorder at `to`, a URL of scheme, host and port.
    pub(super) fn new(to: &str, token: Option<String>) -> Result<Self, UsageError> {
        let host = to.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let Some(host) = host.filter(|host| !host.is_empty() && !host.contains(['/', '?', '#', '@'])) else {
            let hint = "http://HOST:PORT; a tunnel (ssh -L) where the way is not safe";
            return Err(UsageError(format!("cannot use {to:?} as a recorder's address\nhint: {hint}")));
        };
        let token = token.map(|token| token.trim().to_owned());
        if token.as_ref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(UsageError("the token has characters that are not visible ASCII".into()));
        }
        // The token is for the recorder and for nobody in between or behind it.
        let config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(ANSWER_TIMEOUT))
            .build();
        Ok(Self { agent: config.into(), to: format!("http://{host}"), token })
    }

    /// Where it stands.
    pub(super) fn status(&self) -> Result<RunStatus, CtlError> {
        let mut request = self.agent.get(format!("{}/api/v1/run", self.to));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        self.read(request.call())
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
        let url = format!("{}/api/v1/run/{command}", self.to);
        let mut request = self.agent.post(url).header("Content-Type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        self.read(request.send(serde_json::Value::Object(body).to_string()))
    }

    fn read(
        &self,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<RunStatus, CtlError> {
        let unreachable = |e: ureq::Error| CtlError::Unreachable { to: self.to.clone(), why: e.to_string() };
        let mut response = response.map_err(unreachable)?;
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let text = body.map_err(unreachable)?;
        answer(&self.to, status, &text)
    }
}

/// What an answer means.
fn answer(to: &str, status: u16, text: &str) -> Result<RunStatus, CtlError> {
    let strange = |what: String| CtlError::Answer { to: to.to_owned(), what };
    if status == 200 {
        return serde_json::from_str(text).map_err(|e| strange(e.to_string()));
    }
    let Ok(problem) = serde_json::from_str::<Problem>(text) else {
        return Err(strange(format!("HTTP status {status} without a reason")));
    };
    let mut why = problem.error;
    if let Some(hint) = problem.hint {
        why = format!("{why}\nhint: {hint}");
    } else if status == 401 {
        why = format!("{why}\nhint: --token-file FILE, or {TOKEN_VARIABLE} in the environment");
    }
    Err(match status {
        401 | 403 | 409 | 422 => CtlError::Refused { why },
        500 => CtlError::Failed { why },
        _ => CtlError::Answer { to: to.to_owned(), what: format!("HTTP status {status}: {why}") },
    })
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

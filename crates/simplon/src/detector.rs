//! One detector: its state, and its commands.
use std::sync::Arc;
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_results::printable::one_line;
use serde_json::Value;

use crate::client::{Client, Failure};
use crate::{DetectorUrl, SimplonError};

/// Limit on the time to read a value.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit on the time to arm, which uploads the configuration to the detector.
const ARM_TIMEOUT: Duration = Duration::from_secs(120);
/// Limit on the time to disarm.
const DISARM_TIMEOUT: Duration = Duration::from_secs(30);
/// Time to answer a trigger after the last image.
const TRIGGER_SPARE_S: f64 = 60.0;
/// Longest wait for a series of one trigger, in seconds.
const TRIGGER_S_MAX: f64 = 7.0 * 24.0 * 3600.0;
/// Longest version and name of a state.
const WORD_BYTES_MAX: usize = 32;
/// States in which a detector cannot be armed, because another client uses it.
const BUSY_STATES: [&str; 4] = ["initialize", "configure", "ready", "acquire"];

/// A detector.
pub struct Detector {
    url: DetectorUrl,
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    /// Version of the API, of the subsystem `detector`.
    pub(crate) version: String,
    /// The same for the subsystem `stream`.
    pub(crate) stream_version: String,
}

/// Why a detector was not armed.
#[derive(Debug)]
pub struct ArmFailure {
    /// The cause.
    pub error: SimplonError,
    /// Whether it may be armed all the same, because it did not refuse.
    pub may_be_armed: bool,
}

impl Detector {
    /// Reads the versions of the API, and checks that the detector is initialized and its stream is enabled.
    ///
    /// # Errors
    /// The server cannot be reached or answers otherwise, or one of the checks fails.
    pub fn connect(url: DetectorUrl, clock: Arc<dyn Clock>) -> Result<Self, SimplonError> {
        let client = Client::new(url.to_string());
        let version = |subsystem: &str| {
            let path = format!("/{subsystem}/api/version");
            let hint = format!("curl {url}{path}");
            let found = client.get(&path, READ_TIMEOUT).and_then(|text| value(&text)).and_then(word);
            found.map_err(|failure| cannot(&format!("read {url}{path}"), &failure, hint))
        };
        let (version, stream_version) = (version("detector")?, version("stream")?);
        let detector = Self { url, client, clock, version, stream_version };
        detector.check_initialized()?;
        detector.check_stream()?;
        Ok(detector)
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> &DetectorUrl {
        &self.url
    }

    /// Checks that the detector is not in use, so that it can be armed.
    ///
    /// # Errors
    /// It is in use, or the state cannot be read.
    pub fn check_idle(&self) -> Result<(), SimplonError> {
        let state = self.word_of("status/state")?;
        if !BUSY_STATES.contains(&state.as_str()) {
            return Ok(());
        }
        let what = format!("cannot arm {}: it is in use, its state is {state:?}", self.url);
        Err(SimplonError::Detector(Cause::new(what).with_hint(self.curl("disarm"))))
    }

    /// Checks that `trigger` starts a series of images.
    ///
    /// # Errors
    /// The detector has another trigger mode, or it cannot be read.
    pub fn check_software_trigger(&self) -> Result<(), SimplonError> {
        let mode = self.word_of("config/trigger_mode")?;
        if mode == "ints" {
            return Ok(());
        }
        let what = format!("cannot trigger {}: its trigger_mode is {mode:?}, not \"ints\"", self.url);
        let hint = format!("{}, or record without --trigger", self.set("detector", "trigger_mode", "ints"));
        Err(SimplonError::Detector(Cause::new(what).with_hint(hint)))
    }

    /// Whether the armed detector waits for a trigger command.
    #[must_use]
    pub fn awaits_trigger_command(&self) -> bool {
        self.word_of("config/trigger_mode").is_ok_and(|mode| mode == "ints" || mode == "inte")
    }

    /// Arms the detector; takes up to two minutes. Returns the number of the series, if the answer has it.
    ///
    /// # Errors
    /// The detector refuses or does not answer.
    pub fn arm(&self) -> Result<Option<u64>, ArmFailure> {
        let answer = self.client.put(&self.command("arm"), ARM_TIMEOUT).map_err(|failure| ArmFailure {
            error: cannot(&format!("arm {}", self.url), &failure, self.curl("arm")),
            may_be_armed: !failure.is_refusal,
        })?;
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        Ok(["sequence id", "series id"].iter().find_map(|key| answer.get(key)?.as_u64()))
    }

    /// Triggers a series and waits until the detector has taken it.
    ///
    /// # Errors
    /// The detector refuses or does not answer within the duration of the series.
    pub fn trigger(&self) -> Result<(), SimplonError> {
        let triggered = self.client.put(&self.command("trigger"), self.trigger_timeout());
        let fail = |failure| cannot(&format!("trigger {}", self.url), &failure, self.curl("trigger"));
        triggered.map(drop).map_err(fail)
    }

    /// Number of triggers of the series.
    #[must_use]
    pub fn triggers(&self) -> u64 {
        self.number("ntrigger").map_or(1, |count| count as u64)
    }

    /// Disarms the detector; takes up to 30 s.
    ///
    /// # Errors
    /// The detector refuses or does not answer.
    pub fn disarm(&self) -> Result<(), SimplonError> {
        let disarmed = self.client.put(&self.command("disarm"), DISARM_TIMEOUT);
        disarmed
            .map(drop)
            .map_err(|failure| cannot(&format!("disarm {}", self.url), &failure, self.curl("disarm")))
    }

    /// Shell command that sends a command to the detector.
    #[must_use]
    pub fn curl(&self, command: &str) -> String {
        format!("curl -X PUT {}{}", self.url, self.command(command))
    }

    fn command(&self, command: &str) -> String {
        format!("/detector/api/{}/command/{command}", self.version)
    }

    /// Shell command that sets a parameter.
    fn set(&self, subsystem: &str, name: &str, value: &str) -> String {
        let version = if subsystem == "stream" { &self.stream_version } else { &self.version };
        format!(
            "curl -X PUT -H 'Content-Type: application/json' -d '{{\"value\": \"{value}\"}}' \
             {}/{subsystem}/api/{version}/config/{name}",
            self.url
        )
    }

    fn check_initialized(&self) -> Result<(), SimplonError> {
        let state = self.word_of("status/state")?;
        if state != "na" {
            return Ok(());
        }
        let what = format!("cannot read the configuration of {}: the detector is not initialized", self.url);
        Err(SimplonError::Detector(Cause::new(what).with_hint(self.curl("initialize"))))
    }

    fn check_stream(&self) -> Result<(), SimplonError> {
        let path = format!("/stream/api/{}/config/mode", self.stream_version);
        let mode = self.read_word(&path)?;
        if mode == "enabled" {
            return Ok(());
        }
        let what = format!("cannot record {}: its stream has the mode {mode:?}, not \"enabled\"", self.url);
        Err(SimplonError::Detector(Cause::new(what).with_hint(self.set("stream", "mode", "enabled"))))
    }

    /// Limit on the time of one trigger: the duration of its images, as configured.
    fn trigger_timeout(&self) -> Duration {
        let images = self.number("nimages").zip(self.number("frame_time"));
        let delay_s = self.number("trigger_start_delay").unwrap_or(0.0);
        let series_s = images.map_or(TRIGGER_S_MAX, |(count, frame_s)| count * frame_s + delay_s);
        Duration::from_secs_f64((series_s + TRIGGER_SPARE_S).clamp(TRIGGER_SPARE_S, TRIGGER_S_MAX))
    }

    /// A number of the detector's configuration that is not negative.
    fn number(&self, name: &str) -> Option<f64> {
        let path = format!("/detector/api/{}/config/{name}", self.version);
        let text = self.client.get(&path, READ_TIMEOUT).ok()?;
        let number = value(&text).ok()?.as_f64()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    }

    fn word_of(&self, name: &str) -> Result<String, SimplonError> {
        self.read_word(&format!("/detector/api/{}/{name}", self.version))
    }

    fn read_word(&self, path: &str) -> Result<String, SimplonError> {
        let found = self.client.get(path, READ_TIMEOUT).and_then(|text| value(&text)).and_then(word);
        let hint = format!("curl {}{path}", self.url);
        found.map_err(|failure| cannot(&format!("read {}{path}", self.url), &failure, hint))
    }
}

/// Error of a request.
pub(crate) fn cannot(what: &str, failure: &Failure, hint: String) -> SimplonError {
    SimplonError::Detector(Cause::new(format!("cannot {what}: {}", failure.why)).with_hint(hint))
}

/// Failure of an answer.
pub(crate) fn unexpected(why: String) -> Failure {
    Failure { why, is_refusal: false }
}

/// The `value` of an answer.
pub(crate) fn value(text: &str) -> Result<Value, Failure> {
    let answer = serde_json::from_str::<Value>(text);
    let answer =
        answer.map_err(|e| unexpected(format!("the answer is not JSON: {}", one_line(&e.to_string()))))?;
    match answer {
        Value::Object(mut fields) => fields.remove("value"),
        _ => None,
    }
    .ok_or_else(|| unexpected("the answer has no value".to_owned()))
}

/// A short value that may be part of a URL.
fn word(value: Value) -> Result<String, Failure> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match value {
        Value::String(text)
            if (1..=WORD_BYTES_MAX).contains(&text.len())
                && text.bytes().all(is_allowed)
                && !text.contains("..") =>
        {
            Ok(text)
        }
        _ => Err(unexpected("the value is not a short word".to_owned())),
    }
}

#[cfg(test)]
#[path = "detector_tests.rs"]
mod tests;

//! Configuration of a detector as one JSON document.
//!
//! The document contains the answers of the detector unchanged. Its size, the number of parameters and the
//! time to read them are limited; what does not fit or cannot be read is listed in it.
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use keepup_error::Cause;
use keepup_results::printable::one_line;
use serde_json::{Value, json};

use crate::client::Failure;
use crate::detector::{READ_TIMEOUT, unexpected};
use crate::{Detector, SimplonError};

/// Version of the document's layout.
const FORMAT: u32 = 1;
/// Limit on the time to read everything.
const READ_ALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Most parameters of a part.
const PARAMETERS_MAX: usize = 1024;
/// Longest name of a parameter, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Largest document, in bytes, without the list of what it lacks.
const DOCUMENT_BYTES_MAX: usize = 4 << 20;
/// Arrays with a value for each pixel, which the stream brings (`header_detail`).
const ARRAYS: [&str; 2] = ["flatfield", "pixel_mask"];
/// Parts: subsystem and kind of parameters.
const PARTS: [(&str, &str); 3] = [("detector", "config"), ("stream", "config"), ("detector", "status")];

/// Configuration of a detector.
#[derive(Debug)]
pub struct Configuration {
    /// The JSON document.
    pub document: Vec<u8>,
    /// Number of parameters in it.
    pub parameters: usize,
    /// What could not be read: name and cause. Arrays are not listed here.
    pub left_out: Vec<String>,
}

/// Answers that have been read.
#[derive(Default)]
struct Answers {
    /// By part; each answer is a valid JSON text.
    parts: BTreeMap<(&'static str, &'static str), BTreeMap<String, String>>,
    bytes: usize,
    parameters: usize,
    left_out: BTreeMap<String, String>,
}

impl Detector {
    /// Reads the configuration of detector and stream, and the detector's status. `series` is the number that
    /// arming returned. Gives up when `is_cancelled`, and after a minute.
    ///
    /// # Errors
    /// No parameter could be read.
    pub fn configuration(
        &self,
        series: Option<u64>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Configuration, SimplonError> {
        let deadline_ns = self.clock.now_ns().saturating_add(READ_ALL_TIMEOUT.as_nanos() as u64);
        let mut answers = Answers::default();
        let mut failed = Vec::new();
        for part in PARTS {
            if let Err(failure) = self.read_part(part, deadline_ns, is_cancelled, &mut answers, &mut failed) {
                let name = format!("{}/{}", part.0, part.1);
                failed.push(format!("{name}: {}", failure.why));
                answers.left_out.insert(name, failure.why);
            }
        }
        if answers.parameters == 0 {
            let why = failed.first().map_or("it has no parameters", String::as_str);
            let what = format!("cannot read the configuration of {}: {why}", self.url());
            return Err(SimplonError::Detector(Cause::new(what)));
        }
        let parameters = answers.parameters;
        Ok(Configuration { document: self.document(series, &answers), parameters, left_out: failed })
    }

    fn read_part(
        &self,
        part: (&'static str, &'static str),
        deadline_ns: u64,
        is_cancelled: &dyn Fn() -> bool,
        answers: &mut Answers,
        failed: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let (subsystem, kind) = part;
        let version = if subsystem == "stream" { &self.stream_version } else { &self.version };
        let base = format!("/{subsystem}/api/{version}/{kind}");
        let get = |name: &str| {
            let left_ns = deadline_ns.saturating_sub(self.clock.now_ns());
            if is_cancelled() {
                return Err(unexpected("the recording was stopped".to_owned()));
            } else if left_ns == 0 {
                return Err(unexpected("the time limit of a minute was reached".to_owned()));
            }
            self.client.get(&format!("{base}/{name}"), READ_TIMEOUT.min(Duration::from_nanos(left_ns)))
        };
        for name in names(&get("keys")?)? {
            let name = match name {
                Ok(name) => name,
                Err(shown) => {
                    failed.push(format!("{subsystem}/{kind}: {shown} is not the name of a parameter"));
                    continue;
                }
            };
            let label = format!("{subsystem}/{kind}/{name}");
            let last = name.rsplit('/').next().unwrap_or_default();
            if ARRAYS.contains(&last) {
                answers.left_out.insert(label, "an array with a value for each pixel".to_owned());
                continue;
            }
            let answer = get(&name).and_then(checked);
            if let Err(failure) = answer.and_then(|answer| answers.add(part, name, answer)) {
                failed.push(format!("{label}: {}", failure.why));
                answers.left_out.insert(label, failure.why);
            }
        }
        Ok(())
    }

    /// The document. The answers become a part of it as they are: numbers keep every digit.
    fn document(&self, series: Option<u64>, answers: &Answers) -> Vec<u8> {
        let mut out = format!(
            "{{\"format\":{FORMAT},\"url\":{},\"read_unix_ns\":{},\"series\":{},",
            json!(self.url().to_string()),
            self.clock.unix_ns(),
            json!(series),
        );
        for (subsystem, version) in [("detector", &self.version), ("stream", &self.stream_version)] {
            out += &format!("\"{subsystem}\":{{\"version\":{}", json!(version));
            for (&(_, kind), parameters) in answers.parts.iter().filter(|(part, _)| part.0 == subsystem) {
                out += &format!(",\"{kind}\":{{");
                for (at, (name, answer)) in parameters.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    out += &format!("{comma}{}:{answer}", json!(name));
                }
                out.push('}');
            }
            out += "},";
        }
        out += &format!("\"left_out\":{}}}", json!(answers.left_out));
        out.into_bytes()
    }
}

impl Answers {
    fn add(
        &mut self,
        part: (&'static str, &'static str),
        name: String,
        answer: String,
    ) -> Result<(), Failure> {
        if self.bytes + name.len() + answer.len() > DOCUMENT_BYTES_MAX {
            return Err(unexpected(format!(
                "all answers together are longer than {DOCUMENT_BYTES_MAX} bytes"
            )));
        }
        self.bytes += name.len() + answer.len();
        self.parameters += 1;
        self.parts.entry(part).or_default().insert(name, answer);
        Ok(())
    }
}

/// An answer that is one JSON value of moderate depth.
fn checked(answer: String) -> Result<String, Failure> {
    match serde_json::from_str::<Value>(&answer) {
        Ok(_) => Ok(answer.trim().to_owned()),
        Err(e) => Err(unexpected(format!("the answer is not JSON: {}", one_line(&e.to_string())))),
    }
}

/// Names of parameters in the answer to `keys`, which is a list, or an object with a list as its value. An
/// error is the text of an item that is no name.
fn names(answer: &str) -> Result<BTreeSet<Result<String, String>>, Failure> {
    let list = match serde_json::from_str(answer) {
        Ok(Value::Object(mut fields)) => fields.remove("value"),
        Ok(list) => Some(list),
        Err(_) => None,
    };
    let Some(Value::Array(list)) = list else {
        return Err(unexpected("the answer has no list of parameters".to_owned()));
    };
    if list.len() > PARAMETERS_MAX {
        let count = list.len();
        return Err(unexpected(format!("{count} parameters, at most {PARAMETERS_MAX} are possible")));
    }
    let name = |name: Value| match name {
        Value::String(name) if is_name(&name) => Ok(name),
        other => Err(one_line(&other.to_string()).chars().take(NAME_BYTES_MAX).collect()),
    };
    // The list of names may be in it.
    let is_parameter = |name: &Result<String, String>| !matches!(name, Ok(name) if name == "keys");
    Ok(list.into_iter().map(name).filter(is_parameter).collect())
}

/// Whether `name` has only letters, digits, `_` and `-`, in parts between slashes.
fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    name.len() <= NAME_BYTES_MAX
        && name.split('/').all(|part| !part.is_empty() && part.bytes().all(is_allowed))
}

#[cfg(test)]
#[path = "configuration_tests.rs"]
mod tests;

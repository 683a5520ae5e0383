//! What is printed where: results on stdout, everything else on stderr; a closed pipe is no reason to fail.
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_campaign::quoted;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recording::reader::Recording;
use keepup_report::{Style, terminal};
use keepup_results::{Stored, printable, rfc3339};
use keepup_stream::ledger::LossCause;

use crate::exit::UsageError;

/// Environment variable with the form of what is said on stderr. Children whose stderr is read do not get it.
pub(crate) const LOG_VARIABLE: &str = "KEEPUP_LOG";

/// Whether what is said on stderr is said as JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// The form of what is said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogForm {
    /// Lines for people
    Text,
    /// One JSON object for each message, with its time and level
    Json,
}

impl LogForm {
    /// The form that `KEEPUP_LOG` asks for, if it asks.
    pub(crate) fn of_environment() -> Result<Option<Self>, UsageError> {
        match std::env::var(LOG_VARIABLE).unwrap_or_default().as_str() {
            "" => Ok(None),
            "text" => Ok(Some(Self::Text)),
            "json" => Ok(Some(Self::Json)),
            other => Err(UsageError(format!("{LOG_VARIABLE} is {other:?}\nhint: json or text"))),
        }
    }
}

/// Says everything in this form from now on.
pub(crate) fn log_as(form: LogForm) {
    IS_JSON.store(form == LogForm::Json, Ordering::Relaxed);
}

/// Whether a line may be drawn over and over on stderr.
pub(crate) fn may_redraw() -> bool {
    std::io::stderr().is_terminal() && !IS_JSON.load(Ordering::Relaxed)
}

/// Prints a result. What must not reach a terminal is replaced.
pub(crate) fn result(text: &str) {
    put(&printable::lines(text));
}

/// Prints as it is. A reader that went away has seen what it wanted.
fn put(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// Prints the page of a result.
pub(crate) fn page(stored: &Stored) {
    let style = Style { colour: colour(), width: width() };
    // It has cleaned what the result says, and has colours of its own.
    put(terminal(stored, style).trim_end());
}

/// Prints one JSON object as the result.
pub(crate) fn json(value: &serde_json::Value) {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|e| format!("{{\"error\": \"{e}\"}}"));
    put(&printable::json(&text));
}

/// Lines that tell how many events are missing, cause by cause; a cause may come several times.
pub(crate) fn missing(causes: impl IntoIterator<Item = (LossCause, u64)>) -> impl Iterator<Item = String> {
    let mut sums = BTreeMap::new();
    for (cause, events) in causes {
        let sum: &mut u64 = sums.entry(cause).or_default();
        *sum = sum.saturating_add(events);
    }
    sums.into_iter().map(|(cause, events)| format!("missing: {events} events, {cause}"))
}

/// Tells of lines of the journals that cannot be used; returns whether there are any.
pub(crate) fn warn_of_damage(recording: &Recording) -> bool {
    let lines = || recording.damaged_lines();
    lines().for_each(|line| say(&format!("warning: {line}")));
    lines().next().is_some()
}

/// The command as it was typed, quoted where a shell would need it. A token is a secret, so it is left out.
pub(crate) fn command() -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    told_command(arguments)
}

fn told_command(arguments: impl Iterator<Item = String>) -> String {
    let mut after_token = false;
    let told = arguments.map(|argument| {
        let is_secret = std::mem::replace(&mut after_token, argument == "--token");
        match argument.split_once('=') {
            Some(("--token", _)) => "--token=...".to_owned(),
            _ if is_secret => "...".to_owned(),
            _ => quoted(&argument),
        }
    });
    std::iter::once("keepup".to_owned()).chain(told).collect::<Vec<_>>().join(" ")
}

/// Says something on stderr: to people as text, in which what must not reach a terminal is replaced, to
/// programs as one JSON object.
pub(crate) fn say(text: &str) {
    let said = match IS_JSON.load(Ordering::Relaxed) {
        true => as_json(text, SystemClock.unix_ns()).into(),
        false => printable::lines(text),
    };
    let mut out = std::io::stderr().lock();
    let _ = writeln!(out, "{said}");
}

/// A message as JSON. Its level is the word in front of it, and what helps stands apart.
fn as_json(text: &str, unix_ns: u64) -> String {
    let (level, text) = match (text.strip_prefix("error: "), text.strip_prefix("warning: ")) {
        (Some(rest), _) => ("error", rest),
        (_, Some(rest)) => ("warning", rest),
        _ => ("info", text),
    };
    let mut parts = text.split("\nhint: ");
    let message = parts.next().unwrap_or_default();
    let hints: Vec<&str> = parts.collect();
    let (second, ms) = (rfc3339(unix_ns), unix_ns / 1_000_000 % 1000);
    let time = format!("{}.{ms:03}Z", second.trim_end_matches('Z'));
    let mut line = serde_json::json!({ "time": time, "level": level, "message": message });
    if !hints.is_empty() {
        line["hint"] = hints.join("\n").into();
    }
    printable::json(&line.to_string()).into_owned()
}

/// Prints an error with its causes, then its hints.
pub(crate) fn report_error(error: &anyhow::Error) {
    let (mut text, mut hints) = (String::new(), Vec::new());
    let mut said = String::new();
    for cause in error.chain() {
        let whole = cause.to_string();
        let mut lines = whole.split("\nhint: ");
        let what = lines.next().unwrap_or_default().to_owned();
        hints.extend(lines.map(str::to_owned));
        // A transparent error repeats its cause.
        if !said.ends_with(&what) {
            text.push_str(if text.is_empty() { "error: " } else { "\n  because: " });
            text.push_str(&what);
        }
        said = what;
    }
    hints.dedup();
    for hint in hints {
        text.push_str("\nhint: ");
        text.push_str(&hint);
    }
    say(&text);
}

/// Whether colours belong on stdout.
fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Width of the page on stdout: that of the terminal where `COLUMNS` says so, at most 100.
pub(crate) fn width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(100).clamp(60, 100)
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;

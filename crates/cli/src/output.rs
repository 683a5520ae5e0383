//! What is printed where: results on stdout, everything else on stderr; a closed pipe is no reason to fail.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_campaign::quoted;
use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recording::reader::Recording;
use keepup_report::{Style, terminal, terminal_full};
use keepup_results::{Stored, printable, rfc3339};
use keepup_stream::ledger::LossCause;

use crate::exit::{self, Exit, UsageError};

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
            other => {
                let why = Cause::new(format!("cannot log: {LOG_VARIABLE} is {other:?}"));
                Err(UsageError::new(why.with_hint("json or text")))
            }
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
    draw(stored, terminal);
}

/// Prints the page of a result with all its figures.
pub(crate) fn full_page(stored: &Stored) {
    draw(stored, terminal_full);
}

fn draw(stored: &Stored, renderer: fn(&Stored, Style) -> String) {
    let style = Style { colour: colour(), width: width() };
    // It has cleaned what the result says, and has colours of its own.
    put(renderer(stored, style).trim_end());
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

/// The command as it was typed, quoted where a shell would need it.
pub(crate) fn command() -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    told_command(arguments)
}

fn told_command(arguments: impl Iterator<Item = String>) -> String {
    let told = arguments.map(|argument| quoted(&argument));
    std::iter::once("keepup".to_owned()).chain(told).collect::<Vec<_>>().join(" ")
}

/// Says something on stderr: to people as text, in which what must not reach a terminal is replaced, to
/// programs as one JSON object.
pub(crate) fn say(text: &str) {
    tell(&Cause::from_text(text));
}

/// Says something that may have a hint.
pub(crate) fn tell(message: &Cause) {
    let text = message.to_text();
    let said = match IS_JSON.load(Ordering::Relaxed) {
        true => as_json(message, SystemClock.unix_ns()).into(),
        false => printable::lines(&text),
    };
    let mut out = std::io::stderr().lock();
    let _ = writeln!(out, "{said}");
}

/// A message as JSON. Its level is the word in front of it, and the hint is a key of its own.
fn as_json(message: &Cause, unix_ns: u64) -> String {
    let text = message.to_string();
    let (level, text) = match (text.strip_prefix("error: "), text.strip_prefix("warning: ")) {
        (Some(rest), _) => ("error", rest),
        (_, Some(rest)) => ("warning", rest),
        _ => ("info", text.as_str()),
    };
    let (second, ms) = (rfc3339(unix_ns), unix_ns / 1_000_000 % 1000);
    let time = format!("{}.{ms:03}Z", second.trim_end_matches('Z'));
    let mut line = serde_json::json!({ "time": time, "level": level, "message": text });
    if let Some(hint) = message.hint() {
        line["hint"] = hint.into();
    }
    printable::json(&line.to_string()).into_owned()
}

/// Prints an error with its causes, then its hint.
pub(crate) fn report_error(error: &anyhow::Error) {
    let mut text = String::new();
    let mut said = String::new();
    for cause in error.chain() {
        let what = cause.to_string();
        // A transparent error repeats its cause, and most texts end in it.
        if !said.ends_with(&what) {
            text.push_str(if text.is_empty() { "error: " } else { "\n  because: " });
            text.push_str(&what);
        }
        said = what;
    }
    tell(&Cause::new(text).with_hint(exit::hint(error).unwrap_or_default()));
}

/// Prints what the argument parser says, a mistake with its hint or the help that was asked for.
pub(crate) fn report_flags(error: &clap::Error) -> Exit {
    let _ = error.print();
    if let Some(hint) = hint_of_flags(error) {
        say(&format!("hint: {hint}"));
    }
    if error.use_stderr() { Exit::Usage } else { Exit::Done }
}

/// Hint for a value of a flag that cannot be read.
pub(crate) fn hint_of_flags(error: &clap::Error) -> Option<Cow<'_, str>> {
    exit::diagnostic(std::error::Error::source(error)?)?.hint()
}

/// Whether colours belong on stdout.
fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Width of the page on stdout: that of the terminal where `COLUMNS` says so, at most 100; else 80.
pub(crate) fn width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(80).clamp(60, 100)
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;

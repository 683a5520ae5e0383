//! Output: results on stdout, everything else on stderr.
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use keepup_error::Cause;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_recording::reader::Recording;
use keepup_report::{Style, terminal, terminal_full};
use keepup_results::shell::quoted;
use keepup_results::{Stored, printable, rfc3339};

use crate::exit::{self, Exit, UsageError};
use crate::stdout;

/// Environment variable with the log format. It is removed for child processes whose stderr is parsed.
pub(crate) const LOG_VARIABLE: &str = "KEEPUP_LOG";

/// Whether stderr is JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Log format on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogForm {
    /// Text lines
    Text,
    /// One JSON object per message, with time and level
    Json,
}

impl LogForm {
    /// Log format set by `KEEPUP_LOG`, if any.
    pub(crate) fn of_environment() -> Result<Option<Self>, UsageError> {
        match std::env::var(LOG_VARIABLE).unwrap_or_default().as_str() {
            "" => Ok(None),
            "text" => Ok(Some(Self::Text)),
            "json" => Ok(Some(Self::Json)),
            other => {
                let why = Cause::new(format!("cannot set the log format: {LOG_VARIABLE} is {other:?}"));
                Err(UsageError::new(why.with_hint(format!("{LOG_VARIABLE}=json or {LOG_VARIABLE}=text"))))
            }
        }
    }
}

/// Sets the log format.
pub(crate) fn set_log_format(form: LogForm) {
    IS_JSON.store(form == LogForm::Json, Ordering::Relaxed);
}

/// Whether stderr is a terminal where a progress line can be redrawn.
pub(crate) fn may_redraw() -> bool {
    std::io::stderr().is_terminal() && !IS_JSON.load(Ordering::Relaxed)
}

/// Prints a result. Control characters are replaced.
pub(crate) fn result(text: &str) {
    stdout::print(&printable::lines(text));
}

/// Prints the text report of a result.
pub(crate) fn page(stored: &Stored) {
    draw(stored, terminal);
}

/// Prints the full text report of a result.
pub(crate) fn full_page(stored: &Stored) {
    draw(stored, terminal_full);
}

/// Style without colours, for text in JSON and on stderr.
pub(crate) fn plain() -> Style {
    Style { colour: false, width: width() }
}

fn draw(stored: &Stored, renderer: fn(&Stored, Style) -> String) {
    print_listing(|style| renderer(stored, style));
}

/// Prints a text of crate `report`.
pub(crate) fn print_listing(render: impl FnOnce(Style) -> String) {
    let style = Style { colour: is_coloured(stdout::is_terminal()), width: width() };
    // The renderer replaced control characters and added colours.
    stdout::print(render(style).trim_end());
}

/// Prints one JSON object as the result.
pub(crate) fn json(value: &serde_json::Value) {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|e| format!("{{\"error\": \"{e}\"}}"));
    stdout::print(&printable::json(&text));
}

/// Warns of damaged journal lines; returns whether there are any.
pub(crate) fn warn_of_damage(recording: &Recording) -> bool {
    let lines = || recording.damaged_lines();
    lines().for_each(|line| log(&format!("warning: {line}")));
    lines().next().is_some()
}

/// Reports a file of a result that could not be written. The command goes on, because what was measured is
/// still printed.
pub(crate) fn missing_file(why: &Cause) {
    stdout::set_incomplete();
    log_cause(&why.clone().map(|why| format!("error: {why}")));
}

/// Reports output that could not be written, and returns the exit code of the program.
pub(crate) fn finish(exit: Exit) -> Exit {
    let (exit, failure) = stdout::finish(exit);
    failure.iter().for_each(log_cause);
    exit
}

/// Command line of this process, quoted for a shell.
pub(crate) fn command() -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    shell_command(arguments)
}

fn shell_command(arguments: impl Iterator<Item = String>) -> String {
    let quoted = arguments.map(|argument| quoted(&argument));
    std::iter::once("keepup".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// Logs a message on stderr, as text with control characters replaced, or as one JSON object.
pub(crate) fn log(text: &str) {
    log_cause(&Cause::from_text(text));
}

/// Logs a message that may have a hint.
pub(crate) fn log_cause(message: &Cause) {
    let text = message.to_text();
    let said = match IS_JSON.load(Ordering::Relaxed) {
        true => as_json(message, SystemClock.unix_ns()).into(),
        false => printable::lines(&text),
    };
    let mut out = std::io::stderr().lock();
    let _ = writeln!(out, "{said}");
}

/// Encodes a message as JSON. The level is the prefix of the text; the hint has its own key.
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
        // Transparent errors repeat their cause, and many texts end with it.
        if !said.ends_with(&what) {
            text.push_str(if text.is_empty() { "error: " } else { "\n  because: " });
            text.push_str(&what);
        }
        said = what;
    }
    log_cause(&Cause::new(text).with_hint(exit::hint(error).unwrap_or_default()));
}

/// Prints the output of the argument parser: an error with its hint, or help.
pub(crate) fn report_flags(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        stdout::check(error.print());
        return finish(Exit::Done);
    }
    let _ = match hint_of_flags(error) {
        None => error.print(),
        Some(hint) => {
            let text = error.render();
            let is_coloured = is_coloured(std::io::stderr().is_terminal());
            let text = if is_coloured { text.ansi().to_string() } else { text.to_string() };
            write!(std::io::stderr().lock(), "{}", with_hint(&text, &hint))
        }
    };
    Exit::Usage
}

/// Puts the hint after the error, before the parser's reference to `--help`.
fn with_hint(text: &str, hint: &str) -> String {
    let (error, help) =
        text.split_at(text.rfind("\n\nFor more information").unwrap_or(text.trim_end().len()));
    let error = Cause::new(error.to_owned()).with_hint(printable::lines(hint).into_owned());
    format!("{}{help}", error.to_text())
}

/// Hint for an invalid flag value.
pub(crate) fn hint_of_flags(error: &clap::Error) -> Option<Cow<'_, str>> {
    exit::diagnostic(std::error::Error::source(error)?)?.hint()
}

/// Whether a stream is printed in colour.
fn is_coloured(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none()
}

/// Width of reports on stdout: `COLUMNS`, limited to 60 to 100; 80 if unset.
fn width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(80).clamp(60, 100)
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;

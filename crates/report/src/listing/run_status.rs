//! Status of run control, by `ctl`.

use keepup_error::Cause;
use keepup_results::live::{RunOutcome, RunSettings, RunStatus};
use keepup_results::printable::visible;
use keepup_results::rfc3339;

use super::render;
use crate::Style;
use crate::format::{bytes, plural, seconds};
use crate::page::{Block, Fact, Item};

/// Shows state, settings, volumes and the last run. Names and metadata are escaped, because clients choose
/// them.
#[must_use]
pub fn run_status(status: &RunStatus, style: Style) -> String {
    let mut now = vec![Fact::new("state", state(status))];
    if let Some(error) = status.error.as_deref().map(Cause::from_text) {
        now.push(path("error", &error.to_string()));
        now.extend(error.hint().map(|hint| path("hint", &hint)));
    }
    now.extend(status.listen.iter().map(|listen| path("listening on", listen)));
    now.extend(status.directories.iter().map(|directory| path("recording to", directory)));
    let possible: Vec<&str> = status.commands.iter().map(|command| command.name()).collect();
    if !possible.is_empty() {
        now.push(Fact::new("possible commands", possible.join(", ")));
    }
    let volumes = status.volumes.iter().map(|volume| {
        let free =
            volume.free_bytes.map_or("free space unknown".to_owned(), |free| format!("{} free", bytes(free)));
        path("volume", &format!("{}: {free}", volume.path))
    });
    let blocks = [
        ("", now),
        ("settings", settings(&status.settings)),
        ("volumes", volumes.collect()),
        ("last run", status.last.as_ref().map(last).unwrap_or_default()),
    ];
    let shown = blocks.into_iter().filter(|(_, facts)| !facts.is_empty());
    render(shown.map(|(title, facts)| Block::new(title, vec![Item::Facts(facts)])).collect(), style)
}

/// Text that is escaped and never wrapped.
fn path(label: &str, text: &str) -> Fact {
    Fact::path(label, plain(text))
}

fn plain(text: &str) -> String {
    visible(text)
}

fn state(status: &RunStatus) -> String {
    let run = status.run.map_or(String::new(), |run| format!(", run {run}"));
    let name = status.name.as_ref().map_or(String::new(), |name| format!(", {}", plain(name)));
    let since = rfc3339(status.since_unix_ns);
    format!("{}{run}{name}, since {since}, revision {}", status.state, status.revision)
}

fn settings(settings: &RunSettings) -> Vec<Fact> {
    let stop = &settings.stop;
    let mut facts: Vec<Fact> = settings.profile.iter().map(|profile| path("profile", profile)).collect();
    facts.extend(settings.volumes.iter().map(|volume| path("run on volume", volume)));
    facts.extend(settings.metadata.iter().map(|(key, value)| path(&plain(key), value)));
    let limits =
        [stop.events.map(|events| plural(events, "event")), stop.bytes.map(bytes), stop.seconds.map(seconds)];
    facts.extend(limits.into_iter().flatten().map(|limit| Fact::new("stops after", limit)));
    facts
}

fn last(last: &RunOutcome) -> Vec<Fact> {
    let run = last.run.map_or(String::new(), |run| format!("run {run}, "));
    let whole = if last.whole { "all events durable, none missing" } else { "NOT COMPLETE" };
    let mut facts = vec![
        Fact::new("name", format!("{run}{}: {}", plain(&last.name), plain(&last.ended))),
        Fact::new(
            "received",
            format!("{}, {}", plural(last.received.events, "event"), bytes(last.received.bytes)),
        ),
        Fact::new(
            "durable",
            format!("{} in {}; {whole}", plural(last.durable.events, "event"), seconds(last.seconds)),
        ),
    ];
    facts.extend(last.missing.iter().map(|(cause, events)| {
        Fact::new("missing", format!("{}, {}", plural(*events, "event"), plain(cause)))
    }));
    facts.extend(last.incidents.iter().map(|incident| path("incident", incident)));
    facts.extend(last.master.iter().map(|master| path("for h5py", master)));
    facts
}

#[cfg(test)]
#[path = "run_status_tests.rs"]
mod tests;

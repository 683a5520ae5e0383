//! Status of run control as text.
use keepup_error::Cause;
use keepup_results::live::{RunOutcome, RunSettings, RunStatus};

/// Formats the status. Names and metadata are escaped, because clients choose them.
pub(super) fn status(status: &RunStatus) -> String {
    let run = status.run.map_or(String::new(), |run| format!(" run {run}"));
    let name = status.name.as_ref().map_or(String::new(), |name| format!(", {}", plain(name)));
    let since = keepup_results::rfc3339(status.since_unix_ns);
    let mut lines =
        vec![format!("{}{run}{name} (since {since}, revision {})", status.state, status.revision)];
    if let Some(error) = status.error.as_deref().map(Cause::from_text) {
        lines.push(format!("error: {}", plain(&error.to_string())));
        lines.extend(error.hint().map(|hint| format!("hint: {}", plain(&hint))));
    }
    lines.extend(status.listen.iter().map(|listen| format!("listening on {}", plain(listen))));
    lines.extend(status.directories.iter().map(|directory| format!("recording to {}", plain(directory))));
    lines.extend(settings(&status.settings));
    for volume in &status.volumes {
        let free = volume
            .free_bytes
            .map_or("free space unknown".into(), |b| format!("{:.1} GB free", b as f64 / 1e9));
        lines.push(format!("volume {}: {free}", plain(&volume.path)));
    }
    lines.extend(status.last.iter().flat_map(last));
    let possible: Vec<&str> = status.commands.iter().map(|command| command.name()).collect();
    if !possible.is_empty() {
        lines.push(format!("possible commands: {}", possible.join(", ")));
    }
    lines.join("\n")
}

fn plain(text: &str) -> String {
    text.escape_debug().to_string()
}

fn settings(settings: &RunSettings) -> Vec<String> {
    let stop = &settings.stop;
    let mut lines: Vec<String> = settings.profile.iter().map(|p| format!("profile {}", plain(p))).collect();
    lines.extend(settings.volumes.iter().map(|volume| format!("run on volume {}", plain(volume))));
    lines.extend(settings.metadata.iter().map(|(key, value)| format!("{}: {}", plain(key), plain(value))));
    lines.extend(stop.events.map(|events| format!("stops after {events} events")));
    lines.extend(stop.bytes.map(|bytes| format!("stops after {bytes} bytes")));
    lines.extend(stop.seconds.map(|seconds| format!("stops after {seconds} s")));
    lines
}

fn last(last: &RunOutcome) -> Vec<String> {
    let run = last.run.map_or(String::new(), |run| format!(" run {run},"));
    let whole = if last.whole { "all events durable, none missing" } else { "NOT COMPLETE" };
    let mut lines = vec![
        format!("last:{run} {}: {}", plain(&last.name), plain(&last.ended)),
        format!(
            "last: {} events, {:.3} GB received, {} durable in {:.1} s; {whole}",
            last.received.events,
            last.received.bytes as f64 / 1e9,
            last.durable.events,
            last.seconds
        ),
    ];
    lines.extend(
        last.missing.iter().map(|(cause, events)| format!("missing: {events} events, {}", plain(cause))),
    );
    lines.extend(last.incidents.iter().map(|incident| format!("incident: {}", plain(incident))));
    lines.extend(last.master.iter().map(|path| format!("as one file, for h5py: {}", plain(path))));
    lines
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;

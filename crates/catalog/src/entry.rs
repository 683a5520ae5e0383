//! List entries of one result and of one recording, read from their directories.
use std::path::{Path, PathBuf};

use keepup_live::{ResultEntry, Tone};
use keepup_recording::error::RecordingError;
use keepup_recording::info::{State, state};
use keepup_recording::journal::StreamEnd;
use keepup_recording::reader::Recording;
use keepup_recording::volume::Segment;
use keepup_results::{
    Event, Head, Headed, Kind, RecordingEntry, RecordingState, ResultDirectory, ResultsError, StoredResult,
    rfc3339,
};
use serde_json::Value;

/// The summary within a result's directory.
pub(crate) const SUMMARY: &str = "result.json";
/// Largest summary that is read, bytes. Many are read, also while a recording runs.
const SUMMARY_BYTES_MAX: u64 = 16 << 20;

/// Opens a result in a directory with untrusted content.
pub(crate) fn open_stored(directory: &Path) -> Result<StoredResult, ResultsError> {
    StoredResult::open_directory(directory, SUMMARY_BYTES_MAX)
}

/// Entry of the result in `directory`, with the result's own id.
///
/// Without a summary only the first event is read: the measurement may still run, and its events may be many.
pub(crate) fn result(directory: &Path) -> Result<ResultEntry, ResultsError> {
    if std::fs::symlink_metadata(directory.join(SUMMARY)).is_err() {
        return unfinished(directory);
    }
    let stored = open_stored(directory)?;
    let head = stored.summary.head();
    let (answer, tone) = keepup_report::answer(&stored.summary);
    let entry = entry(directory, &head);
    Ok(ResultEntry { answer, tone: toned(tone), ..entry })
}

fn entry(directory: &Path, head: &Head<'_>) -> ResultEntry {
    ResultEntry {
        id: head.id.to_owned(),
        kind: kind(head.kind),
        workload: head.workload.to_owned(),
        created: head.created.to_owned(),
        answer: String::new(),
        tone: Tone::Plain,
        interrupted: head.interrupted,
        failure: head.failure.map(str::to_owned),
        machine: machine(head.environment),
        tool_version: head.tool_version.to_owned(),
        directory: directory.display().to_string(),
    }
}

/// Entry of a result that has no summary, from its first event.
fn unfinished(directory: &Path) -> Result<ResultEntry, ResultsError> {
    let first = ResultDirectory::open(directory)?.events()?.next().transpose()?;
    let Some(Event::Started {
        tool_version, id, kind, command, profile, plan, environment, t_unix_ns, ..
    }) = first
    else {
        return Err(ResultsError::CutOff {
            path: directory.to_path_buf(),
            reason: "its event log has no start event".into(),
        });
    };
    let created = rfc3339(t_unix_ns);
    let head = Head {
        kind,
        id: &id,
        tool_version: &tool_version,
        created: &created,
        command: &command,
        workload: &profile,
        plan: &plan,
        environment: &environment,
        failure: None,
        interrupted: false,
    };
    let answer = "not finished: running or interrupted".to_owned();
    Ok(ResultEntry { answer, tone: Tone::Doubtful, ..entry(directory, &head) })
}

fn kind(kind: Kind) -> String {
    let value = serde_json::to_value(kind).ok();
    value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn toned(tone: keepup_report::Tone) -> Tone {
    match tone {
        keepup_report::Tone::Plain => Tone::Plain,
        keepup_report::Tone::Good => Tone::Good,
        keepup_report::Tone::Doubtful => Tone::Doubtful,
        keepup_report::Tone::Bad => Tone::Bad,
    }
}

/// Short description of the machine, from an environment record of any version.
fn machine(environment: &Value) -> Option<String> {
    let read = |path: &str| environment.pointer(path).filter(|value| !value.is_null());
    let product = read("/machine/product/value").and_then(Value::as_str).map(str::to_owned);
    let model = read("/cpu/model/value").and_then(Value::as_str).map(str::to_owned);
    let cores = read("/cpu/logical_cores/value").and_then(Value::as_u64).map(|n| format!("{n} cores"));
    let name = keepup_results::machine_name(environment);
    let parts: Vec<String> = [name, product, model, cores].into_iter().flatten().collect();
    if parts.is_empty() { None } else { Some(parts.join(", ")) }
}

/// Entry of the recording that `directories` are volumes of. Reads journals; no index, no event.
pub(crate) fn recording(directories: &[PathBuf]) -> Result<RecordingEntry, RecordingError> {
    let recording = Recording::open_present(directories)?;
    let manifest = recording.manifest();
    let (stands, ended) = match state(&recording) {
        State::BeingMade => (RecordingState::BeingWritten, None),
        State::Clean => (RecordingState::Sealed, None),
        State::Unclean { reason } => (RecordingState::Sealed, Some(reason)),
        State::CutOff => (RecordingState::NeedsRecovery, None),
    };
    let volumes = recording.volumes();
    // The end record of each volume covers all volumes.
    let counts = volumes.iter().find_map(|volume| volume.end()).map(|end| &end.streams);
    let durable = |streams: &Vec<StreamEnd>| {
        streams.iter().fold(0u64, |sum, stream| sum.saturating_add(stream.durable.events))
    };
    let bytes = volumes.iter().flat_map(|volume| volume.segments()).map(Segment::file_bytes);
    Ok(RecordingEntry {
        id: manifest.recording.to_string(),
        name: manifest.name.clone(),
        run: manifest.run,
        metadata: manifest.metadata.clone(),
        created: rfc3339(manifest.created_unix_ns),
        state: stands,
        ended,
        directories: volumes.iter().map(|volume| volume.dir().display().to_string()).collect(),
        missing_volumes: recording.missing().iter().map(|path| path.display().to_string()).collect(),
        streams: recording.streams().len() as u64,
        events: counts.filter(|_| stands == RecordingState::Sealed).map(durable),
        bytes: bytes.fold(0, u64::saturating_add),
        missing_events: recording.gaps().iter().fold(0, |sum, gap| sum.saturating_add(gap.events)),
    })
}

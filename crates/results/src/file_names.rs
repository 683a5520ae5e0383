//! Names of the files in a result directory.

/// Marker file of directories created by keepup.
pub(crate) const MARKER: &str = ".keepup-result";
/// The event log.
pub(crate) const EVENTS: &str = "events.jsonl";
/// The summary.
pub(crate) const SUMMARY: &str = "result.json";
/// The summary while it is written.
pub(crate) const SUMMARY_TEMPORARY: &str = ".result.json.new";

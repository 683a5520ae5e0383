//! Names of the files in a result directory.

/// Marker file of directories created by keepup.
pub(crate) const MARKER: &str = ".keepup-result";
/// The event log.
pub(crate) const EVENTS: &str = "events.jsonl";
/// The summary.
pub(crate) const SUMMARY: &str = "result.json";
/// The checksums of all files, as `sha256sum` writes them.
pub(crate) const CHECKSUMS: &str = "SHA256SUMS";
/// The checksums while they are written.
pub(crate) const CHECKSUMS_TEMPORARY: &str = ".SHA256SUMS.new";
/// The summary while it is written.
pub(crate) const SUMMARY_TEMPORARY: &str = ".result.json.new";

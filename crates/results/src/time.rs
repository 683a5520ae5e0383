//! Times of results as text: RFC 3339, UTC.

use std::time::{Duration, UNIX_EPOCH};

/// Formats nanoseconds since the Unix epoch as RFC 3339, UTC, whole seconds.
#[must_use]
pub fn rfc3339(unix_ns: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(unix_ns)).to_string()
}

/// Parses a time in the format of [`rfc3339`] to nanoseconds since the Unix epoch; `None` if
/// malformed.
pub fn unix_ns(text: &str) -> Option<u64> {
    let time = humantime::parse_rfc3339(text).ok()?;
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

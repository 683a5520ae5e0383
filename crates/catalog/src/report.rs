//! Page of a stored result.
use keepup_report::{History, html};
use keepup_results::StoredResult;

/// HTML page of a result, with the history in its event log.
#[must_use]
pub fn report_page(stored: &StoredResult) -> String {
    let history = match stored.directory().map(|directory| directory.events()) {
        Some(Ok(events)) => History::read(events),
        Some(Err(why)) => History::missing(&why.to_string()),
        None => History::missing("the summary alone was given"),
    };
    html(&stored.summary, &history)
}

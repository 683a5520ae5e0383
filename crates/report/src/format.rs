//! Formatting of figures: decimal units, three significant digits, "not measured" for missing ones.

use keepup_results::Count;
pub(crate) use keepup_results::format::{bytes, digits, megabytes_per_second, number, rate, rates, seconds};
pub use keepup_results::format::{plural, time};

/// Text for a missing figure.
pub(crate) const NOT_MEASURED: &str = "not measured";

/// Bars of rising height.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Formats a figure, or returns "not measured".
pub(crate) fn or_not_measured<T>(figure: Option<T>, words: impl FnOnce(T) -> String) -> String {
    figure.map_or_else(|| NOT_MEASURED.to_owned(), words)
}

/// Formats a figure with a fixed number of decimals, or "-". The column title has the unit.
pub(crate) fn fixed(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Formats events and bytes: "3 events (786 kB)".
pub(crate) fn count(count: Count) -> String {
    format!("{} ({})", plural(count.events, "event"), bytes(count.bytes))
}

/// Formats per cent: "12.0 %".
pub(crate) fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

/// Draws a horizontal bar of at most `width` characters, at least one if the value is not 0.
pub(crate) fn bar(value: f64, full: f64, width: usize) -> String {
    let share = if full > 0.0 { (value / full).clamp(0.0, 1.0) } else { 0.0 };
    let length = (share * width as f64).round() as usize;
    "█".repeat(length.max(usize::from(share > 0.0)))
}

/// Draws a share of 100 % as the height of one character.
pub(crate) fn height(percent: f64) -> char {
    let index = (percent.clamp(0.0, 100.0) / 100.0 * 7.0).round() as usize;
    HEIGHTS.get(index).copied().unwrap_or(' ')
}

/// First line of a text.
pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Shortens a text to `width` characters by cutting its middle: both ends of a path matter most.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let tail = kept - kept / 2;
    text.chars().take(kept / 2).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;

//! Formatting of figures: decimal units, three significant digits, "not measured" for missing ones.

use keepup_results::Count;

/// Text for a missing figure.
pub(crate) const NOT_MEASURED: &str = "not measured";

const BYTE_UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
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

/// Formats bytes in decimal units: "7.20 GB".
pub(crate) fn bytes(bytes: u64) -> String {
    if bytes < 1000 { format!("{bytes} B") } else { scaled(bytes as f64) }
}

/// Formats bytes per second in decimal units: "80.0 MB/s".
pub(crate) fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", scaled(bytes_per_second))
}

fn scaled(bytes: f64) -> String {
    let mut value = bytes;
    let mut unit = 0;
    // 999.5 would be rounded to 1000.
    while value >= 999.5 && unit + 1 < BYTE_UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", digits(value), BYTE_UNITS.get(unit).copied().unwrap_or_default())
}

/// Rounds to three significant digits, but never before the decimal point.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.0995 || size == 0.0 => format!("{value:.2}"),
        size if size >= 0.000_95 => format!("{value:.4}").trim_end_matches('0').to_owned(),
        _ => format!("{value:.1e}"),
    }
}

/// Formats an integer with thousands separators: "27,466".
pub(crate) fn number(value: u64) -> String {
    let plain = value.to_string();
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats events and bytes: "3 events (786 kB)".
pub(crate) fn count(count: Count) -> String {
    format!("{} ({})", plural(count.events, "event"), bytes(count.bytes))
}

/// Formats a count with its noun: "1 pass", "3 events". Adds -es after -s and -ch.
pub fn plural(value: u64, one: &str) -> String {
    let ending = match value {
        1 => "",
        _ if one.ends_with('s') || one.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {one}{ending}", number(value))
}

/// Formats a duration: "60 s", "8 h".
pub(crate) fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1.0 => (s * 1e3, "ms"),
        s if s < 600.0 => (s, "s"),
        s if s < 7200.0 => (s / 60.0, "min"),
        s if s < 172_800.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "days"),
    };
    let text = digits(value);
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} {unit}")
}

/// Formats a duration that may be short: "1.20 us".
pub fn time(value: f64) -> String {
    let units = [(1e-9, "ns"), (1e-6, "us"), (1e-3, "ms")];
    match units.iter().rev().find(|(unit, _)| value.abs() >= *unit).or(units.first()) {
        Some((unit, name)) if value.abs() < 1.0 => format!("{} {name}", digits(value / unit)),
        _ => seconds(value),
    }
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

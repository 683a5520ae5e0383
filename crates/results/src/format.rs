//! Formatting of figures for sentences: decimal units, three significant digits.

const BYTE_UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
/// Index of MB.
const MEGABYTES: usize = 2;
/// Lowest value with two significant digits in two decimals.
const TWO_DIGITS: f64 = 0.0995;

/// Formats bytes in decimal units: "7.20 GB".
#[must_use]
pub fn bytes(bytes: u64) -> String {
    if bytes < 1000 { format!("{bytes} B") } else { scaled(bytes as f64) }
}

/// Formats bytes per second in decimal units: "80.0 MB/s".
#[must_use]
pub fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", scaled(bytes_per_second))
}

/// Formats the rates of one sentence in one unit, so that they can be compared: that of the highest, or MB/s
/// if the lowest has fewer than two significant digits in it. "0.95 GB/s" beside "1.05 GB/s", "1861 MB/s"
/// beside "80.0 MB/s".
#[must_use]
pub fn rates<const N: usize>(bytes_per_second: [f64; N]) -> [String; N] {
    let highest = bytes_per_second.iter().copied().fold(0.0, f64::max);
    let (_, own) = scale(highest);
    let is_short = |rate: &f64| *rate != 0.0 && in_unit(*rate, own) < TWO_DIGITS;
    let unit = if bytes_per_second.iter().any(is_short) { own.min(MEGABYTES) } else { own };
    bytes_per_second.map(|rate| rate_in(rate, unit))
}

/// Formats bytes per second in MB/s, beside a text that states rates in MB/s: "1861 MB/s".
#[must_use]
pub fn megabytes_per_second(bytes_per_second: f64) -> String {
    rate_in(bytes_per_second, MEGABYTES)
}

fn rate_in(bytes_per_second: f64, unit: usize) -> String {
    let name = BYTE_UNITS.get(unit).copied().unwrap_or_default();
    format!("{} {name}/s", digits(in_unit(bytes_per_second, unit)))
}

/// Value in the unit with this index, by the same divisions as [`scale`].
fn in_unit(bytes: f64, unit: usize) -> f64 {
    (0..unit).fold(bytes, |value, _| value / 1000.0)
}

/// Value in the decimal unit that suits it, and the index of the unit.
fn scale(bytes: f64) -> (f64, usize) {
    let (mut value, mut unit) = (bytes, 0);
    // 999.5 would be rounded to 1000.
    while value >= 999.5 && unit + 1 < BYTE_UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    (value, unit)
}

fn scaled(bytes: f64) -> String {
    let (value, unit) = scale(bytes);
    format!("{} {}", digits(value), BYTE_UNITS.get(unit).copied().unwrap_or_default())
}

/// Rounds to three significant digits, but never before the decimal point.
#[must_use]
pub fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.0995 || size == 0.0 => format!("{value:.2}"),
        size if size >= 0.000_95 => format!("{value:.4}").trim_end_matches('0').to_owned(),
        _ => format!("{value:.1e}"),
    }
}

/// Formats an integer with thousands separators: "27,466".
#[must_use]
pub fn number(value: u64) -> String {
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

/// Formats a count with its noun: "1 pass", "3 events". Adds -es after -s and -ch.
#[must_use]
pub fn plural(value: u64, one: &str) -> String {
    let ending = match value {
        1 => "",
        _ if one.ends_with('s') || one.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {one}{ending}", number(value))
}

/// Formats a duration: "60 s", "8 h".
#[must_use]
pub fn seconds(seconds: f64) -> String {
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
#[must_use]
pub fn time(value: f64) -> String {
    let units = [(1e-9, "ns"), (1e-6, "us"), (1e-3, "ms")];
    match units.iter().rev().find(|(unit, _)| value.abs() >= *unit).or(units.first()) {
        Some((unit, name)) if value.abs() < 1.0 => format!("{} {name}", digits(value / unit)),
        _ => seconds(value),
    }
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;

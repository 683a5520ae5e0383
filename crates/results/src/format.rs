//! Formatting of figures for sentences: decimal units, three significant digits.

const BYTE_UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

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

/// Formats bytes per second in the unit of `like`, so that two rates of one sentence can be compared:
/// "0.95 GB/s" beside "1.05 GB/s". Rates that differ by a factor of ten or more keep their own units.
#[must_use]
pub fn rate_like(bytes_per_second: f64, like: f64) -> String {
    let ((value, own), (_, unit)) = (scale(bytes_per_second), scale(like));
    let ratio = bytes_per_second / like;
    if own == unit || !(0.1..=10.0).contains(&ratio) {
        return rate(bytes_per_second);
    }
    // The units differ by one: the rates differ by less than a factor of ten.
    let value = if own < unit { value / 1000.0 } else { value * 1000.0 };
    format!("{} {}/s", digits(value), BYTE_UNITS.get(unit).copied().unwrap_or_default())
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

//! Quantities of the model: numbers with units, with an exact text form.
//!
//! Invariants: MB is 10^6 bytes, MiB is 2^20; a value is stored in the base unit of its dimension,
//! and is never negative, infinite or NaN.

use std::fmt;
use std::str::FromStr;

use keepup_error::Cause;

/// Dimension and its base unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// Bytes; also the width of a bus, written in bits.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Per second: clocks, symbols, transfers, operations, turns.
    PerSecond,
    /// Seconds.
    Seconds,
    /// Metres.
    Metres,
    /// Cycles per byte.
    CyclesPerByte,
    /// Cycles.
    Cycles,
    /// Busy seconds per byte; written per 10^9 bytes.
    SecondsPerByte,
    /// A share from 0; written in percent.
    Share,
    /// Words of a size given by the part.
    Words,
    /// A plain number.
    Count,
}

impl Dimension {
    /// Base unit, or the one preferred for output.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::BytesPerSecond => "B/s",
            Self::PerSecond => "Hz",
            Self::Seconds => "s",
            Self::Metres => "m",
            Self::CyclesPerByte => "cycles/B",
            Self::Cycles => "cycles",
            Self::SecondsPerByte => "s/GB",
            Self::Share => "%",
            Self::Words => "words",
            Self::Count => "a plain number",
        }
    }
}

/// A unit of one dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    name: &'static str,
    dimension: Dimension,
    scale: f64,
}

const fn unit(name: &'static str, dimension: Dimension, scale: f64) -> Unit {
    Unit { name, dimension, scale }
}

const KIB: f64 = 1024.0;

/// All units, each dimension from its base unit up.
const UNITS: &[Unit] = &[
    unit("B", Dimension::Bytes, 1.0),
    unit("bit", Dimension::Bytes, 0.125),
    unit("kB", Dimension::Bytes, 1e3),
    unit("MB", Dimension::Bytes, 1e6),
    unit("GB", Dimension::Bytes, 1e9),
    unit("TB", Dimension::Bytes, 1e12),
    unit("KiB", Dimension::Bytes, KIB),
    unit("MiB", Dimension::Bytes, KIB * KIB),
    unit("GiB", Dimension::Bytes, KIB * KIB * KIB),
    unit("B/s", Dimension::BytesPerSecond, 1.0),
    unit("kB/s", Dimension::BytesPerSecond, 1e3),
    unit("MB/s", Dimension::BytesPerSecond, 1e6),
    unit("GB/s", Dimension::BytesPerSecond, 1e9),
    unit("TB/s", Dimension::BytesPerSecond, 1e12),
    unit("KiB/s", Dimension::BytesPerSecond, KIB),
    unit("MiB/s", Dimension::BytesPerSecond, KIB * KIB),
    unit("GiB/s", Dimension::BytesPerSecond, KIB * KIB * KIB),
    unit("bit/s", Dimension::BytesPerSecond, 0.125),
    unit("kbit/s", Dimension::BytesPerSecond, 125.0),
    unit("Mbit/s", Dimension::BytesPerSecond, 125e3),
    unit("Gbit/s", Dimension::BytesPerSecond, 125e6),
    unit("Hz", Dimension::PerSecond, 1.0),
    unit("/s", Dimension::PerSecond, 1.0),
    unit("kHz", Dimension::PerSecond, 1e3),
    unit("MHz", Dimension::PerSecond, 1e6),
    unit("GHz", Dimension::PerSecond, 1e9),
    unit("MT/s", Dimension::PerSecond, 1e6),
    unit("GT/s", Dimension::PerSecond, 1e9),
    unit("GBd", Dimension::PerSecond, 1e9),
    unit("rpm", Dimension::PerSecond, 1.0 / 60.0),
    unit("s", Dimension::Seconds, 1.0),
    unit("ms", Dimension::Seconds, 1e-3),
    unit("us", Dimension::Seconds, 1e-6),
    unit("ns", Dimension::Seconds, 1e-9),
    unit("m", Dimension::Metres, 1.0),
    unit("km", Dimension::Metres, 1e3),
    unit("cycles/B", Dimension::CyclesPerByte, 1.0),
    unit("cycles", Dimension::Cycles, 1.0),
    unit("s/B", Dimension::SecondsPerByte, 1.0),
    unit("s/GB", Dimension::SecondsPerByte, 1e-9),
    unit("%", Dimension::Share, 0.01),
    unit("of 1", Dimension::Share, 1.0),
    unit("words", Dimension::Words, 1.0),
    unit("", Dimension::Count, 1.0),
];

/// Maximum length of quoted input, characters.
const WRITTEN_MAX: usize = 40;

impl Unit {
    /// Unit with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        UNITS.iter().find(|unit| unit.name == name).copied()
    }

    /// Text form; empty for a plain number.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Dimension.
    #[must_use]
    pub fn dimension(self) -> Dimension {
        self.dimension
    }

    /// Text that parses back to exactly `value` in base units: in this unit if possible, else in
    /// another of its dimension.
    #[must_use]
    pub fn exact(self, value: f64) -> String {
        let others = UNITS.iter().filter(|unit| unit.dimension == self.dimension).copied();
        let written = |unit: Self| format!("{} {}", value / unit.scale, unit.name).trim_end().to_owned();
        let faithful = |text: &String| text.parse::<Quantity>().is_ok_and(|read| read.value == value);
        std::iter::once(self).chain(others).map(written).find(faithful).unwrap_or_else(|| written(self))
    }

    /// `value` in base units, rounded to four figures.
    #[must_use]
    pub fn rounded(self, value: f64) -> String {
        let value = value / self.scale;
        let digits = if value > 0.0 { value.log10().floor() as i32 } else { 0 };
        let decimals = usize::try_from(3 - digits).unwrap_or(0).min(12);
        let text = format!("{value:.decimals$}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{text} {}", self.name).trim_end().to_owned()
    }
}

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// Value in base units.
    pub value: f64,
    /// Unit as written.
    pub unit: Unit,
}

impl FromStr for Quantity {
    type Err = Cause;

    /// Parses "136 MB/s", "5.5ms" or "9".
    fn from_str(written: &str) -> Result<Self, Cause> {
        let text = written.trim();
        let short: String = written.chars().take(WRITTEN_MAX).collect();
        let refuse = |why: &str| Cause::new(format!("cannot parse the figure {short:?}: {why}"));
        if text.starts_with('-') {
            return Err(refuse("negative"));
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, name) = (&text[..end], text[end..].trim());
        let number: f64 = number.parse().map_err(|_| refuse("does not start with a number"))?;
        let Some(unit) = Unit::named(name) else {
            return Err(refuse("unknown unit").with_hint(unit_hint(name)));
        };
        let value = number * unit.scale;
        if value.is_finite() { Ok(Self { value, unit }) } else { Err(refuse("too large")) }
    }
}

/// Suggestion for an unknown unit.
fn unit_hint(name: &str) -> String {
    let meant = name.replace("ps", "/s");
    match UNITS.iter().find(|unit| unit.name.eq_ignore_ascii_case(&meant)) {
        Some(unit) => format!("did you mean {:?}?", unit.name),
        None => {
            "use a unit as in 8 MiB, 136 MB/s, 1 Gbit/s, 33 MHz, 5.5 ms, 2.1 cycles/B, 0.2 s/GB, 32 %".into()
        }
    }
}

impl fmt::Display for Quantity {
    /// Exact: parses back to the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.unit.exact(self.value))
    }
}

#[cfg(test)]
#[path = "unit_tests.rs"]
mod tests;

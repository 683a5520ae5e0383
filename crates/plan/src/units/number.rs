//! Numbers with units: parsing, rounding to three figures, and the shortest exact text.

use super::UnitError;

/// Name and size of a unit in base units.
pub(super) type Scale = (&'static str, u64);

/// A kind of quantity: its name for messages and its units.
pub(super) struct QuantityKind {
    pub(super) what: &'static str,
    pub(super) example: &'static str,
    pub(super) accepted: &'static str,
    /// Smallest first.
    pub(super) decimal: &'static [Scale],
    /// Smallest first.
    pub(super) binary: &'static [Scale],
    /// Accepted, and preferred in files, but not used for display.
    pub(super) aliases: &'static [Scale],
}

/// Parsed input.
pub(super) struct Number {
    digits: f64,
    /// The number, if written without a fraction: sizes must not pass through floating point.
    pub(super) whole: Option<u64>,
    /// Base units per unit.
    pub(super) scale: u64,
}

impl Number {
    /// In base units.
    pub(super) fn value(&self) -> f64 {
        self.digits * self.scale as f64
    }
}

impl QuantityKind {
    /// Parses a number with one of the units.
    pub(super) fn parse(&self, written: &str) -> Result<Number, UnitError> {
        let text = written.trim();
        if text.starts_with('-') {
            return Err(self.refuse(written, "it is negative"));
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim_start());
        let digits = match number.parse::<f64>() {
            Ok(digits) if digits.is_finite() => digits,
            Ok(_) => return Err(self.refuse(written, "the number is too large")),
            Err(_) => return Err(self.refuse(written, "it does not begin with a number")),
        };
        let Some(scale) = self.units().find(|(name, _)| *name == unit).map(|(_, scale)| scale) else {
            let why = match unit {
                "" => "the unit is missing".to_owned(),
                unit => format!("{unit:?} is not one of its units"),
            };
            return Err(self.refuse(written, why).with_hint(self.unit_hint(number, digits, unit)));
        };
        Ok(Number { digits, whole: number.parse().ok(), scale })
    }

    /// Like [`QuantityKind::parse`], as a finite number of base units.
    pub(super) fn parse_finite(&self, written: &str) -> Result<f64, UnitError> {
        let value = self.parse(written)?.value();
        if value.is_finite() { Ok(value) } else { Err(self.refuse(written, "the number is too large")) }
    }

    /// A computed value in base units, if finite and not negative.
    pub(super) fn finite(&self, value: f64) -> Result<f64, UnitError> {
        if value.is_finite() && value >= 0.0 {
            return Ok(value);
        }
        Err(self.refuse(&value.to_string(), "it must be finite and not negative"))
    }

    pub(super) fn refuse(&self, written: &str, why: impl Into<String>) -> UnitError {
        UnitError::new(self.what, written, why, self.accepted)
    }

    /// Shortest text that parses back to exactly this value, in the largest fitting unit.
    pub(super) fn exact(&self, value: f64) -> String {
        let texts = self.units().map(|(name, scale)| format!("{} {name}", value / scale as f64));
        let faithful = texts.filter(|text| self.parse(text).is_ok_and(|number| number.value() == value));
        faithful.min_by_key(String::len).unwrap_or_else(|| format!("{value} {}", self.decimal[0].0))
    }

    /// [`QuantityKind::exact`] for integers, which may exceed floating point precision.
    pub(super) fn exact_whole(&self, value: u64) -> String {
        let fitting = self.units().filter(|(_, scale)| value.is_multiple_of(*scale));
        let texts = fitting.map(|(name, scale)| format!("{} {name}", value / scale));
        texts.min_by_key(String::len).unwrap_or_else(|| format!("{value} {}", self.decimal[0].0))
    }

    fn units(&self) -> impl Iterator<Item = Scale> {
        self.aliases.iter().chain(self.decimal).chain(self.binary).copied()
    }

    /// Hint for units that are often used but not accepted.
    fn unit_hint(&self, number: &str, digits: f64, unit: &str) -> Option<String> {
        if unit.is_empty() {
            return Some(format!("write the unit after the number, such as {:?}", self.example));
        }
        let unit = unit.replace("ps", "/s");
        let counts_bytes = !self.binary.is_empty();
        if counts_bytes && unit.contains('b') {
            return Some(bits_hint(number, digits, &unit));
        }
        if counts_bytes && unit.starts_with("KB") {
            return Some("write kB for 1000 bytes or KiB for 1024 bytes".to_owned());
        }
        if let Some((name, _)) = self.units().find(|(name, _)| name.eq_ignore_ascii_case(&unit)) {
            return Some(format!("write {:?}", format!("{number} {name}")));
        }
        let prefix = unit.trim_end_matches("/s");
        if counts_bytes && ["k", "K", "M", "G", "T", "P"].contains(&prefix) {
            return Some(format!(
                "{prefix}B counts in powers of 1000, {prefix}iB in powers of 1024: write which"
            ));
        }
        None
    }
}

/// Explains that a small b means bits, with the value in bytes if the prefix is clear.
fn bits_hint(number: &str, digits: f64, unit: &str) -> String {
    let why = "a small b counts bits, and here all is in bytes";
    match unit.split_once('b') {
        Some((prefix @ ("k" | "M" | "G" | "T"), rest)) => {
            let rate = if rest.ends_with("/s") { "/s" } else { "" };
            format!("{why}: {number} {unit} is {} {prefix}B{rate}", digits / 8.0)
        }
        _ => why.to_owned(),
    }
}

/// Three figures in the unit that leaves at least one digit before the point; base units as
/// integers.
pub(super) fn rounded(value: f64, scales: &[Scale]) -> String {
    let mut text = String::new();
    for (at, (name, scale)) in scales.iter().enumerate() {
        let scaled = value / *scale as f64;
        let decimals = match scaled {
            _ if scaled.fract() == 0.0 && *scale == 1 => 0,
            _ if scaled < 9.995 => 2,
            _ if scaled < 99.95 => 1,
            _ => 0,
        };
        text = format!("{scaled:.decimals$} {name}");
        match scales.get(at + 1) {
            Some((_, next)) if scaled.round() >= (next / scale) as f64 => {}
            _ => break,
        }
    }
    text
}

//! A figure of a part or machine: value, range and source.
//!
//! Invariants: `low <= value <= high`, all in base units of one dimension; every figure has a
//! source.

use std::fmt;

use keepup_error::Cause;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::unit::{Quantity, Unit};

/// Kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Datasheet of the vendor.
    Datasheet,
    /// One of the five papers, or another publication.
    Paper,
    /// Fitted to a published or measured result.
    Fitted,
    /// Measured on the machine itself.
    Measured,
    /// A guess, with a range.
    Guessed,
    /// Prescribed by a standard.
    Standard,
    /// Set by the user, such as a number of nodes or a frame size.
    Given,
}

/// A figure with range and source.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranged {
    /// Value in base units.
    pub value: f64,
    /// Minimum in base units.
    pub low: f64,
    /// Maximum in base units.
    pub high: f64,
    /// Unit as written.
    pub unit: Unit,
    /// Kind of source.
    pub source: Source,
    /// Source, in words; empty if set by the user.
    pub from: String,
}

/// A figure as a table of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[String; 2]>,
    source: Source,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    from: String,
}

impl Ranged {
    /// A figure set by the user, without a range.
    #[must_use]
    pub fn given(quantity: Quantity) -> Self {
        let Quantity { value, unit } = quantity;
        Self { value, low: value, high: value, unit, source: Source::Given, from: String::new() }
    }

    /// A figure with a range.
    ///
    /// # Errors
    /// The range is inverted, does not contain the value, or has other units.
    pub fn new(
        value: Quantity,
        range: Option<[Quantity; 2]>,
        source: Source,
        from: &str,
    ) -> Result<Self, Cause> {
        let [low, high] = range.unwrap_or([value, value]);
        let dimension = value.unit.dimension();
        if low.unit.dimension() != dimension || high.unit.dimension() != dimension {
            return Err(format!("the range {low} to {high} has another unit than its value {value}").into());
        }
        if low.value > high.value {
            return Err(format!("the range {low} to {high} is reversed").into());
        }
        if value.value < low.value || value.value > high.value {
            return Err(format!("the range {low} to {high} does not contain its value {value}").into());
        }
        if source != Source::Given && from.is_empty() {
            return Err(Cause::new("the source is missing").with_hint("add from = \"...\""));
        }
        let from = from.to_owned();
        Ok(Self { value: value.value, low: low.value, high: high.value, unit: value.unit, source, from })
    }

    /// The value in the unit in which it was written.
    #[must_use]
    pub fn quantity(&self) -> Quantity {
        Quantity { value: self.value, unit: self.unit }
    }

    /// Whether it has a range.
    #[must_use]
    pub(crate) fn has_range(&self) -> bool {
        self.low < self.high
    }
}

impl fmt::Display for Ranged {
    /// Text such as "136 MB/s (130 MB/s to 140 MB/s)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value| self.unit.rounded(value);
        f.write_str(&text(self.value))?;
        if self.has_range() { write!(f, " ({} to {})", text(self.low), text(self.high)) } else { Ok(()) }
    }
}

impl TryFrom<Form> for Ranged {
    type Error = Cause;

    fn try_from(form: Form) -> Result<Self, Cause> {
        let range = match &form.range {
            Some([low, high]) => Some([low.parse()?, high.parse()?]),
            None => None,
        };
        Self::new(form.value.parse()?, range, form.source, &form.from)
    }
}

impl Serialize for Ranged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.source == Source::Given && !self.has_range() && self.from.is_empty() {
            return serializer.serialize_str(&self.unit.exact(self.value));
        }
        let range = self.has_range().then(|| [self.unit.exact(self.low), self.unit.exact(self.high)]);
        let value = self.unit.exact(self.value);
        Form { value, range, source: self.source, from: self.from.clone() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ranged {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RangedVisitor)
    }
}

struct RangedVisitor;

impl<'de> Visitor<'de> for RangedVisitor {
    type Value = Ranged;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a figure such as \"9\" or { value = \"136 MB/s\", source = \"paper\", from = \"...\" }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Ranged, E> {
        text.parse().map(Ranged::given).map_err(|why: Cause| E::custom(why.to_text()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Ranged, A::Error> {
        let form = Form::deserialize(MapAccessDeserializer::new(map))?;
        Ranged::try_from(form).map_err(|why| de::Error::custom(why.to_text()))
    }
}

#[cfg(test)]
#[path = "ranged_tests.rs"]
mod tests;

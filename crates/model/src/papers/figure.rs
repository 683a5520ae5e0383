//! Published figures.
use serde::{Deserialize, Serialize};

use super::PaperUnit;

/// Published figure. Exactly one of `value`, `range`, `at_least` and `shape` is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Id of the row or group of rows: "E1".
    pub id: String,
    /// Table, figure or section of the paper.
    pub place: String,
    /// Measured system: machine, disks, method.
    pub system: String,
    /// Condition: depth, number of processes, background load.
    pub condition: String,
    /// Quantity.
    pub quantity: String,
    /// Value.
    pub value: Option<f64>,
    /// Minimum and maximum.
    pub range: Option<[f64; 2]>,
    /// Lower bound.
    pub at_least: Option<f64>,
    /// Description, if there is no number.
    pub shape: Option<String>,
    /// Unit as printed.
    pub printed: String,
    /// Actual unit.
    pub unit: PaperUnit,
    /// False if it is from a lost chart or its meaning is uncertain.
    #[serde(default = "yes")]
    pub reliable: bool,
    /// Whether the value was read from a chart.
    #[serde(default)]
    pub digitised: bool,
    /// Uncertainties, and the reason for a unit other than the printed one.
    pub note: Option<String>,
}

fn yes() -> bool {
    true
}

/// Content of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Published<'a> {
    /// Value.
    Value(f64),
    /// Minimum and maximum.
    Range(f64, f64),
    /// Lower bound.
    AtLeast(f64),
    /// Description.
    Shape(&'a str),
}

impl PublishedFigure {
    /// Content. `None` only if unchecked.
    #[must_use]
    pub fn published(&self) -> Option<Published<'_>> {
        let value = self.value.map(Published::Value);
        let range = self.range.map(|[low, high]| Published::Range(low, high));
        let at_least = self.at_least.map(Published::AtLeast);
        let shape = self.shape.as_deref().map(Published::Shape);
        let mut found = [value, range, at_least, shape].into_iter().flatten();
        found.next().filter(|_| found.next().is_none())
    }

    /// Value in B/s, B or s; the middle of a range.
    #[must_use]
    pub fn in_base(&self) -> Option<f64> {
        let number = match self.published()? {
            Published::Value(value) | Published::AtLeast(value) => value,
            Published::Range(low, high) => f64::midpoint(low, high),
            Published::Shape(_) => return None,
        };
        Some(self.unit.in_base(number))
    }

    /// First error, if any.
    pub(super) fn fault(&self) -> Option<String> {
        let numbers = self.value.into_iter().chain(self.range.into_iter().flatten()).chain(self.at_least);
        let mut bad = numbers.filter(|number| !number.is_finite() || *number <= 0.0);
        match self.published() {
            None => Some("needs exactly one of value, range, at_least and shape".to_owned()),
            Some(Published::Range(low, high)) if low >= high => {
                Some(format!("the range {low} to {high} is empty"))
            }
            Some(_) => bad.next().map(|number| format!("{number} is not positive")),
        }
    }
}

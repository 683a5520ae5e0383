//! One published figure.
use serde::{Deserialize, Serialize};

use super::PaperUnit;

/// What a paper says of one quantity. Exactly one of `value`, `range`, `at_least` and `shape` is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Id of the row or group of rows: "E1".
    pub id: String,
    /// Table, figure or section of the paper.
    pub place: String,
    /// What was measured: machine, disks, method.
    pub system: String,
    /// Under which condition: depth, number of processes, what ran beside it.
    pub condition: String,
    /// What of it.
    pub quantity: String,
    /// The number.
    pub value: Option<f64>,
    /// Lowest and highest.
    pub range: Option<[f64; 2]>,
    /// The number that it was not below.
    pub at_least: Option<f64>,
    /// What is known where no number is: in words.
    pub shape: Option<String>,
    /// The unit as the paper prints it.
    pub printed: String,
    /// The unit as it really is.
    pub unit: PaperUnit,
    /// False where it was read from a chart that is lost, or what it means is not certain.
    #[serde(default = "yes")]
    pub reliable: bool,
    /// Whether the number was read from a chart.
    #[serde(default)]
    pub digitised: bool,
    /// What is not known of it, and why the unit is another than the printed one.
    pub note: Option<String>,
}

fn yes() -> bool {
    true
}

/// What a figure has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Published<'a> {
    /// A number.
    Value(f64),
    /// Lowest and highest.
    Range(f64, f64),
    /// It was not below this.
    AtLeast(f64),
    /// Words.
    Shape(&'a str),
}

impl PublishedFigure {
    /// What it has; `None` only before it was checked.
    #[must_use]
    pub fn published(&self) -> Option<Published<'_>> {
        let value = self.value.map(Published::Value);
        let range = self.range.map(|[low, high]| Published::Range(low, high));
        let at_least = self.at_least.map(Published::AtLeast);
        let shape = self.shape.as_deref().map(Published::Shape);
        let mut found = [value, range, at_least, shape].into_iter().flatten();
        found.next().filter(|_| found.next().is_none())
    }

    /// The number in B/s, B or s, where there is one: that of the middle of a range.
    #[must_use]
    pub fn in_base(&self) -> Option<f64> {
        let number = match self.published()? {
            Published::Value(value) | Published::AtLeast(value) => value,
            Published::Range(low, high) => f64::midpoint(low, high),
            Published::Shape(_) => return None,
        };
        Some(self.unit.in_base(number))
    }

    /// What is wrong with it.
    pub(super) fn fault(&self) -> Option<String> {
        let numbers = self.value.into_iter().chain(self.range.into_iter().flatten()).chain(self.at_least);
        let mut bad = numbers.filter(|number| !number.is_finite() || *number <= 0.0);
        match self.published() {
            None => Some("needs exactly one of value, range, at_least and shape".to_owned()),
            Some(Published::Range(low, high)) if low >= high => {
                Some(format!("the range from {low} to {high} is none"))
            }
            Some(_) => bad.next().map(|number| format!("{number} is no positive number")),
        }
    }
}

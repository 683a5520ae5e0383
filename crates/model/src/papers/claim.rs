//! Claims of papers, and the values that follow from their own numbers.
use serde::{Deserialize, Serialize};

use super::formula::number;
use super::{Evaluated, Formula, PaperUnit};

/// Relative difference from which a claim is contradicted. Smaller ones are rounding.
pub const CONTRADICTION: f64 = 0.05;

/// Claim of a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Id, that of the related figures if any.
    pub id: String,
    /// Table, figure or section of the paper.
    pub place: String,
    /// Claim in our own words.
    pub says: String,
    /// Claimed value, if any.
    pub value: Option<f64>,
    /// Unit of the claimed and the computed value.
    pub unit: PaperUnit,
    /// Formula with inputs from the paper.
    pub formula: Formula,
    /// Assumptions beyond the numbers of the paper. A claim with assumptions cannot be contradicted.
    pub assumes: Option<String>,
    /// Remark.
    pub note: Option<String>,
}

impl Claim {
    /// Computed value in the unit of the claim. Always present in a checked claim.
    #[must_use]
    pub fn follows(&self) -> Option<f64> {
        let Evaluated { value, unit, .. } = self.formula.evaluate();
        unit.convert(value, self.unit)
    }

    /// Relative difference of the computed from the claimed value.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        let claimed = self.value?;
        self.follows().map(|follows| follows / claimed - 1.0)
    }

    /// Whether the numbers of the paper contradict the claim.
    #[must_use]
    pub fn is_contradicted(&self) -> bool {
        let difference = self.difference().unwrap_or(0.0);
        self.assumes.is_none() && difference.abs() > CONTRADICTION
    }

    /// Whether the numbers of the paper, without assumptions, confirm the claimed value.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.assumes.is_none() && self.value.is_some() && !self.is_contradicted()
    }

    /// Computation as text: "2 ms / (2.42 us - 0.35 us) = 966 words, not 1800".
    #[must_use]
    pub fn arithmetic(&self) -> String {
        let steps = self.formula.evaluate().steps;
        let Some(follows) = self.follows() else { return steps };
        let unit = if self.unit.text().is_empty() { "" } else { " " };
        let mut text = format!("{steps} = {}{unit}{}", number(follows), self.unit.text());
        match (self.value, self.difference()) {
            (Some(claimed), _) if self.is_contradicted() => text.push_str(&format!(", not {claimed}")),
            (Some(claimed), Some(difference)) if difference.abs() > CONTRADICTION => {
                text.push_str(&format!(", claimed {claimed}"));
            }
            (Some(claimed), _) => text.push_str(&format!(", claimed {claimed}")),
            (None, _) => {}
        }
        if let Some(assumes) = &self.assumes {
            text.push_str(&format!(" (assuming {assumes})"));
        }
        text
    }

    /// First error, if any.
    pub(super) fn fault(&self) -> Option<String> {
        if self.value.is_some_and(|value| !value.is_finite() || value <= 0.0) {
            return Some("its value is not positive".to_owned());
        }
        let evaluated = self.formula.evaluate();
        if !evaluated.value.is_finite() || evaluated.value <= 0.0 {
            return Some(format!("invalid result: {} = {}", evaluated.steps, evaluated.value));
        }
        let unit = evaluated.unit.text();
        self.follows()
            .is_none()
            .then(|| format!("the result is in {unit}, the claim in {}", self.unit.text()))
    }
}

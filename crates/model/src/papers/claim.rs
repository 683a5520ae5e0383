//! A conclusion of a paper, and what follows from the paper's own numbers.
use serde::{Deserialize, Serialize};

use super::{Formula, PaperUnit, Worked};

/// A claim that differs by more than this share from what follows is contradicted: less is rounding.
pub const CONTRADICTION: f64 = 0.05;

/// What a paper concludes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its id: that of the figures that it is about, where there are any.
    pub id: String,
    /// Table, figure or section of the paper.
    pub place: String,
    /// What the paper says, in other words.
    pub says: String,
    /// Its number; none where it says it in words only.
    pub value: Option<f64>,
    /// Unit of the number, and of what follows.
    pub unit: PaperUnit,
    /// How it follows from the paper's numbers.
    pub formula: Formula,
    /// What the formula takes for granted beyond the paper's own numbers: such a difference contradicts
    /// nothing.
    pub assumes: Option<String>,
    /// What else a reader should know.
    pub note: Option<String>,
}

impl Claim {
    /// What follows, in the claim's unit. A claim that was checked has one.
    #[must_use]
    pub fn follows(&self) -> Option<f64> {
        let Worked { value, unit, .. } = self.formula.work();
        unit.convert(value, self.unit)
    }

    /// By how much what follows differs from what is claimed, as a share of the claim.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        let claimed = self.value?;
        self.follows().map(|follows| follows / claimed - 1.0)
    }

    /// Whether the paper's own numbers say something else.
    #[must_use]
    pub fn is_contradicted(&self) -> bool {
        let difference = self.difference().unwrap_or(0.0);
        self.assumes.is_none() && difference.abs() > CONTRADICTION
    }

    /// The arithmetic as text: "2 ms / (2.42 us - 0.35 us) = 966 words, not 1800".
    #[must_use]
    pub fn arithmetic(&self) -> String {
        let steps = self.formula.work().steps;
        let Some(follows) = self.follows() else { return steps };
        let unit = if self.unit.text().is_empty() { "" } else { " " };
        let mut text = format!("{steps} = {}{unit}{}", number(follows), self.unit.text());
        match (self.value, self.difference()) {
            (Some(claimed), _) if self.is_contradicted() => text.push_str(&format!(", not {claimed}")),
            (Some(claimed), Some(difference)) if difference.abs() > CONTRADICTION => {
                text.push_str(&format!(", beside {claimed}"));
            }
            (Some(claimed), _) => text.push_str(&format!(", as the paper's {claimed}")),
            (None, _) => {}
        }
        if let Some(assumes) = &self.assumes {
            text.push_str(&format!(" (taking for granted {assumes})"));
        }
        text
    }

    /// What is wrong with it.
    pub(super) fn fault(&self) -> Option<String> {
        if self.value.is_some_and(|value| !value.is_finite() || value <= 0.0) {
            return Some("its value is no positive number".to_owned());
        }
        let worked = self.formula.work();
        if !worked.value.is_finite() || worked.value <= 0.0 {
            return Some(format!("nothing follows: {} = {}", worked.steps, worked.value));
        }
        let unit = worked.unit.text();
        self.follows()
            .is_none()
            .then(|| format!("what follows is in {unit}, the claim in {}", self.unit.text()))
    }
}

/// A number with three digits that count, or all before the point.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

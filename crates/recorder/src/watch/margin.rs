//! Range of the current rate by the qualification of this machine, and its warning. Pure.
use keepup_results::format::rate;
use keepup_results::live::Margin;

/// A rate above this share of the qualified one causes a warning.
const NEAR: f64 = 0.9;
/// A rate below this share of the qualified one makes the warning possible again.
pub(super) const FAR: f64 = 0.8;

/// What the qualification found about a rate, in order of severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RateRange {
    /// Well below the qualified rate.
    #[default]
    Qualified,
    /// Just below the qualified rate.
    NearLimit,
    /// Above the qualified rate, and below the lowest one that failed.
    NotProven,
    /// At or above a rate that failed.
    Failed,
}

impl RateRange {
    /// Range of the current rate.
    pub(super) fn of(margin: &Margin) -> Self {
        let current = margin.bytes_per_second();
        if margin.failed_above.as_ref().is_some_and(|failed| current >= failed.bytes_per_second) {
            Self::Failed
        } else if margin.used > 1.0 {
            Self::NotProven
        } else if margin.used > NEAR {
            Self::NearLimit
        } else {
            Self::Qualified
        }
    }
}

/// Warning about the current rate: both ends of what the qualification found.
pub(super) fn warning(margin: &Margin) -> Option<String> {
    let (current, qualified) = (rate(margin.bytes_per_second()), rate(margin.qualified_bytes_per_second));
    let failed = margin.failed_above.as_ref().map(ToString::to_string);
    Some(match (RateRange::of(margin), failed) {
        (RateRange::Qualified, _) => return None,
        (RateRange::NearLimit, failed) => format!(
            "the rate is {:.0} % of the {qualified} that this machine was qualified for{}",
            margin.used * 100.0,
            failed.map(|failed| format!("; {failed}")).unwrap_or_default()
        ),
        (_, None) => format!("the rate of {current} is above the qualified {qualified} and not proven"),
        (RateRange::NotProven, Some(failed)) => format!(
            "the rate of {current} is above the qualified {qualified} and not proven; {failed} in the \
             qualification"
        ),
        (RateRange::Failed, Some(failed)) => format!(
            "the rate of {current} is in the range in which this machine failed: {failed} in the \
             qualification (qualified: {qualified})"
        ),
    })
}

#[cfg(test)]
#[path = "margin_tests.rs"]
mod tests;

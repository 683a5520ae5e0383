//! A setting with several values: `disks=1..8`, `bus=pcie3x4,pcie3x8`, `disks.rate=10MB/s,20MB/s`.

use std::borrow::Cow;
use std::str::FromStr;

use keepup_error::{Diagnostic, ErrorClass};

/// Maximum number of points.
const POINTS_MAX: usize = 10_000;

/// A varied setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// Name of the setting.
    pub axis: String,
    /// Values in order.
    pub values: Vec<String>,
}

/// Error of parsing a sweep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot sweep {text:?}: {why}")]
pub struct SweepError {
    text: String,
    why: String,
}

impl Diagnostic for SweepError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        Some("such as disks=1..8, bus=pcie3x4,pcie3x8 or disks.rate=10MB/s,20MB/s".into())
    }
}

impl Sweep {
    /// Settings for each point, in the form of [`Machine::with`](crate::Machine::with), with
    /// labels.
    pub fn settings(&self) -> impl Iterator<Item = (&str, String)> {
        self.values.iter().map(|value| (value.as_str(), format!("{}={value}", self.axis)))
    }
}

impl FromStr for Sweep {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let error = |why: &str| SweepError { text: text.to_owned(), why: why.to_owned() };
        let (axis, values) = text.split_once('=').ok_or_else(|| error("it has no '='"))?;
        if axis.trim().is_empty() {
            return Err(error("nothing is named before the '='"));
        }
        let values: Vec<String> = match values.split_once("..") {
            Some((first, last)) => {
                let number = |text: &str| {
                    text.trim().parse::<u32>().map_err(|_| error("both ends of '..' must be whole numbers"))
                };
                let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
                if first > last {
                    return Err(error("its end is before its start"));
                }
                if (last - first) as usize >= POINTS_MAX {
                    return Err(error("it has more than 10,000 points"));
                }
                (first..=last).map(|value| value.to_string()).collect()
            }
            None => values.split(',').map(|value| value.trim().to_owned()).collect(),
        };
        if values.iter().any(String::is_empty) {
            return Err(error("a value is missing"));
        }
        if values.len() > POINTS_MAX {
            return Err(error("it has more than 10,000 points"));
        }
        Ok(Self { axis: axis.trim().to_owned(), values })
    }
}

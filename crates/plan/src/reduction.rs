//! Specification of the reduction of a stream's events before writing: `streams=0-507 keep=both:
//! spectrum window=hann | lz4`.
//!
//! Pure: parses text to steps and computes element type and shape after each step. Invariants: a
//! [`Reduction`] has at least one step and compresses only in the last; the text form parses back
//! to the same value.
mod step;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use keepup_error::Cause;
use serde::{Deserialize, Serialize};

pub use self::step::{Samples, Step, StepError, Window};

/// Maximum number of steps.
const STEPS_MAX: usize = 8;
/// Largest stream id.
const STREAM_ID_MAX: u32 = 65_535;
const EXAMPLE: &str = "as in \"streams=0-507 keep=both: spectrum window=hann | lz4\"";

/// Reduced streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// All streams.
    #[default]
    All,
    /// Streams with an id in one of the ranges.
    Listed(Vec<RangeInclusive<u32>>),
}

/// Written data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// The reduced events only.
    #[default]
    Reduced,
    /// The received events, and the reduced ones as a separate stream.
    Both,
}

/// Reduction of some streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// Selected streams.
    pub streams: Streams,
    /// Written data.
    pub keep: Keep,
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// Error of parsing a reduction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reading the reduction {written:?}: {why}")]
pub struct ReductionError {
    written: String,
    why: String,
}

/// Reduction in the form of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReduceTable {
    #[serde(default = "all")]
    streams: String,
    #[serde(default)]
    keep: Keep,
    steps: Vec<String>,
}

fn all() -> String {
    Streams::All.to_string()
}

impl Streams {
    /// Whether the stream with this id is selected.
    pub fn contains(&self, id: u32) -> bool {
        match self {
            Self::All => true,
            Self::Listed(ranges) => ranges.iter().any(|range| range.contains(&id)),
        }
    }

    /// A stream selected by both, if any.
    fn common(&self, other: &Self) -> Option<u32> {
        let all = [0..=STREAM_ID_MAX];
        let ranges = |streams: &Self| match streams {
            Self::All => all.to_vec(),
            Self::Listed(ranges) => ranges.clone(),
        };
        let (left, right) = (ranges(self), ranges(other));
        let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
        let begins = pairs.filter_map(|(a, b)| {
            let first = *a.start().max(b.start());
            (first <= *a.end().min(b.end())).then_some(first)
        });
        begins.min()
    }
}

impl Reduction {
    /// Samples after all steps.
    ///
    /// # Errors
    /// The first step that does not accept its input, with the reason.
    pub fn output(&self, input: &Samples) -> Result<Samples, StepError> {
        self.steps.iter().try_fold(input.clone(), |samples, step| step.output(&samples))
    }

    fn new(streams: Streams, keep: Keep, steps: Vec<Step>) -> Result<Self, String> {
        if steps.is_empty() {
            return Err(format!("it has no step, {EXAMPLE}"));
        }
        if steps.len() > STEPS_MAX {
            return Err(format!("it has {} steps, at most {STEPS_MAX} are taken", steps.len()));
        }
        if steps.iter().rev().skip(1).any(|step| *step == Step::Lz4) {
            return Err("lz4 must be the last step: nothing can be computed from compressed events".into());
        }
        Ok(Self { streams, keep, steps })
    }

    pub(crate) fn from_table(table: &ReduceTable) -> Result<Self, String> {
        let streams = table.streams.parse()?;
        let steps = table.steps.iter().map(|step| step.parse()).collect::<Result<_, _>>()?;
        Self::new(streams, table.keep, steps)
    }

    pub(crate) fn table(&self) -> ReduceTable {
        ReduceTable {
            streams: self.streams.to_string(),
            keep: self.keep,
            steps: self.steps.iter().map(Step::to_string).collect(),
        }
    }
}

/// Reduction of stream `id`, if any.
pub fn reduction_of(reductions: &[Reduction], id: u32) -> Option<&Reduction> {
    reductions.iter().find(|reduction| reduction.streams.contains(id))
}

/// Rejects reductions that select a stream twice.
///
/// # Errors
/// The stream and its two reductions.
pub fn check_apart(reductions: &[Reduction]) -> Result<(), Cause> {
    for (index, one) in reductions.iter().enumerate() {
        for other in &reductions[index + 1..] {
            if let Some(id) = one.streams.common(&other.streams) {
                let what =
                    format!("cannot reduce stream {id}: it has two reductions, \"{one}\" and \"{other}\"");
                return Err(Cause::new(what)
                    .with_hint("streams=LIST says which streams a reduction is for, as in streams=0-3,8"));
            }
        }
    }
    Ok(())
}

impl FromStr for Streams {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        if written.trim() == "all" {
            return Ok(Self::All);
        }
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let id = |text: &str| text.trim().parse().ok().filter(|id| *id <= STREAM_ID_MAX);
            let range = id(first).zip(id(last)).map(|(first, last)| first..=last);
            range.filter(|range| !range.is_empty()).ok_or_else(|| {
                format!("{part:?} is not a stream from 0 to {STREAM_ID_MAX}, a range of them or \"all\"")
            })
        };
        written.split(',').map(range).collect::<Result<_, _>>().map(Self::Listed)
    }
}

impl FromStr for Reduction {
    type Err = ReductionError;

    fn from_str(written: &str) -> Result<Self, ReductionError> {
        let refuse = |why: String| ReductionError { written: written.to_owned(), why };
        let (settings, steps) = written.split_once(':').unwrap_or(("", written));
        let (mut streams, mut keep) = (None, None);
        for setting in settings.split_whitespace() {
            match setting.split_once('=') {
                Some(("streams", list)) if streams.is_none() => {
                    streams = Some(list.parse().map_err(refuse)?);
                }
                Some(("keep", "reduced")) if keep.is_none() => keep = Some(Keep::Reduced),
                Some(("keep", "both")) if keep.is_none() => keep = Some(Keep::Both),
                _ => {
                    return Err(refuse(format!(
                        "{setting:?} is neither streams=LIST nor keep=reduced nor keep=both, or stands \
                         there twice; {EXAMPLE}"
                    )));
                }
            }
        }
        let steps = steps.split('|').map(str::parse).collect::<Result<_, _>>().map_err(refuse)?;
        Self::new(streams.unwrap_or_default(), keep.unwrap_or_default(), steps).map_err(refuse)
    }
}

impl fmt::Display for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Listed(ranges) = self else { return f.write_str("all") };
        for (index, range) in ranges.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match (range.start(), range.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reduced => "reduced",
            Self::Both => "both",
        })
    }
}

impl fmt::Display for Reduction {
    /// Exact: parses back to the same reduction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "streams={} keep={}:", self.streams, self.keep)?;
        for (index, step) in self.steps.iter().enumerate() {
            write!(f, "{} {step}", if index > 0 { " |" } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "reduction_tests.rs"]
mod tests;

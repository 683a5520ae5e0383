//! What is done to the events of a stream before they are written, as people write it:
//! `streams=0-507 keep=both: spectrum window=hann | lz4`.
//!
//! Pure: text in, steps out, and for each step what elements and shape come out of it. Invariants: a
//! [`Reduction`] has at least one step and compresses last if at all; what is written reads back as exactly
//! the same reduction.
mod step;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::step::{Samples, Step, StepError, Window};

/// Most steps of one reduction.
const STEPS_MAX: usize = 8;
/// Largest stream id.
const STREAM_ID_MAX: u32 = 65_535;
const EXAMPLE: &str = "as in \"streams=0-507 keep=both: spectrum window=hann | lz4\"";

/// Which streams are reduced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// All of them.
    #[default]
    All,
    /// Those with an id in one of the ranges.
    Listed(Vec<RangeInclusive<u32>>),
}

/// What is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// What came out of the steps, in place of what was received.
    #[default]
    Reduced,
    /// What was received, and what came out beside it as a stream of its own.
    Both,
}

/// Steps that the events of some streams go through before they are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// Whose events.
    pub streams: Streams,
    /// What is kept.
    pub keep: Keep,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

/// A reduction that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reading the reduction {written:?}: {why}")]
pub struct ReductionError {
    written: String,
    why: String,
}

/// A reduction as a profile has it.
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
    /// Whether the stream with this id is one of them.
    pub fn contains(&self, id: u32) -> bool {
        match self {
            Self::All => true,
            Self::Listed(ranges) => ranges.iter().any(|range| range.contains(&id)),
        }
    }

    /// Some stream that is in both, if there is one.
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
    /// What `input` is after all steps.
    ///
    /// # Errors
    /// The first step that cannot take what comes to it, and why.
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

/// The reduction of the stream `id`, if there is one.
pub fn reduction_of(reductions: &[Reduction], id: u32) -> Option<&Reduction> {
    reductions.iter().find(|reduction| reduction.streams.contains(id))
}

/// Refuses reductions of which two mean the same stream.
///
/// # Errors
/// Which stream and which two.
pub fn check_apart(reductions: &[Reduction]) -> Result<(), String> {
    for (index, one) in reductions.iter().enumerate() {
        for other in &reductions[index + 1..] {
            if let Some(id) = one.streams.common(&other.streams) {
                return Err(format!(
                    "stream {id} has two reductions, \"{one}\" and \"{other}\"\n\
                     hint: streams=LIST says which streams a reduction is for, as in streams=0-3,8"
                ));
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
    /// Exact: reads back as the same reduction.
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

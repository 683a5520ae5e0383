//! One step of a reduction: its text form, and its output for an input.
//!
//! Invariant: a step with an output for some samples can be computed for every event of that kind.
use std::fmt;
use std::str::FromStr;

use crate::element::Element;

/// Maximum decimation factor; the filter length grows with it.
const DECIMATE_MAX: u64 = 1024;
/// Maximum row length of a spectrum, samples.
const SPECTRUM_MAX: u64 = 1 << 24;
/// Maximum number of dimensions of an event.
const DIMENSIONS_MAX: usize = 8;
const ACCEPTED: &str = "accepted: decimate by=N, bin by=N, bin by=NxM, threshold at=VALUE, \
                        spectrum [window=none|hann] [size=N] or lz4";

/// Sample layout of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Samples {
    /// Sample type.
    pub element: Element,
    /// Samples along each dimension.
    pub shape: Vec<u64>,
    /// Whether events are compressed (bitshuffle and LZ4).
    pub compressed: bool,
}

/// Window function of a spectrum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// Rectangular.
    #[default]
    None,
    /// Hann, periodic: 0.5 - 0.5 cos(2 pi n / N).
    Hann,
}

/// Operation on each event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Decimation along the last dimension, after a low-pass filter.
    Decimate {
        /// Decimation factor.
        by: u64,
    },
    /// Sums of neighbouring samples, in an element type that holds the largest sum.
    Bin {
        /// Neighbours along the second last dimension; 1 for none.
        rows: u64,
        /// Neighbours along the last dimension.
        columns: u64,
    },
    /// Sets samples below `at` to 0.
    Threshold {
        /// Smallest sample that is kept.
        at: f64,
    },
    /// Power spectrum along the last dimension, |X|^2 over the sum of the squared weights, for
    /// frequencies from 0 to half the sampling rate.
    Spectrum {
        /// Window function.
        window: Window,
        /// Samples per spectrum; default: the whole row.
        size: Option<u64>,
    },
    /// Bitshuffle and LZ4, lossless.
    Lz4,
}

/// Error of a step that does not accept its input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the step \"{step}\" cannot take {samples}: {why}")]
pub struct StepError {
    step: String,
    samples: String,
    why: String,
}

impl Samples {
    /// Uncompressed bytes per event; `None` on overflow.
    pub fn bytes(&self) -> Option<u64> {
        self.shape.iter().try_fold(self.element.bytes(), |product, n| product.checked_mul(*n))
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compressed = if self.compressed { "compressed " } else { "" };
        write!(f, "{compressed}{} of shape {:?}", self.element, self.shape)
    }
}

impl Step {
    /// Element type and shape of the output for `input`.
    ///
    /// # Errors
    /// Reason why the step does not accept the input.
    pub fn output(&self, input: &Samples) -> Result<Samples, StepError> {
        let refuse = |why: String| StepError { step: self.to_string(), samples: input.to_string(), why };
        if input.compressed {
            return Err(refuse("nothing can be computed from compressed events".into()));
        }
        let (Some(&columns), Some(_)) = (input.shape.last(), input.bytes().filter(|bytes| *bytes > 0)) else {
            return Err(refuse("a reduction needs events of a known shape".into()));
        };
        let (element, shape) = match *self {
            Self::Decimate { by } => (input.element, divided(input, 1, by).map_err(refuse)?),
            Self::Bin { rows, columns } => {
                let shape = divided(input, rows, columns).map_err(refuse)?;
                (sum_of(input.element, rows.saturating_mul(columns)).map_err(refuse)?, shape)
            }
            Self::Threshold { at } => {
                let (least, most) = range(input.element);
                if !(least..=most).contains(&at) {
                    return Err(refuse(format!("samples lie between {least} and {most}")));
                }
                (input.element, input.shape.clone())
            }
            Self::Spectrum { size, .. } => {
                (Element::F32, spectrum_shape(input, columns, size).map_err(refuse)?)
            }
            Self::Lz4 => (input.element, input.shape.clone()),
        };
        let output = Samples { element, shape, compressed: *self == Self::Lz4 };
        if output.bytes().is_none_or(|bytes| bytes > u64::from(u32::MAX)) {
            return Err(refuse("events of more than 4 GiB would come out".into()));
        }
        Ok(output)
    }
}

/// Shape with the last two dimensions divided.
fn divided(input: &Samples, rows: u64, columns: u64) -> Result<Vec<u64>, String> {
    let mut shape = input.shape.clone();
    let dividers = [columns, rows];
    for (index, by) in dividers.into_iter().enumerate().filter(|(_, by)| *by > 1) {
        let Some(place) = shape.len().checked_sub(index + 1) else {
            return Err("it has only one dimension".into());
        };
        if !shape[place].is_multiple_of(by) {
            return Err(format!("{by} does not divide {}", shape[place]));
        }
        shape[place] /= by;
    }
    Ok(shape)
}

fn spectrum_shape(input: &Samples, columns: u64, size: Option<u64>) -> Result<Vec<u64>, String> {
    let size = size.unwrap_or(columns);
    if !(2..=SPECTRUM_MAX).contains(&size) {
        return Err(format!("spectra are made of 2 to {SPECTRUM_MAX} samples"));
    }
    if !columns.is_multiple_of(size) {
        return Err(format!("{size} does not divide {columns}"));
    }
    let mut shape = input.shape.clone();
    shape.pop();
    if columns != size {
        shape.push(columns / size);
    }
    shape.push(size / 2 + 1);
    if shape.len() > DIMENSIONS_MAX {
        return Err(format!("more than {DIMENSIONS_MAX} dimensions would come out"));
    }
    Ok(shape)
}

/// Smallest element type that holds the sum of `count` samples of `element`; doubles for floating
/// point.
fn sum_of(element: Element, count: u64) -> Result<Element, String> {
    use Element::{F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    let wider: &[Element] = match element {
        F32 | F64 => return Ok(F64),
        U8 | U16 | U32 | U64 => &[U16, U32, U64],
        I8 | I16 | I32 | I64 => &[I16, I32, I64],
    };
    // Extreme sums are count * (2^b - 1) and -count * 2^(b-1), which need the bits of count plus
    // those of the sample.
    let holds = |to: &Element| {
        to.bytes() > element.bytes() && {
            let grown = 8 * (to.bytes() - element.bytes()) as u32;
            u128::from(count) <= 1 << grown
        }
    };
    let found = wider.iter().copied().find(holds);
    found.ok_or_else(|| format!("no element holds the sum of {count} samples"))
}

/// Minimum and maximum sample; inexact in the last digits of 64-bit types.
fn range(element: Element) -> (f64, f64) {
    use Element::{F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    match element {
        U8 => (0.0, u8::MAX.into()),
        U16 => (0.0, u16::MAX.into()),
        U32 => (0.0, u32::MAX.into()),
        U64 => (0.0, u64::MAX as f64),
        I8 => (i8::MIN.into(), i8::MAX.into()),
        I16 => (i16::MIN.into(), i16::MAX.into()),
        I32 => (i32::MIN.into(), i32::MAX.into()),
        I64 => (i64::MIN as f64, i64::MAX as f64),
        F32 => (f32::MIN.into(), f32::MAX.into()),
        F64 => (f64::MIN, f64::MAX),
    }
}

/// Settings of one step, each used once.
struct Settings<'a> {
    step: &'a str,
    given: Vec<(&'a str, &'a str)>,
}

impl<'a> Settings<'a> {
    fn take(&mut self, key: &str) -> Option<&'a str> {
        let place = self.given.iter().position(|(given, _)| *given == key)?;
        Some(self.given.swap_remove(place).1)
    }

    fn number(&self, key: &str, text: &str, least: u64, most: u64) -> Result<u64, String> {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            format!("{}: {key}={text} is not a whole number from {least} to {most}", self.step.trim())
        })
    }

    fn end(self, step: Step) -> Result<Step, String> {
        match self.given.first() {
            None => Ok(step),
            Some((key, _)) => Err(format!("{}: {key:?} is not known or too much; {ACCEPTED}", self.step)),
        }
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let mut words = written.split_whitespace();
        let name = words.next().unwrap_or_default();
        let given = words.map(|word| word.split_once('=').unwrap_or((word, ""))).collect();
        let mut settings = Settings { step: written.trim(), given };
        let missing = |what: &str| format!("{name}: {what} is missing; {ACCEPTED}");
        let step = match name {
            "decimate" => {
                let by = settings.take("by").ok_or_else(|| missing("by=N"))?;
                Self::Decimate { by: settings.number("by", by, 2, DECIMATE_MAX)? }
            }
            "bin" => {
                let by = settings.take("by").ok_or_else(|| missing("by=N"))?;
                let (rows, columns) = by.split_once('x').unwrap_or(("1", by));
                let rows = settings.number("by", rows, 1, u64::from(u32::MAX))?;
                let columns = settings.number("by", columns, 1, u64::from(u32::MAX))?;
                if rows == 1 && columns == 1 {
                    return Err(format!("{name}: by={by} changes nothing"));
                }
                Self::Bin { rows, columns }
            }
            "threshold" => {
                let at = settings.take("at").ok_or_else(|| missing("at=VALUE"))?;
                let value = at.parse().ok().filter(|at: &f64| at.is_finite());
                Self::Threshold { at: value.ok_or_else(|| format!("{name}: at={at} is not a number"))? }
            }
            "spectrum" => {
                let window = match settings.take("window") {
                    None | Some("none") => Window::None,
                    Some("hann") => Window::Hann,
                    Some(other) => return Err(format!("{name}: window={other} is neither none nor hann")),
                };
                let size = settings.take("size");
                let size = size.map(|size| settings.number("size", size, 2, SPECTRUM_MAX)).transpose()?;
                Self::Spectrum { window, size }
            }
            "lz4" => Self::Lz4,
            other => return Err(format!("{other:?} is no step; {ACCEPTED}")),
        };
        settings.end(step)
    }
}

impl fmt::Display for Step {
    /// Exact: parses back to the same step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decimate { by } => write!(f, "decimate by={by}"),
            Self::Bin { rows: 1, columns } => write!(f, "bin by={columns}"),
            Self::Bin { rows, columns } => write!(f, "bin by={rows}x{columns}"),
            Self::Threshold { at } => write!(f, "threshold at={at}"),
            Self::Spectrum { window, size } => {
                f.write_str("spectrum window=")?;
                f.write_str(match window {
                    Window::None => "none",
                    Window::Hann => "hann",
                })?;
                size.map_or(Ok(()), |size| write!(f, " size={size}"))
            }
            Self::Lz4 => f.write_str("lz4"),
        }
    }
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;

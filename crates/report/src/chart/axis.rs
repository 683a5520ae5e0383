//! Axes and their units.

use serde_json::{Value, json};

/// Axis of a chart.
#[derive(Clone)]
pub(crate) struct Axis {
    name: String,
    kind: Kind,
    min: Option<f64>,
    max: Option<f64>,
    interval: Option<f64>,
    is_inverse: bool,
}

#[derive(Clone)]
enum Kind {
    Linear,
    Log,
    Category(Vec<String>),
}

impl Axis {
    /// Linear axis. Includes 0 unless all values are far from it.
    pub(crate) fn linear(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: Kind::Linear,
            min: None,
            max: None,
            interval: None,
            is_inverse: false,
        }
    }

    /// Logarithmic axis. All values must be positive.
    pub(crate) fn log(name: impl Into<String>) -> Self {
        Self { kind: Kind::Log, ..Self::linear(name) }
    }

    /// Category axis.
    pub(crate) fn category(name: impl Into<String>, names: Vec<String>) -> Self {
        Self { kind: Kind::Category(names), ..Self::linear(name) }
    }

    /// Sets the range.
    pub(crate) fn range(self, min: f64, max: f64) -> Self {
        Self { min: Some(min), max: Some(max), ..self }
    }

    /// Starts the axis at 0.
    pub(crate) fn with_zero(self) -> Self {
        Self { min: Some(0.0), ..self }
    }

    /// Sets the interval of the labels.
    pub(crate) fn every(self, interval: f64) -> Self {
        Self { interval: Some(interval), ..self }
    }

    /// Puts the first category at the top.
    pub(crate) fn reversed(self) -> Self {
        Self { is_inverse: true, ..self }
    }

    pub(crate) fn has_name(&self) -> bool {
        !self.name.is_empty()
    }

    /// Options as the x axis.
    pub(super) fn across(&self) -> Value {
        let mut axis = self.common();
        axis["nameLocation"] = json!("middle");
        axis["nameGap"] = json!(26);
        axis
    }

    /// Options as the y axis, with its name above it.
    pub(super) fn up(&self) -> Value {
        let mut axis = self.common();
        axis["nameLocation"] = json!(if self.is_inverse { "start" } else { "end" });
        axis["nameGap"] = json!(8);
        axis["nameTextStyle"] = json!({ "align": "left" });
        axis
    }

    fn common(&self) -> Value {
        let mut axis = json!({ "name": self.name, "inverse": self.is_inverse });
        match &self.kind {
            Kind::Linear => axis["type"] = json!("value"),
            Kind::Log => axis["type"] = json!("log"),
            Kind::Category(names) => {
                axis["type"] = json!("category");
                axis["data"] = json!(names);
            }
        }
        if let Some(min) = self.min {
            axis["min"] = json!(min);
            // Base of the bars: a logarithmic axis has no 0.
            axis["startValue"] = json!(min);
        }
        if let Some(max) = self.max {
            axis["max"] = json!(max);
            // The end of the data is not a round number.
            axis["axisLabel"] = json!({ "showMaxLabel": self.interval.is_some() });
        }
        if let Some(interval) = self.interval {
            axis["interval"] = json!(interval);
        }
        axis
    }
}

/// Unit with the divisor that converts base units to it.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) divisor: f64,
    pub(crate) unit: &'static str,
}

impl Scale {
    /// Converts a value from base units.
    pub(crate) fn of(self, value: f64) -> f64 {
        value / self.divisor
    }
}

const RATES: [Scale; 4] = [
    Scale { divisor: 1e9, unit: "GB/s" },
    Scale { divisor: 1e6, unit: "MB/s" },
    Scale { divisor: 1e3, unit: "kB/s" },
    Scale { divisor: 1.0, unit: "B/s" },
];
const TIMES: [Scale; 6] = [
    Scale { divisor: 3600.0, unit: "h" },
    Scale { divisor: 60.0, unit: "min" },
    Scale { divisor: 1.0, unit: "s" },
    Scale { divisor: 1e-3, unit: "ms" },
    Scale { divisor: 1e-6, unit: "us" },
    Scale { divisor: 1e-9, unit: "ns" },
];
/// Smallest maximum for which a unit is used: 3,000 MB/s reads better than 3 GB/s next to 80 MB/s.
const RATES_FROM: f64 = 10.0;
const TIMES_FROM: f64 = 3.0;

fn fitting(scales: &[Scale], most: f64, from: f64) -> Scale {
    let found = scales.iter().find(|scale| most / scale.divisor >= from);
    found.or(scales.last()).copied().unwrap_or(Scale { divisor: 1.0, unit: "" })
}

/// Unit for rates up to `most` bytes per second.
pub(crate) fn rate_scale(most: f64) -> Scale {
    fitting(&RATES, most, RATES_FROM)
}

/// Unit for times up to `most` seconds.
pub(crate) fn time_scale(most: f64) -> Scale {
    fitting(&TIMES, most, TIMES_FROM)
}

/// Next number of 1, 2, 5, 10 ... above or below a value, as the end of a logarithmic axis.
pub(crate) fn round_end(value: f64, is_upper: bool) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let found = match is_upper {
        true => steps.iter().find(|step| decade * **step >= value),
        false => steps.iter().rev().find(|step| decade * **step <= value),
    };
    decade * found.copied().unwrap_or(1.0)
}

/// Formats a value with three significant digits, without trailing zeros.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 || size == 0.0 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats a size in binary units: "64 KiB".
pub(crate) fn size_name(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    fits.map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{} {name}", bytes / unit))
}

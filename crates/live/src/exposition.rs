//! Text formats of metrics: OpenMetrics 1.0 (prometheus.io, "OpenMetrics 1.0 specification"), and
//! the older format 0.0.4 that every scraper supports.
use std::fmt::Write as _;

/// Text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextFormat {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' own format, version 0.0.4.
    Prometheus,
}

impl TextFormat {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricKind {
    /// Monotonic until the process or the run restarts; its samples end in `_total`.
    Counter,
    /// Rises and falls.
    Gauge,
}

/// A sample: its labels and its value.
pub(crate) type Sample<'a> = (Vec<(&'a str, &'a str)>, f64);

/// Metrics text under construction.
pub(crate) struct Exposition {
    form: TextFormat,
    text: String,
}

impl Exposition {
    pub(crate) fn new(form: TextFormat) -> Self {
        Self { form, text: String::with_capacity(16 << 10) }
    }

    /// Adds a family with one sample without labels.
    pub(crate) fn one(
        &mut self,
        kind: MetricKind,
        name: &str,
        unit: &str,
        help: &str,
        value: impl Into<Option<f64>>,
    ) {
        self.family(kind, name, unit, help, value.into().map(|value| (Vec::new(), value)));
    }

    /// Adds a family. `name` ends in `unit`, if there is one. A family without samples is
    /// omitted.
    pub(crate) fn family<'a>(
        &mut self,
        kind: MetricKind,
        name: &str,
        unit: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<'a>>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        let sample_name = match kind {
            MetricKind::Counter => format!("{name}_total"),
            MetricKind::Gauge => name.to_owned(),
        };
        // In the older format, a counter's family has the name of its samples.
        let family = if self.form == TextFormat::OpenMetrics { name } else { &sample_name };
        let word = if kind == MetricKind::Counter { "counter" } else { "gauge" };
        self.line(format_args!("# HELP {family} {}", escaped(help, false)));
        self.line(format_args!("# TYPE {family} {word}"));
        if self.form == TextFormat::OpenMetrics && !unit.is_empty() {
            self.line(format_args!("# UNIT {family} {unit}"));
        }
        for (labels, value) in samples {
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true))).collect();
            match labels.is_empty() {
                true => self.line(format_args!("{sample_name} {value}")),
                false => self.line(format_args!("{sample_name}{{{}}} {value}", labels.join(","))),
            }
        }
    }

    pub(crate) fn finish(mut self) -> String {
        if self.form == TextFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Escapes a text.
fn escaped(text: &str, quoted: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quoted { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
#[path = "exposition_tests.rs"]
mod tests;

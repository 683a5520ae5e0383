//! The text in which metrics are told: OpenMetrics 1.0 (prometheus.io, "OpenMetrics 1.0 specification"), and
//! the older text format 0.0.4 that every scraper understands.
use std::fmt::Write as _;

/// Which text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' own, version 0.0.4.
    Prometheus,
}

impl Form {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What a family of metrics is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only rises, until its process or its run begins anew; its samples end in `_total`.
    Counter,
    /// Rises and falls.
    Gauge,
}

/// A sample: its labels and its value.
pub(crate) type Sample<'a> = (Vec<(&'a str, &'a str)>, f64);

/// The text as it grows.
pub(crate) struct Exposition {
    form: Form,
    text: String,
}

impl Exposition {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, text: String::with_capacity(16 << 10) }
    }

    /// Adds a family without labels.
    pub(crate) fn one(
        &mut self,
        kind: Kind,
        name: &str,
        unit: &str,
        help: &str,
        value: impl Into<Option<f64>>,
    ) {
        self.family(kind, name, unit, help, value.into().map(|value| (Vec::new(), value)));
    }

    /// Adds a family. `name` ends in `unit`, where there is one. A family without samples is left out.
    pub(crate) fn family<'a>(
        &mut self,
        kind: Kind,
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
            Kind::Counter => format!("{name}_total"),
            Kind::Gauge => name.to_owned(),
        };
        // The older text knows a counter by the name of its samples.
        let family = if self.form == Form::OpenMetrics { name } else { &sample_name };
        let word = if kind == Kind::Counter { "counter" } else { "gauge" };
        self.line(format_args!("# HELP {family} {}", escaped(help, false)));
        self.line(format_args!("# TYPE {family} {word}"));
        if self.form == Form::OpenMetrics && !unit.is_empty() {
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
        if self.form == Form::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// A text with what would end it written otherwise.
fn escaped(text: &str, quoted: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quoted { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
#[path = "exposition_tests.rs"]
mod tests;

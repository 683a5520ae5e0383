//! Parser of campaign files.
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;

use keepup_error::Cause;
use keepup_plan::units::{Bytes, Span};
use keepup_plan::{SourceLocation, close_names, key_at, line_of_key, line_of_offset};
use serde::Deserialize;
use toml::{Table, Value};

use self::settings::{checked_key, settings_of, text_of, values_of};
use crate::error::CampaignError;
use crate::plan::{
    Axis, AxisValue, Campaign, CampaignOrder, PaperSettings, RUNS_MAX, Settings, Skip, Stop, count_runs,
};

/// Largest file in bytes; 10,000 values are 200 kB.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most axes. With two values each they already exceed `RUNS_MAX`.
const AXES_MAX: usize = 16;
/// Longest name, because it is part of a directory name.
const NAME_LENGTH_MAX: usize = 100;

/// Campaign file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: Option<String>,
    repetitions: Option<u32>,
    order: Option<OrderName>,
    seed: Option<u64>,
    run: Table,
    #[serde(default)]
    axes: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    baseline: BTreeMap<String, Value>,
    #[serde(default)]
    skip: Vec<SkipTable>,
    #[serde(default)]
    stop: StopTable,
    paper: Option<PaperSettings>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OrderName {
    Alternating,
    Random,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SkipTable {
    when: BTreeMap<String, Value>,
    why: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StopTable {
    failures: Option<u32>,
    time: Option<Span>,
    bytes: Option<Bytes>,
    half_width: Option<f64>,
}

/// Invalid entry.
struct Wrong {
    key: String,
    reason: Cause,
}

/// Creates an error for a key.
fn wrong(key: impl Into<String>, reason: impl Into<Cause>) -> Wrong {
    Wrong { key: key.into(), reason: reason.into() }
}

/// Reads a campaign file. Also returns its text. `papers` are the valid names of `[paper]`.
///
/// # Errors
/// The file cannot be read or is invalid.
pub fn load(path: &Path, papers: &[&str]) -> Result<(Campaign, String), CampaignError> {
    let fail = CampaignError::io("read the campaign", path);
    let mut text = String::new();
    // Reads one byte more than allowed, to detect long and endless files.
    let read = std::fs::File::open(path).and_then(|file| {
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
        match text.len() as u64 > FILE_BYTES_MAX {
            true => Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the file has more than {FILE_BYTES_MAX} bytes"),
            )),
            false => Ok(()),
        }
    });
    read.map_err(fail)?;
    let campaign = parse(&text, &path.to_string_lossy(), papers)?;
    Ok((campaign, text))
}

/// Parses a campaign file. `origin` is its name in messages, `papers` are the valid names of `[paper]`.
///
/// # Errors
/// Not TOML, unknown keys, or invalid values.
pub fn parse(text: &str, origin: &str, papers: &[&str]) -> Result<Campaign, CampaignError> {
    let at = |line| SourceLocation { origin: origin.to_owned(), line };
    let file: File = toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let place = at(Some(line_of_offset(text, span.start)));
        CampaignError::Invalid { place, key: key_at(text, &span), reason: Cause::from_text(error.message()) }
    })?;
    checked(file, text, papers).map_err(|Wrong { key, reason }| {
        let whole = key.split(['[', ' ']).next().unwrap_or_default();
        let table = key.split('.').next().unwrap_or_default();
        let line = line_of_key(text, whole).or_else(|| line_of_key(text, table));
        CampaignError::Invalid { place: at(line), key, reason }
    })
}

fn checked(file: File, text: &str, papers: &[&str]) -> Result<Campaign, Wrong> {
    check_name(&file.name)?;
    let order = match (file.order.unwrap_or(OrderName::Alternating), file.seed) {
        (OrderName::Alternating, None) => CampaignOrder::Alternating,
        (OrderName::Random, Some(seed)) => CampaignOrder::Random { seed },
        (OrderName::Alternating, Some(_)) => {
            return Err(wrong("seed", "requires order = \"random\""));
        }
        (OrderName::Random, None) => {
            return Err(wrong("seed", "missing: order = \"random\" requires a seed, to be reproducible"));
        }
    };
    let repetitions = file.repetitions.unwrap_or(1);
    let run = settings_of(&file.run, "run")?;
    let axes = axes(file.axes, text, &run)?;
    check_size(&axes, repetitions)?;
    if !run.contains_key("verb") && !axes.iter().any(|axis| sets(axis).contains("verb")) {
        return Err(wrong(
            "run",
            "verb is missing; set it to the words of the command, such as \"disk testdisk\"",
        ));
    }
    let baseline = labels_of(file.baseline, &axes, "baseline")?;
    let skip = file.skip.into_iter().map(|skip| skipped(skip, &axes)).collect::<Result<_, _>>()?;
    let title = file.title.unwrap_or_else(|| file.name.clone());
    let stop = stop(&file.stop)?;
    let paper = file.paper.map(|settings| paper(settings, papers)).transpose()?;
    Ok(Campaign { name: file.name, title, repetitions, order, run, axes, baseline, skip, stop, paper })
}

fn check_name(name: &str) -> Result<(), Wrong> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_fit = !name.is_empty() && !name.starts_with('.') && name.chars().all(fits);
    match is_fit && name.len() <= NAME_LENGTH_MAX {
        true => Ok(()),
        false => Err(wrong(
            "name",
            Cause::new(format!("{name:?} is not valid in a directory name")).with_hint(format!(
                "use at most {NAME_LENGTH_MAX} letters, digits, '-', '_' and '.', not starting with '.'"
            )),
        )),
    }
}

/// Axes in the order of the file.
fn axes(tables: BTreeMap<String, Vec<Value>>, text: &str, run: &Settings) -> Result<Vec<Axis>, Wrong> {
    if tables.is_empty() {
        return Err(wrong(
            "axes",
            Cause::new("no axes").with_hint("add one, such as volume = [\"/data/a\", \"/data/b\"]"),
        ));
    }
    if tables.len() > AXES_MAX {
        return Err(wrong("axes", format!("{} axes; the maximum is {AXES_MAX}", tables.len())));
    }
    let offsets = offsets_of_axes(text);
    let mut tables: Vec<(String, Vec<Value>)> = tables.into_iter().collect();
    tables.sort_by_key(|(name, _)| offsets.get(name).copied());
    let mut axes: Vec<Axis> = Vec::new();
    for (name, values) in tables {
        let axis = axis(name, &values)?;
        let key = format!("axes.{}", axis.name);
        for setting in sets(&axis) {
            if run.contains_key(setting) {
                return Err(wrong(key, format!("sets {setting}, which [run] also sets")));
            }
            if let Some(other) = axes.iter().find(|other| sets(other).contains(setting)) {
                return Err(wrong(key, format!("sets {setting}, which axis {} also sets", other.name)));
            }
        }
        axes.push(axis);
    }
    Ok(axes)
}

/// Offset of each axis in the text, because TOML tables are unordered.
fn offsets_of_axes(text: &str) -> BTreeMap<String, usize> {
    let Ok(document) = toml::de::DeTable::parse(text) else { return BTreeMap::new() };
    let tables = document.get_ref().iter().filter(|(key, _)| key.get_ref() == "axes");
    let axes = tables.filter_map(|(_, value)| value.get_ref().as_table()).flat_map(|table| table.iter());
    axes.map(|(key, _)| (key.get_ref().to_string(), key.span().start)).collect()
}

fn axis(name: String, values: &[Value]) -> Result<Axis, Wrong> {
    let key = format!("axes.{name}");
    if values.is_empty() {
        return Err(wrong(key, "no values"));
    }
    let mut found: Vec<AxisValue> = Vec::new();
    for value in values {
        let value = axis_value(&name, value).map_err(|reason| wrong(&key, reason))?;
        if found.iter().any(|other| other.label == value.label) {
            return Err(wrong(key, format!("duplicate value {:?}", value.label)));
        }
        found.push(value);
    }
    Ok(Axis { name, values: found })
}

fn axis_value(axis: &str, value: &Value) -> Result<AxisValue, Cause> {
    let Value::Table(table) = value else {
        let label = match value {
            Value::Array(parts) => {
                let parts: Vec<String> = parts.iter().map(text_of).collect::<Result<_, _>>()?;
                parts.join(" + ")
            }
            scalar => text_of(scalar)?,
        };
        let key = checked_key(axis)?;
        return Ok(AxisValue {
            label,
            settings: values_of(&key, value)?.map(|v| (key, v)).into_iter().collect(),
        });
    };
    let Some(Value::String(label)) = table.get("label") else {
        return Err(
            Cause::new("a table value requires a label").with_hint("add one, such as { label = \"quiet\" }")
        );
    };
    let mut settings = table.clone();
    settings.remove("label");
    let settings = settings_of(&settings, axis).map_err(|Wrong { reason, .. }| reason)?;
    Ok(AxisValue { label: label.clone(), settings })
}

/// All settings of an axis.
fn sets(axis: &Axis) -> BTreeSet<&str> {
    axis.values.iter().flat_map(|value| value.settings.keys().map(String::as_str)).collect()
}

fn check_size(axes: &[Axis], repetitions: u32) -> Result<(), Wrong> {
    if repetitions == 0 {
        return Err(wrong("repetitions", "must be at least 1"));
    }
    let runs = count_runs(axes, repetitions);
    if runs.is_some_and(|runs| runs <= RUNS_MAX) {
        return Ok(());
    }
    let sizes: Vec<String> = axes.iter().map(|axis| axis.values.len().to_string()).collect();
    let runs = runs.map_or_else(|| "more than 10^19".to_owned(), |runs| runs.to_string());
    Err(wrong(
        "axes",
        Cause::new(format!(
            "{} cells x {repetitions} repetitions = {runs} runs; the maximum is {RUNS_MAX}",
            sizes.join(" x ")
        ))
        .with_hint("split it into several campaigns"),
    ))
}

/// Resolves axes and labels.
fn labels_of(
    table: BTreeMap<String, Value>,
    axes: &[Axis],
    place: &str,
) -> Result<BTreeMap<String, String>, Wrong> {
    let mut found = BTreeMap::new();
    for (name, value) in table {
        let key = format!("{place}.{name}");
        let Some(axis) = axes.iter().find(|axis| axis.name == name) else {
            let names = axes.iter().map(|axis| axis.name.as_str());
            return Err(wrong(key, Cause::new("unknown axis").with_hint(nearest(&name, names))));
        };
        let label = match &value {
            Value::Array(parts) => {
                parts.iter().map(text_of).collect::<Result<Vec<_>, _>>().map(|parts| parts.join(" + "))
            }
            scalar => text_of(scalar),
        };
        let label = label.map_err(|reason| wrong(&key, reason))?;
        if !axis.values.iter().any(|value| value.label == label) {
            let labels = axis.values.iter().map(|value| value.label.as_str());
            let reason = Cause::new(format!("the axis has no value {label:?}"));
            return Err(wrong(key, reason.with_hint(nearest(&label, labels))));
        }
        found.insert(name, label);
    }
    Ok(found)
}

/// Hint with the closest name, or with all names.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let close = close_names(name, known.clone());
    match close.first() {
        Some(close) => format!("did you mean {close:?}?"),
        None => {
            let all: Vec<String> = known.take(10).map(|name| format!("{name:?}")).collect();
            format!("use one of {}", all.join(", "))
        }
    }
}

fn skipped(skip: SkipTable, axes: &[Axis]) -> Result<Skip, Wrong> {
    if skip.when.is_empty() {
        return Err(wrong("skip", "when is empty: it would skip every cell"));
    }
    Ok(Skip { when: labels_of(skip.when, axes, "skip.when")?, why: skip.why })
}

fn paper(settings: PaperSettings, papers: &[&str]) -> Result<PaperSettings, Wrong> {
    if !papers.contains(&settings.name.as_str()) {
        let known = nearest(&settings.name, papers.iter().copied());
        return Err(wrong("paper.name", Cause::new("unknown paper").with_hint(known)));
    }
    match settings.scale.is_finite() && settings.scale > 0.0 && settings.scale <= 1.0 {
        true => Ok(settings),
        false => Err(wrong("paper.scale", "must be above 0 and at most 1")),
    }
}

fn stop(table: &StopTable) -> Result<Stop, Wrong> {
    if table.failures == Some(0) {
        return Err(wrong("stop.failures", "must be at least 1"));
    }
    if table.time.is_some_and(|time| time.0.is_zero()) {
        return Err(wrong("stop.time", "must be above 0"));
    }
    if table.half_width.is_some_and(|width| !(width > 0.0 && width < 1.0)) {
        return Err(wrong("stop.half_width", "must be a share between 0 and 1, such as 0.02 for 2 %"));
    }
    Ok(Stop {
        failures: table.failures,
        seconds: table.time.map(|time| time.0.as_secs_f64()),
        bytes: table.bytes.map(|bytes| bytes.0),
        half_width: table.half_width,
    })
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;

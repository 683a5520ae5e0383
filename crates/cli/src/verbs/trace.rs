//! `keepup trace`: recorded accesses to storage.
mod make;
mod record;
mod table;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use keepup_error::Cause;
use keepup_trace::{
    Format, Hints, Target, TimeUnit, Trace, TraceError, TraceInfo, Unit, Waits, convert, describe,
    detect_format, target_for,
};

use crate::exit::{Exit, usage};
use crate::output::{json, result, tell};

/// Traces: accesses to storage, recorded or made up, described and converted
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    Info(InfoArgs),
    Convert(ConvertArgs),
    Make(make::Args),
    Record(record::Args),
}

/// Tell what a trace has: operations, sizes, gaps, footprint, locality, requests outstanding
///
/// The format is told by the file's content. Files of blktrace, one for each processor, are one trace;
/// others are described one by one. Files packed by gzip are unpacked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup trace info web_0.csv.gz
  keepup trace info sda.blktrace.*
  keepup trace info run.iolog --json")]
struct InfoArgs {
    /// The traces
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    hints: HintArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Write a trace in keepup's own format, or as an iolog of fio
///
/// Requests are sorted by time, and times begin at 0. Nothing is overwritten.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup trace convert hm_1.csv hm_1.trace
  keepup trace convert sda.blktrace.* sda.iolog
  keepup trace convert volumes.csv 419.trace --device 419")]
struct ConvertArgs {
    /// The trace, then the new file; before it several files of blktrace
    #[arg(required = true, num_args = 2.., value_names = ["IN", "OUT"])]
    files: Vec<PathBuf>,
    /// What is written [default: iolog3 for a name in .iolog or .log, else native]
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<TargetArg>,
    #[command(flatten)]
    hints: HintArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the user says about a trace.
#[derive(Clone, clap::Args)]
pub(super) struct HintArgs {
    /// The format, where the content does not tell
    #[arg(long, value_parser = format, value_name = "FORMAT", help = format_help())]
    format: Option<Format>,
    /// Only requests of the device with this name; `keepup trace info` tells the names
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// What addresses count, where that is in doubt
    #[arg(long, value_enum)]
    unit: Option<UnitArg>,
    /// What times count, of mqsim [default: ns] and disksim [default: ms]
    #[arg(long, value_enum, value_name = "UNIT")]
    time_unit: Option<TimeUnitArg>,
    /// What `wait` means in an iolog of version 2
    #[arg(long, value_enum)]
    waits: Option<WaitsArg>,
}

#[derive(Clone, Copy, ValueEnum)]
enum UnitArg {
    /// 512 bytes each
    Sectors,
    /// Bytes
    Bytes,
}

#[derive(Clone, Copy, ValueEnum)]
enum TimeUnitArg {
    Ns,
    Us,
    Ms,
    S,
}

#[derive(Clone, Copy, ValueEnum)]
enum WaitsArg {
    /// Microseconds since the wait before, as fio's HOWTO says
    Gap,
    /// Milliseconds from the start, as fio itself takes it
    Start,
}

#[derive(Clone, Copy, ValueEnum)]
enum TargetArg {
    /// keepup's own format, which loses nothing
    Native,
    /// fio's iolog, version 3
    Iolog3,
}

fn format_help() -> String {
    format!("The format, where the content does not tell: {}", Format::ALL.map(Format::name).join(", "))
}

fn format(text: &str) -> Result<Format, String> {
    let found = Format::ALL.into_iter().find(|format| format.name() == text);
    found.ok_or_else(|| format!("one of {}", Format::ALL.map(Format::name).join(", ")))
}

impl HintArgs {
    fn hints(&self) -> Hints {
        let unit = self.unit.map(|unit| match unit {
            UnitArg::Sectors => Unit::Sectors,
            UnitArg::Bytes => Unit::Bytes,
        });
        let time_unit = self.time_unit.map(|unit| match unit {
            TimeUnitArg::Ns => TimeUnit::Ns,
            TimeUnitArg::Us => TimeUnit::Us,
            TimeUnitArg::Ms => TimeUnit::Ms,
            TimeUnitArg::S => TimeUnit::S,
        });
        let waits = self.waits.map(|waits| match waits {
            WaitsArg::Gap => Waits::Gap,
            WaitsArg::Start => Waits::Start,
        });
        Hints { format: self.format, unit, time_unit, waits }
    }

    /// Opens the trace in `files`, and tells of files that belong to it and are not among them.
    pub(super) fn open(&self, files: &[PathBuf]) -> Result<Trace, TraceError> {
        let trace = Trace::open(files, &self.hints(), self.device.as_deref())?;
        warn_of_siblings(files, trace.header().format);
        Ok(trace)
    }

    /// The traces that `files` are: files of one blktrace are one, else each is one.
    pub(super) fn traces<'a>(&self, files: &'a [PathBuf]) -> Result<Vec<&'a [PathBuf]>, TraceError> {
        Ok(match is_one_trace(files, &self.hints())? {
            true => vec![files],
            false => files.chunks(1).collect(),
        })
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.kind {
        Kind::Info(args) => info(args),
        Kind::Convert(args) => run_convert(args),
        Kind::Make(args) => make::run(args),
        Kind::Record(args) => record::run(args),
    }
}

fn info(args: &InfoArgs) -> anyhow::Result<Exit> {
    let mut found: Vec<TraceInfo> = Vec::new();
    for files in args.hints.traces(&args.files)? {
        let mut trace = args.hints.open(files)?;
        let info = describe(&mut trace)?;
        if !args.json {
            if !found.is_empty() {
                result("");
            }
            result(&table::page(&info));
        }
        found.push(info);
    }
    if args.json {
        let encoded = match &found[..] {
            [one] => serde_json::to_value(one),
            all => serde_json::to_value(serde_json::json!({ "traces": all })),
        };
        json(&encoded.context("cannot encode what was found")?);
    }
    Ok(Exit::Done)
}

/// Whether several files are those of one blktrace.
fn is_one_trace(files: &[PathBuf], hints: &Hints) -> Result<bool, TraceError> {
    if files.len() < 2 {
        return Ok(true);
    }
    for file in files {
        let format = hints.format.map_or_else(|| detect_format(file), Ok)?;
        if format != Format::Blktrace {
            return Ok(false);
        }
    }
    Ok(true)
}

/// blktrace writes a file for each processor; one that was left out is missed later than it is told.
fn warn_of_siblings(files: &[PathBuf], format: Format) {
    let [file] = files else { return };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let Some((device, _)) = name.rsplit_once(".blktrace.").filter(|_| format == Format::Blktrace) else {
        return;
    };
    let prefix = format!("{device}.blktrace.");
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let others = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix)).count();
    if others > 1 {
        let what = format!(
            "warning: {others} files begin with {prefix}, and only {name} was given: requests of the other \
             processors are missing"
        );
        tell(&Cause::new(what).with_hint(format!("keepup trace info {prefix}*")));
    }
}

fn run_convert(args: &ConvertArgs) -> anyhow::Result<Exit> {
    let [files @ .., out] = &args.files[..] else {
        return Err(usage("two files are needed: the trace, and the new one"));
    };
    let mut trace = args.hints.open(files)?;
    let target = match args.to {
        None => target_for(out),
        Some(TargetArg::Native) => Target::Native,
        Some(TargetArg::Iolog3) => Target::Iolog3,
    };
    let converted = convert(&mut trace, target, out)?;
    match args.json {
        true => json(&serde_json::to_value(&converted).context("cannot encode what was done")?),
        false => result(&table::converted(&converted, out)),
    }
    Ok(Exit::Done)
}

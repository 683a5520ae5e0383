//! `keepup trace`: block traces.
mod make;
mod record;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use keepup_error::Cause;
use keepup_report::listing;
use keepup_results::shell::quoted;
use keepup_trace::{
    Format, Hints, Target, TimeUnit, Trace, TraceError, TraceInfo, Unit, Waits, convert, describe,
    detect_format, target_for,
};

use crate::exit::{Exit, usage};
use crate::output::{json, log_cause, print_listing, result};

/// Record, generate, describe and convert block traces
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Info(InfoArgs),
    Convert(ConvertArgs),
    Make(make::Args),
    Record(record::Args),
}

/// Describe a trace: operations, sizes, gaps, footprint, locality, queue depth
///
/// The format is detected from the content. The per-CPU files of blktrace form one trace; other files are
/// described one by one. Files compressed with gzip are supported.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup trace info web_0.csv.gz
  keepup trace info sda.blktrace.*
  keepup trace info run.iolog --json")]
struct InfoArgs {
    /// Trace files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    hints: HintArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Convert a trace to keepup's format or to a fio iolog
///
/// Requests are sorted by time, and times start at 0. Existing files are never overwritten.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup trace convert hm_1.csv hm_1.trace
  keepup trace convert sda.blktrace.* sda.iolog
  keepup trace convert volumes.csv 419.trace --device 419")]
struct ConvertArgs {
    /// Input trace (or several blktrace files), then the output file
    #[arg(required = true, num_args = 2.., value_names = ["IN", "OUT"])]
    files: Vec<PathBuf>,
    /// Output format [default: by name]
    ///
    /// The default is iolog3 for names in .iolog and .log, else native.
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<TargetArg>,
    #[command(flatten)]
    hints: HintArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Flags about the format of a trace.
#[derive(Clone, clap::Args)]
pub(super) struct HintArgs {
    /// Input format [default: detected]
    #[arg(long, value_parser = format, value_name = "FORMAT", long_help = format_help())]
    format: Option<Format>,
    /// Use only requests of this device (see `keepup trace info`)
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Unit of addresses, if ambiguous
    #[arg(long, value_enum)]
    unit: Option<UnitArg>,
    /// Unit of times (mqsim, disksim)
    ///
    /// The default is ns for mqsim and ms for disksim.
    #[arg(long, value_enum, value_name = "UNIT")]
    time_unit: Option<TimeUnitArg>,
    /// Meaning of `wait` in iolog version 2
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
    /// Microseconds since the previous wait, as in fio's HOWTO
    Gap,
    /// Milliseconds since the start, as fio implements it
    Start,
}

#[derive(Clone, Copy, ValueEnum)]
enum TargetArg {
    /// keepup's format, lossless
    Native,
    /// fio's iolog, version 3
    Iolog3,
}

fn format_help() -> String {
    format!("Input format [default: detected]\n\nOne of {}.", Format::ALL.map(Format::name).join(", "))
}

fn format(text: &str) -> Result<Format, String> {
    let found = Format::ALL.into_iter().find(|format| format.name() == text);
    found.ok_or_else(|| format!("expected one of {}", Format::ALL.map(Format::name).join(", ")))
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

    /// Opens the trace in `files` and warns of missing files of the same trace.
    pub(super) fn open(&self, files: &[PathBuf]) -> Result<Trace, TraceError> {
        let trace = Trace::open(files, &self.hints(), self.device.as_deref())?;
        warn_of_siblings(files, trace.header().format);
        Ok(trace)
    }

    /// Groups `files` into traces: the files of a blktrace are one trace, other files one each.
    pub(super) fn traces<'a>(&self, files: &'a [PathBuf]) -> Result<Vec<&'a [PathBuf]>, TraceError> {
        Ok(match is_one_trace(files, &self.hints())? {
            true => vec![files],
            false => files.chunks(1).collect(),
        })
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::Info(args) => info(args),
        Verb::Convert(args) => run_convert(args),
        Verb::Make(args) => make::run(args),
        Verb::Record(args) => record::run(args),
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
            print_listing(|style| listing::trace(&info, style));
        }
        found.push(info);
    }
    if args.json {
        let encoded = match &found[..] {
            [one] => serde_json::to_value(one),
            all => serde_json::to_value(serde_json::json!({ "traces": all })),
        };
        json(&encoded.context("cannot encode the description")?);
    }
    Ok(Exit::Done)
}

/// Whether the files are a single trace.
fn is_one_trace(files: &[PathBuf], hints: &Hints) -> Result<bool, TraceError> {
    if files.len() < 2 {
        return Ok(true);
    }
    // blktrace writes an empty file for a processor without requests.
    let is_empty = |file: &&PathBuf| file.metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
    for file in files.iter().filter(|file| !is_empty(file)) {
        let format = hints.format.map_or_else(|| detect_format(file), Ok)?;
        if format != Format::Blktrace {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Warns of missing blktrace files. blktrace writes one file per CPU.
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
            "warning: only {name} of {others} files {prefix}* is given: requests of the other CPUs are \
             missing"
        );
        // The pattern stays outside the quotes.
        let siblings = quoted(&file.with_file_name(&prefix).display().to_string());
        log_cause(&Cause::new(what).with_hint(format!("keepup trace info {siblings}*")));
    }
}

fn run_convert(args: &ConvertArgs) -> anyhow::Result<Exit> {
    let [files @ .., out] = &args.files[..] else {
        return Err(usage("cannot convert: give an input and an output file"));
    };
    let mut trace = args.hints.open(files)?;
    let target = match args.to {
        None => target_for(out),
        Some(TargetArg::Native) => Target::Native,
        Some(TargetArg::Iolog3) => Target::Iolog3,
    };
    let converted = convert(&mut trace, target, out)?;
    match args.json {
        true => json(&serde_json::to_value(&converted).context("cannot encode the result")?),
        false => print_listing(|style| listing::converted(&converted, out, style)),
    }
    Ok(Exit::Done)
}

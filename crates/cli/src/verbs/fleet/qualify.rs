//! `keepup qualify --fleet`: qualification of all recorders of a fleet together.
use std::path::{Path, PathBuf};
use std::time::Duration;

use keepup_fleet::file::FleetFile;
use keepup_fleet::qualify::{FleetQualification, QualifySettings, qualify};
use keepup_fleet::trial::pairs;
use keepup_results::Verdict;
use keepup_results::format::plural;

use super::conduct::{Detector, FleetTrials};
use super::events::Reporter;
use super::up::{Session, end};
use crate::args::size;
use crate::exit::Exit;
use crate::output::{json, log, result};

/// Flags of `qualify` for a fleet.
#[derive(clap::Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetArgs {
    /// Fleet file: qualify all its recorders together, see `keepup fleet`
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "volume", "until_steady", "endurance", "out", "drain_to", "source", "source_token_file", "files_in",
        "protocol", "frames_per_second", "keep_files", "source_cpus", "http", "token_file", "http_name",
        "loads", "dry_run", "full", "pool", "unflushed", "block", "segment", "depth", "engine", "placement",
        "reduce", "reduce_threads", "intake_threads", "cpus", "intake_cpus", "writer_cpus",
    ])]
    pub(crate) fleet: Option<PathBuf>,
    /// Number of streams, at least one per recorder [default: the profile's]
    #[arg(long, value_name = "N", requires = "fleet")]
    streams: Option<u32>,
    /// Payload size of every event [default: the profile's]
    #[arg(long, value_parser = size, value_name = "SIZE", requires = "fleet")]
    event: Option<u64>,
    /// Seal and checksum blocks, then drop them, to test without disks
    #[arg(long, requires = "fleet")]
    to_null: bool,
    /// Measure the knee of each recorder alone, too
    #[arg(long, requires = "fleet")]
    each: bool,
}

/// Flags that a qualification of one machine has too.
pub(crate) struct Shared<'a> {
    pub(crate) profile: &'a str,
    pub(crate) quick: bool,
    pub(crate) soak: Option<Duration>,
    pub(crate) write_bytes_max: u64,
    pub(crate) json: bool,
}

pub(crate) fn run(path: &Path, args: &FleetArgs, shared: &Shared<'_>) -> anyhow::Result<Exit> {
    let detector = Detector { profile: shared.profile, streams: args.streams, event_bytes: args.event };
    let settings = QualifySettings {
        profile: detector.load()?,
        quick: shared.quick,
        soak: shared.soak,
        write_bytes_max: shared.write_bytes_max,
        to_null: args.to_null,
        each: args.each,
    };
    let mut file = FleetFile::read(path)?;
    file.timing = file.timing.of_trial();
    // A fleet that cannot run it is refused before an agent starts.
    let recorders = pairs(&file, settings.profile.streams, &Default::default())?.len();
    log(&plan(&file, &settings, recorders));
    let mut session = Session::open(path, file.clone())?;
    let mut reporter = Reporter::new(&file);
    let mut trials = FleetTrials::new(&mut session, &mut reporter);
    let found = trials
        .gather()
        .and_then(|()| Ok(qualify(&file, &settings, &mut trials, &mut |line: &str| log(line))?));
    end(&mut session, &mut reporter, "the qualification is over");
    let found = found?;
    if let Some(warning) = found.control_warning() {
        log(&format!("warning: {warning}"));
    }
    if shared.json {
        json(&serde_json::to_value(&found)?);
    } else {
        result(&found.page());
    }
    Ok(exit(&found))
}

fn plan(file: &FleetFile, settings: &QualifySettings, recorders: usize) -> String {
    let written = match settings.to_null {
        true => "nothing written".to_owned(),
        false => format!("at most {:.0} GB written and removed", settings.write_bytes_max as f64 / 1e9),
    };
    let recorders = plural(recorders as u64, "recorder");
    format!("qualify {} on {recorders} of fleet {}: {written}", settings.profile.name, file.name)
}

fn exit(found: &FleetQualification) -> Exit {
    match found.verdict {
        _ if found.interrupted => Exit::Interrupted,
        Verdict::Fit | Verdict::FitWithLimits => Exit::Done,
        Verdict::NotFit => Exit::Failed,
        Verdict::Inconclusive if found.generator_limited => Exit::Environment,
        Verdict::Inconclusive => Exit::Inconclusive,
    }
}

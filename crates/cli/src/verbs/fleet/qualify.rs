//! `keepup qualify --fleet`: qualification of all recorders of a fleet together.
mod store;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use keepup_campaign::Forecast;
use keepup_fleet::file::FleetFile;
use keepup_fleet::message::Role;
use keepup_fleet::qualify::{QualifyEvent, QualifySettings, begun, control_warning, qualify};
use keepup_fleet::trial::pairs;
use keepup_measure::clock::{Clock, SystemClock};
use keepup_measure::environment::Environment;
use keepup_recording::id::Id;
use keepup_results::format::plural;
use keepup_results::{Begun, Document, FleetQualifySummary, Stored, Verdict};

use self::store::Store;
use super::conduct::{Detector, FleetTrials};
use super::events::Reporter;
use super::up::{Session, end};
use crate::args::size;
use crate::exit::Exit;
use crate::forecast::print_plan;
use crate::output::{command, json, log, page};

/// Flags of `qualify` for a fleet.
#[derive(clap::Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct FleetArgs {
    /// Fleet file: qualify all its recorders together, see `keepup fleet`
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "volume", "until_steady", "endurance", "drain_to", "source", "source_token_file", "files_in",
        "protocol", "frames_per_second", "keep_files", "source_cpus", "http", "token_file", "read_token_file",
        "http_name",
        "loads", "full", "pool", "unflushed", "block", "segment", "depth", "engine", "placement",
        "reduce", "reduce_threads", "intake_threads", "cpus", "intake_cpus", "writer_cpus",
    ])]
    pub(crate) fleet: Option<PathBuf>,
    /// Use only the first N recorders of the fleet file, and its sources [default: all recorders]
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u32).range(1..))]
    recorders: Option<u32>,
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
    pub(crate) write_bytes_max: Option<u64>,
    pub(crate) out: &'a Path,
    pub(crate) dry_run: bool,
    pub(crate) json: bool,
}

pub(crate) fn run(path: &Path, args: &FleetArgs, shared: &Shared<'_>) -> anyhow::Result<Exit> {
    let mut file = FleetFile::read(path)?;
    file.timing = file.timing.of_trial();
    let mut left_out = Vec::new();
    if let Some(count) = args.recorders {
        (file, left_out) = file.first_recorders(count)?;
    }
    let detector = Detector { profile: shared.profile, streams: args.streams, event_bytes: args.event };
    let mut settings = QualifySettings {
        profile: detector.load()?,
        quick: shared.quick,
        soak: shared.soak,
        write_bytes_max: shared.write_bytes_max.unwrap_or_default(),
        to_null: args.to_null,
        each: args.each,
        left_out,
    };
    settings.write_bytes_max = shared.write_bytes_max.unwrap_or_else(|| settings.write_bytes_default());
    // A fleet that cannot run it is refused before an agent starts.
    let recorders = pairs(&file, settings.profile.streams, &Default::default())?.len();
    settings.check_write_limit()?;
    let forecast = forecast(&file, &settings, recorders);
    if shared.dry_run {
        print_plan(&forecast, shared.json);
        return Ok(Exit::Done);
    }
    let start = start(&file, &settings, recorders)?;
    let mut store = Store::create(shared.out, begun(&file, &settings, &start), &start)?;
    log(&forecast.text);
    let found = match measure(path, &file, &settings, &start, &mut store) {
        Ok(found) => found,
        Err(why) => {
            store.fail(&why);
            return Err(why);
        }
    };
    if let Some(warning) = control_warning(&found.control) {
        log(&format!("warning: {warning}"));
    }
    // Printed first: a result directory that cannot be written must not lose hours of measurement.
    if shared.json {
        json(&Document::value(&found)?);
    } else {
        page(&Stored::QualifyFleet(Box::new(found.clone())));
    }
    let directory = store.finish(&found)?;
    crate::verbs::report::write_beside(&directory);
    log(&format!("result: {}", directory.display()));
    Ok(exit(&found))
}

/// Starts the agents, runs the trials, and ends the agents.
fn measure(
    path: &Path,
    file: &FleetFile,
    settings: &QualifySettings,
    start: &Begun,
    store: &mut Store,
) -> anyhow::Result<FleetQualifySummary> {
    let mut session = Session::open(path, file.clone())?;
    let mut reporter = Reporter::new(file);
    let mut trials = FleetTrials::new(&mut session, &mut reporter);
    let mut watch = |event: QualifyEvent<'_>| match event {
        QualifyEvent::Line(line) => log(line),
        QualifyEvent::Trial { trial, bytes_written, control } => store.keep(trial, bytes_written, control),
    };
    let found = trials.gather().and_then(|()| Ok(qualify(file, settings, start, &mut trials, &mut watch)?));
    end(&mut session, &mut reporter, "the qualification is over");
    found
}

/// Volumes of a host, each with the name of its host.
fn volumes(file: &FleetFile) -> impl Iterator<Item = String> {
    let recorders = file.hosts.iter().filter(|host| host.role == Role::Recorder);
    recorders.flat_map(|host| {
        host.volumes.iter().map(|volume| format!("{}:{}", host.name, volume.display())).collect::<Vec<_>>()
    })
}

/// Cost of the qualification. The limit on written data covers all volumes, and each gets an equal share.
fn forecast(file: &FleetFile, settings: &QualifySettings, recorders: usize) -> Forecast {
    let seconds = settings.seconds(recorders);
    let volumes: Vec<String> = volumes(file).collect();
    let (written, each) = match settings.to_null {
        true => ("nothing written".to_owned(), 0),
        false => {
            let bytes = settings.write_bytes_max;
            let text = format!("at most {:.0} GB written and removed", bytes as f64 / 1e9);
            (text, bytes.div_ceil(volumes.len().max(1) as u64))
        }
    };
    let recorders = plural(recorders as u64, "recorder");
    let text = format!(
        "qualify {} on {recorders} of fleet {}: {written}, about {seconds:.0} s",
        settings.profile.name, file.name
    );
    let of_volumes = volumes.into_iter().filter(|_| each > 0).map(|volume| (volume, each)).collect();
    // The volumes are those of other machines: their space is not that of this one.
    Forecast { seconds: Some(seconds), text, ..Forecast::of_volumes(of_volumes, BTreeMap::new()) }
}

/// What the result says about its measurement.
fn start(file: &FleetFile, settings: &QualifySettings, recorders: usize) -> anyhow::Result<Begun> {
    let plan = serde_json::json!({
        "profile": settings.profile.to_toml(),
        "fleet": file.name,
        "recorders": recorders,
        "volumes": volumes(file).collect::<Vec<_>>(),
        "quick": settings.quick,
        "soak_seconds": settings.soak.map(|soak| soak.as_secs_f64()),
        "write_bytes_max": settings.write_bytes_max,
        "to_null": settings.to_null,
        "each": settings.each,
    });
    Ok(Begun {
        id: Id::random().context("cannot read random bytes")?.to_string()[..8].to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        created_unix_ns: SystemClock.unix_ns(),
        command: command(),
        workload: settings.profile.name.clone(),
        plan,
        environment: serde_json::to_value(Environment::collect(&[], Path::new("/"))).unwrap_or_default(),
    })
}

fn exit(found: &FleetQualifySummary) -> Exit {
    match found.verdict {
        _ if found.interrupted => Exit::Interrupted,
        Verdict::Fit => Exit::Done,
        Verdict::FitWithLimits => Exit::FitWithLimits,
        Verdict::NotFit => Exit::Failed,
        Verdict::Inconclusive if found.generator_limited => Exit::Environment,
        Verdict::Inconclusive => Exit::Inconclusive,
    }
}

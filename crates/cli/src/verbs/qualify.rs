//! `keepup qualify`: search for the highest rate without loss.
mod live;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use keepup_error::Cause;
use keepup_measure::clock::SystemClock;
use keepup_peer::Endpoint;
use keepup_qualify::progress::Progress;
use keepup_qualify::qualify;
use keepup_qualify::search_request::check_soak;
use keepup_qualify::settings::{Cost, Settings};
use keepup_recorder::watch::WatcherSlot;
use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_results::format::plural;
use keepup_results::{Document, ResultSummary, Stored, Verdict};
use keepup_workload::Footprint;
use keepup_workload::detector::{SourceRate, recorder_config, source_plan};
use keepup_workload::preflight::{check, common_disks, usable_bytes_each};

use self::live::SearchPage;
use crate::args::{Cpus, RecorderArgs, cpus, duration, size, volumes_or_default};
use crate::exit::{Exit, UsageError, usage};
use crate::forecast::{forecast, print_plan};
use crate::generator::{GeneratorArgs, files_place};
use crate::http::HttpArgs;
use crate::loads::{LoadArgs, check_loads};
use crate::output::{command, full_page, json, log, missing_file, page};
use crate::progress::StatusLine;
use crate::protocol::ProtocolArgs;
use crate::signals::stop_flag;
use crate::verbs::record::with_reductions;
use crate::verbs::test_session::describe_measurement;

/// Find the highest rate that this machine records without loss, and what limits it
///
/// Runs source, recorder and drain in production configuration over loopback, on the given volumes. With
/// --source the source runs on another machine, and the network between the two takes part. It writes only
/// to a new directory on each volume and removes its recordings afterwards.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup qualify csl                        the CDF event logger, recording below ./keepup-data
  keepup qualify csl --quick                short test of a minute
  keepup qualify eiger2-4m --volume /data/a --volume /data/b
  keepup qualify csl --load net=50MB/s      during network traffic
  keepup qualify csl --endurance '600 TB'   and how long the disk lasts
  keepup qualify csl --source daq2          over the network, from `keepup source --serve` on daq2
  keepup qualify csl --soak 10m --max-write '500 GB' --json > result.json")]
pub(crate) struct Args {
    /// Built-in profile (see `keepup profile list`) or path of a profile file
    profile: String,
    /// Directory on a disk to record to; repeatable [default: ./keepup-data]
    #[arg(long, value_name = "DIR")]
    volume: Vec<PathBuf>,
    /// Short test with short trials and a short soak
    #[arg(long)]
    quick: bool,
    /// Write at full speed until the rate is steady, then search: fills the fast cache of a disk
    #[arg(long)]
    until_steady: bool,
    /// Duration of the soak, such as "10m"
    #[arg(long, value_parser = soak, value_name = "TIME")]
    soak: Option<Duration>,
    /// Limit on the data written by all trials [default: 400 GB, or two soaks at the target]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    max_write: Option<u64>,
    /// Rated endurance (TBW) of each volume, such as "600 TB"; once, or for each --volume
    #[arg(long, value_parser = endurance, value_name = "SIZE")]
    endurance: Vec<u64>,
    /// Directory for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Sink for the concurrent drain, tcp://HOST:PORT (see `keepup sink`)
    #[arg(long, value_name = "HOST:PORT", value_parser = super::drain::tcp_endpoint)]
    drain_to: Option<Endpoint>,
    #[command(flatten)]
    generator: GeneratorArgs,
    #[command(flatten)]
    protocol: ProtocolArgs,
    /// CPUs of the source threads, on the machine of the source, such as "1" [default: any]
    #[arg(long, value_parser = cpus, value_name = "LIST")]
    source_cpus: Option<Cpus>,
    #[command(flatten)]
    http: HttpArgs,
    #[command(flatten)]
    loads: LoadArgs,
    /// Print what would be written, then exit
    #[arg(long)]
    dry_run: bool,
    /// Print all figures, then the verdict
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    recording: RecorderArgs,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    fleet: super::fleet::qualify::FleetArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    #[cfg(feature = "fleet")]
    if let Some(file) = &args.fleet.fleet {
        let shared = super::fleet::qualify::Shared {
            profile: &args.profile,
            quick: args.quick,
            soak: args.soak,
            write_bytes_max: args.max_write,
            out: &args.out,
            dry_run: args.dry_run,
            json: args.json,
        };
        return super::fleet::qualify::run(file, &args.fleet, &shared);
    }
    let mut settings = settings(args)?;
    settings.profile.validate().map_err(keepup_qualify::QualifyError::from)?;
    settings.check_write_limit()?;
    let checked = check(&settings.volumes, 0)?;
    let usable = usable_bytes_each(&checked) * checked.len() as u64;
    let cost = settings.cost(usable);
    let volumes: Vec<String> = settings.volumes.iter().map(|v| v.display().to_string()).collect();
    let store = settings.generator.file_store();
    let uncounted = if store.is_some() { ", not counting the files of the source," } else { "" };
    let plan = format!(
        "qualify {} on {}, protocol {}{}: at most {:.0} GB written (set with --max-write){uncounted} and \
         removed afterwards, about {:.0} s, {:.0} s if soaks fail",
        settings.profile.name,
        volumes.join(", "),
        settings.protocol,
        files_place(store),
        cost.bytes_written as f64 / 1e9,
        cost.seconds,
        cost.seconds_max
    );
    let time = Duration::try_from_secs_f64(cost.seconds_max).unwrap_or(Duration::MAX);
    let held = settings.volumes.iter().map(|volume| (volume.clone(), settings.space_bytes_min())).collect();
    let loads = check_loads(&settings.loads, &held, Some(time))?;
    let plan = std::iter::once(plan).chain(loads).collect::<Vec<_>>().join("\n");
    common_disks(&settings.volumes).iter().for_each(|warning| log(&format!("warning: {warning}")));
    if args.dry_run {
        let own = footprint(&settings, &cost, time);
        print_plan(&forecast(&own, &settings.loads, plan), args.json);
        return Ok(Exit::Done);
    }
    log(&plan);
    settings.generator = args.generator.connect(&settings.generator)?;
    let stop = stop_flag()?;
    let mut status = StatusLine::new();
    let identity = Id::random().context("cannot read random bytes")?;
    describe_measurement(&settings.volumes, &format!("keepup-qualify-{}", &identity.to_string()[..8]));
    let clock = Arc::new(SystemClock);
    let mut live = SearchPage::start(&args.http, &settings)?;
    let mut watch = |progress| {
        show(&mut status, &progress);
        live.iter_mut().for_each(|page| page.update(&progress));
    };
    let outcome = qualify(&settings, identity, clock, stop, &mut watch);
    drop(status);
    let (summary, generator_limited) = outcome?;
    live.iter_mut().for_each(|page| page.end(&summary));
    super::report::write_beside(Path::new(&summary.result_directory));
    for load in summary.loads.iter().filter(|load| load.session.failure.is_some()) {
        log(&format!("error: background load {} ended early", load.session.spec));
    }
    print(args, &summary)?;
    Ok(exit(&summary, generator_limited))
}

/// Prints the result last, so that the verdict is just above the prompt.
fn print(args: &Args, summary: &ResultSummary) -> anyhow::Result<()> {
    if args.json {
        json(&Document::value(summary).context("cannot encode the result")?);
        return Ok(());
    }
    let stored = Stored::Qualify(Box::new(summary.clone()));
    if args.full {
        full_page(&stored)
    } else {
        page(&stored)
    }
    Ok(())
}

/// Footprint of the qualification. The limit on written data covers all volumes, and each gets an equal
/// share.
fn footprint(settings: &Settings, cost: &Cost, time: Duration) -> Footprint {
    let volumes = settings.volumes.len().max(1) as u64;
    let each = |bytes: u64| settings.volumes.iter().map(|v| (v.clone(), bytes.div_ceil(volumes))).collect();
    Footprint { bytes_written: each(cost.bytes_written), space_bytes: each(cost.space_bytes), time }
}

fn exit(summary: &ResultSummary, generator_limited: bool) -> Exit {
    match summary.verdict {
        _ if summary.loads.iter().any(|load| load.session.failure.is_some()) => Exit::Environment,
        _ if summary.interrupted => Exit::Interrupted,
        Verdict::Fit => Exit::Done,
        Verdict::FitWithLimits => Exit::FitWithLimits,
        Verdict::NotFit => Exit::Failed,
        Verdict::Inconclusive if generator_limited => Exit::Environment,
        Verdict::Inconclusive => Exit::Inconclusive,
    }
}

/// Parses the duration of the soak.
fn soak(text: &str) -> Result<Duration, UsageError> {
    check_soak(duration(text)?).map_err(|error| UsageError::of(&error))
}

/// Parses a rated endurance, in bytes.
fn endurance(text: &str) -> Result<u64, UsageError> {
    let none = || UsageError::new("the endurance must be above 0");
    size(text).and_then(|bytes| if bytes == 0 { Err(none()) } else { Ok(bytes) })
}

/// Rated endurance of each volume; empty if none is stated.
fn endurance_each(rated: &[u64], volumes: usize) -> anyhow::Result<Vec<u64>> {
    if let [one] = rated {
        return Ok(vec![*one; volumes]);
    }
    if !rated.is_empty() && rated.len() != volumes {
        let what = format!(
            "cannot assign {} to {}",
            plural(rated.len() as u64, "endurance rating"),
            plural(volumes as u64, "volume")
        );
        return Err(usage(
            Cause::new(what).with_hint("--endurance once for all volumes, or once for each --volume"),
        ));
    }
    Ok(rated.to_vec())
}

fn settings(args: &Args) -> anyhow::Result<Settings> {
    let profile = keepup_plan::load(&args.profile)?;
    let volumes = volumes_or_default(&args.volume)?;
    let endurance = endurance_each(&args.endurance, volumes.len())?;
    let profile = profile.on_volumes(u32::try_from(volumes.len()).unwrap_or(u32::MAX));
    let listen = Endpoint::from((Ipv4Addr::LOCALHOST, 0));
    let base = RecorderConfig::new(listen, Target::Null, "base");
    let mut recorder = recorder_config(&profile, &base);
    args.recording.apply(&mut recorder);
    let profile = with_reductions(profile, &recorder)?;
    let plan = source_plan(&profile, SourceRate::Profile, None);
    let protocol = args.protocol.of_trial(&plan, &profile, args.generator.is_remote(), true);
    let generator = args.generator.local(protocol, args.protocol.keep_files(), &volumes)?;
    let mut settings = Settings {
        profile,
        volumes,
        quick: args.quick,
        until_steady: args.until_steady,
        soak: args.soak,
        write_bytes_max: args.max_write.unwrap_or_default(),
        endurance,
        drain_to: args.drain_to.clone(),
        recorder,
        loads: args.loads.plan()?,
        generator,
        source_cpus: args.source_cpus.clone().unwrap_or_default().0,
        protocol,
        command: command(),
        results: args.out.clone(),
        tool_version: env!("CARGO_PKG_VERSION").into(),
        watcher_slot: args.http.http.is_some().then(WatcherSlot::default),
    };
    settings.write_bytes_max = args.max_write.unwrap_or_else(|| settings.write_bytes_default());
    Ok(settings)
}

fn show(status: &mut StatusLine, progress: &Progress) {
    match progress {
        Progress::Phase { name, estimate_s } => status.log(&format!("{name} (about {estimate_s:.0} s left)")),
        Progress::Trial { phase, rate, seconds } => {
            let rate = rate.map_or("full speed".into(), |rate| format!("{:.0} MB/s", rate / 1e6));
            status.show(&format!("{phase}: {rate} for {seconds:.0} s"), Duration::ZERO);
        }
        Progress::Ceiling { what, bytes_per_second } => {
            status.log(&format!("  {what}: {:.0} MB/s", bytes_per_second / 1e6));
        }
        Progress::Done { text } | Progress::Tried { text, .. } => status.log(&format!("  {text}")),
        Progress::Warning { text } => status.log(&format!("warning: {text}")),
        Progress::MissingFile { why } => missing_file(why),
    }
}

#[cfg(test)]
#[path = "qualify_tests.rs"]
mod tests;

//! `keepup record`: records what detectors send to disks.
mod account;
mod line;
mod qualified;
mod service;
mod session;
mod tap;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_error::Cause;
use keepup_live::{Live, TapSource};
use keepup_measure::clock::{Clock, SystemClock};
use keepup_peer::Endpoint;
use keepup_plan::Profile;
use keepup_recorder::report::RecordReport;
use keepup_recorder::watch::Qualified;
use keepup_recorder::{RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_recording::retention::{Keep, KeepLimit};
use keepup_results::live::{RunSettings, RunState};
use keepup_workload::preflight::check;

use self::line::status;
use self::session::{Session, control};
use crate::args::{Recording, keep, size, span, volumes_or_default};
use crate::exit::{Exit, usage};
use crate::http::{HttpArgs, Offer, Opening};
use crate::output::{json, result, say};
use crate::progress::Status;
use crate::run_flags::RunFlags;
use crate::signals::stop_flag;
use crate::verbs::serve::{RESULTS, catalog};

/// Record what detectors send, until they say end
///
/// Listens for the wire protocol of docs/wire-protocol.md. Ctrl-C and SIGTERM end it cleanly: everything
/// received becomes durable.
#[derive(clap::Args)]
#[command(after_help = "Example, in three terminals:
  keepup record --volume /data/a --volume /data/b
  keepup source csl --to 127.0.0.1:7611
  keepup drain /data/a/keepup-… --follow --to tcp://127.0.0.1:7612")]
pub(crate) struct Args {
    /// Address to listen on; loopback unless told otherwise
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7611")]
    listen: Endpoint,
    /// Directory on the disk to record to; once for each disk [default: ./keepup-data]
    #[arg(long, value_name = "DIR", conflicts_with = "to_null")]
    volume: Vec<PathBuf>,
    /// Seal and checksum blocks, then drop them: the path without the disk
    #[arg(long)]
    to_null: bool,
    /// Take block, segment, placement and largest event from a profile
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Name of the recording's directory on every volume [default: keepup-TIME-ID]
    #[arg(long)]
    name: Option<String>,
    /// Largest event accepted
    #[arg(long, value_parser = size, value_name = "SIZE")]
    max_event: Option<u64>,
    /// Connections served at a time
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// Take a volume out of rotation when it has not completed a write for this long while others have
    #[arg(long, value_parser = span, value_name = "TIME", default_value = "5 s")]
    slow_after: Duration,
    /// Close the connection of a peer that answers nothing for this long; one that sends nothing for this
    /// long may be replaced by a new connection for the same streams
    #[arg(long, value_parser = span, value_name = "TIME", default_value = "5 s")]
    peer_timeout: Duration,
    /// Keep only so much, as in "2 TB" or "3 h": the oldest segments go when they are drained
    #[arg(long, value_parser = keep, value_name = "SIZE|TIME", conflicts_with = "to_null")]
    keep: Option<KeepLimit>,
    /// The oldest segments may go without being drained
    #[arg(long, requires = "keep")]
    disposable: bool,
    /// Go on when the last source has ended, until stopped
    #[arg(long)]
    stay: bool,
    /// Wait for commands over HTTP, run after run, until Ctrl-C (see `keepup ctl`)
    #[arg(long, requires = "http")]
    controlled: bool,
    /// The result of a qualification that the rate is held against [default, for a page: the newest in
    /// results that was made on this machine with these volumes]
    #[arg(long, value_name = "DIR")]
    qualified_by: Option<PathBuf>,
    #[command(flatten)]
    http: HttpArgs,
    /// Print the account as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    recording: Recording,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let target = target(args.to_null, &args.volume)?;
    if args.to_null && args.run.is_about_the_recording() {
        return Err(usage("--run and --meta go into a recording, and --to-null makes none"));
    }
    let settings = RunSettings { name: args.name.clone(), ..args.run.settings()? };
    let mut config = RecorderConfig::new(args.listen.clone(), target, String::new());
    if let Some(profile) = &args.profile {
        config = keepup_workload::detector::recorder_config(&keepup_plan::load(profile)?, &config);
    }
    args.recording.apply(&mut config);
    config.event_bytes_max = args.max_event.unwrap_or(config.event_bytes_max);
    config.connections_max = args.max_connections.unwrap_or(config.connections_max);
    config.keep = args.keep.map(|limit| Keep { limit, disposable: args.disposable });
    config.slow_after = args.slow_after;
    config.peer_timeout = args.peer_timeout;
    config.stay = args.stay;
    let volumes = match &config.target {
        Target::Volumes(volumes) => volumes.as_slice(),
        Target::Null => &[],
    };
    let qualified = match &args.qualified_by {
        Some(path) => Some(qualified::named(path, volumes)?),
        None if args.http.http.is_some() => qualified::found(Path::new(RESULTS), volumes),
        None => None,
    };
    let http = args.http.clone();
    record(config, settings, Manner { http, qualified, controlled: args.controlled, json: args.json })
}

/// How runs are recorded, beside their settings.
#[derive(Default)]
pub(super) struct Manner {
    /// Where the page is, if anywhere.
    pub(super) http: HttpArgs,
    /// What the rate is held against.
    pub(super) qualified: Option<Qualified>,
    /// Runs begin by command; else one begins at once.
    pub(super) controlled: bool,
    /// The account is one JSON object.
    pub(super) json: bool,
}

/// The volumes given, the default one, or none at all.
pub(super) fn target(to_null: bool, volumes: &[PathBuf]) -> anyhow::Result<Target> {
    if to_null {
        return Ok(Target::Null);
    }
    Ok(Target::Volumes(volumes_or_default(volumes)?))
}

/// The name given, or one that tells when and which.
pub(super) fn name(given: Option<&str>, id: Id) -> String {
    let compact = |time: String| time.replace(['-', ':'], "").to_lowercase();
    given.map_or_else(
        || {
            format!(
                "keepup-{}-{}",
                compact(keepup_results::rfc3339(SystemClock.unix_ns())),
                &id.to_string()[..6]
            )
        },
        str::to_owned,
    )
}

/// Records and prints the account: one run with these `settings`, or, controlled, run after run. `config` has
/// the rest.
pub(super) fn record(
    mut config: RecorderConfig,
    settings: RunSettings,
    manner: Manner,
) -> anyhow::Result<Exit> {
    look_before(&config)?;
    let stop = stop_flag()?;
    let live = serve(&manner.http, &mut config)?;
    let mut session = Session::new(control(config, manner.controlled), live, manner.qualified);
    let account = |session: &mut Session| {
        let report = session.report()?;
        match manner.json {
            true => json(&account::for_programs(report)),
            false => result(&account::for_people(report)),
        }
        Ok(exit(report))
    };
    let mut line = Status::new();
    let is_asked = || stop.load(Ordering::Acquire);
    if !manner.controlled {
        session.start_now(&settings)?;
        session.service.ready();
        let is_on = |state| matches!(state, RunState::Recording | RunState::Draining);
        while is_on(session.turn(&mut line, is_asked())) {}
        drop(line);
        return account(&mut session);
    }
    say("waiting for commands: keepup ctl configure");
    session.service.ready();
    let mut worst = Exit::Done;
    loop {
        let is_asked = is_asked();
        let state = session.turn(&mut line, is_asked);
        match session.change() {
            Some(RunState::Armed) => session.tell_armed(),
            Some(RunState::Sealed | RunState::Error) => {
                session.error().iter().for_each(|why| line.line(&format!("error: {why}")));
                if let (Ok(Exit::Failed), Exit::Done) | (Err(_), Exit::Done) = (account(&mut session), worst)
                {
                    worst = Exit::Failed;
                }
            }
            Some(state) => line.line(&state.to_string()),
            None => {}
        }
        if is_asked && !matches!(state, RunState::Armed | RunState::Recording | RunState::Draining) {
            return Ok(worst);
        }
    }
}

/// Serves the page, where one is asked for, which takes copies of events from the recorder's tap.
fn serve(http: &HttpArgs, config: &mut RecorderConfig) -> anyhow::Result<Option<Live>> {
    let copies = http.http.is_some().then(tap::tap);
    config.tap.clone_from(&copies);
    let seats = copies.map(|copies| Arc::new(tap::Seats(copies)) as Arc<dyn TapSource>);
    let mut stored = vec![PathBuf::from(RESULTS)];
    if let Target::Volumes(volumes) = &config.target {
        stored.extend(volumes.iter().cloned());
    }
    let opening = http.open(None, Offer { commands: true, tap: seats, catalog: Some(catalog(&stored)) })?;
    Ok(opening.map(Opening::start).transpose()?)
}

/// What must hold before anything is written, and what should be known.
fn look_before(config: &RecorderConfig) -> anyhow::Result<()> {
    if let Target::Volumes(volumes) = &config.target {
        let kept = match config.keep {
            Some(Keep { limit: KeepLimit::Bytes(bytes), .. }) => bytes / volumes.len().max(1) as u64,
            _ => 0,
        };
        for volume in check(volumes, kept.max(2 * config.segment_bytes))? {
            volume.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
        }
    }
    if !config.listen.is_loopback() {
        say(&format!(
            "warning: {} can be reached from outside; whoever connects may write here",
            config.listen
        ));
    }
    Ok(())
}

fn exit(report: &RecordReport) -> Exit {
    let missing: u64 = report.ledger.total().gap_events.values().sum();
    if report.is_whole() && missing == 0 { Exit::Done } else { Exit::Failed }
}

/// `profile` with what `recorder` does to its events, which they must allow.
pub(super) fn reduced(mut profile: Profile, recorder: &RecorderConfig) -> anyhow::Result<Profile> {
    profile.reductions.clone_from(&recorder.reductions);
    profile.validate().map_err(|invalid| usage(Cause::of(&invalid)))?;
    Ok(profile)
}

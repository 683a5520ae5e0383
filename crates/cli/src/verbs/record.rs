//! `keepup record`: records detector data to disks.
mod detectors;
#[cfg(feature = "fleet")]
mod fleet;
mod line;
mod qualified;
mod series;
mod service;
mod session;
mod tap;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use keepup_error::Cause;
use keepup_live::{Live, TapSource};
use keepup_measure::clock::{Clock, SystemClock};
use keepup_measure::cpu::ProcessCpu;
use keepup_peer::Endpoint;
use keepup_plan::Profile;
use keepup_recorder::after_seal::{AfterSeal, JOBS_MAX as AFTER_SEAL_JOBS_MAX};
use keepup_recorder::report::RecordReport;
use keepup_recorder::watch::Qualified;
use keepup_recorder::{RecorderConfig, Target, catch_panic};
use keepup_recording::id::Id;
use keepup_recording::retention::{Keep, KeepLimit, KeepUntil};
use keepup_report::listing;
use keepup_results::live::{RunSettings, RunState};
use keepup_sources::SourceAddress;
use keepup_workload::preflight::{check, common_disks};

use self::detectors::{DetectorArgs, DetectorControl};
use self::line::status;
use self::series::{SeriesChain, SeriesCount, series};
use self::session::{Session, control};
use crate::args::{RecorderArgs, duration, keep_limit, size, volumes_or_default};
use crate::exit::{Exit, usage};
use crate::http::{HttpArgs, PageContent, PreparedPage};
use crate::internal_error::InternalError;
use crate::output::{json, log, print_listing};
use crate::progress::StatusLine;
use crate::run_flags::RunFlags;
use crate::signals::stop_flag;
use crate::verbs::serve::{RESULTS, catalog};

/// Record detector data from the network to disks
///
/// Accepts connections of the wire protocol in docs/wire-protocol.md and ends when all sources have ended.
/// Ctrl-C and SIGTERM stop cleanly: all received events become durable.
#[derive(clap::Args)]
#[command(after_help = "Example, in three terminals:
  keepup record --volume /data/a --volume /data/b
  keepup source csl --to 127.0.0.1:7611
  keepup drain /data/a/keepup-… --follow --to tcp://127.0.0.1:7612")]
pub(crate) struct Args {
    /// Address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7611")]
    listen: Endpoint,
    /// Detector to receive from, instead of listening; repeatable
    ///
    /// zmq://HOST[:PORT] receives a series of a DECTRIS detector, over Stream V2 (default port: 31001) or V1
    /// (port 9999). Each channel becomes a stream. The recorder reconnects after a lost connection and counts
    /// missing images.
    ///
    /// udp://[ADDRESS]:PORT[,OPTION=VALUE...] receives numbered UDP packets on a local address or from a
    /// multicast group until the recording is stopped. Each sender is a stream, each packet an event.
    /// Options: counter=u64be@0 (type and offset of the packet counter), step=1 (counter increment per
    /// packet), group=N (record N consecutive packets as one event), frame=TYPE@OFFSET (frame number: packets
    /// of a frame make one event; with group, counter is the packet's index in the frame), skip=0 (bytes to
    /// remove from the start of each packet), window=64 (later packets to hold while one is missing),
    /// buffer=64MiB (socket receive buffer), interface=NAME (for a multicast group). An event that lacks a
    /// packet is lost.
    ///
    /// vdif://[ADDRESS]:PORT[,OPTION=VALUE...] receives VDIF frames, one per packet. Each thread of a station
    /// is a stream. Options: frames-per-second=N (per thread; required if the frame headers do not state the
    /// sample rate), group, skip, window, buffer, interface.
    ///
    /// spead://[ADDRESS]:PORT[,OPTION=VALUE...] receives SPEAD heaps (SPEAD-64-48, SPEAD-64-40) until their
    /// senders stop. Each sender is a stream, the payload of each heap an event. Options: step=1 (increment
    /// of heap numbers), senders=1 (senders that must stop before the recording ends), window=4 (heaps to
    /// assemble at once), buffer, interface.
    ///
    /// pcap:FILE[,as=udp|vdif|spead][,OPTION=VALUE...] reads the UDP packets of a capture file (pcap or
    /// pcapng) and ends with the file. Options: port=N (packets to this port only), pace=max|original (as
    /// fast as possible, or at the pace of the capture), and the options of that format.
    ///
    /// pva://HOST[:PORT]/PVNAME[,queue=N] monitors an EPICS PV with images (NTNDArray), as areaDetector's
    /// NDPluginPva serves them over pvAccess (default port 5075), until the recording is stopped. The PV is a
    /// stream, each image an event. queue=16 is the number of images that the server queues for the recorder.
    ///
    /// dir:PATH[,OPTION=VALUE...] records the files that another program writes into a directory until the
    /// recording is stopped. A file becomes an event when it is closed after writing, or moved into the
    /// directory; `keepup export --to files` restores it. Options: recursive (also record files in
    /// subdirectories, under their relative paths), pattern=*.tif (file names; repeatable; default: all names
    /// except .*, *.tmp, *.part, *.partial and *~), existing=skip|record (files that already exist at the
    /// start), settle=2s (also scan at this interval, and read a file found by a scan once it has not changed
    /// for this long; on by default on network file systems). Files are never changed or removed.
    ///
    /// In the paths of pcap: and dir:, write a comma as two.
    #[arg(long, value_name = "SOURCE", conflicts_with = "listen")]
    from: Vec<SourceAddress>,
    /// Number of series to record, each as a separate run; "all": until stopped
    ///
    /// For detectors with series (zmq://). The connections stay open between runs, so no series is missed.
    /// The run number is appended to --name.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = series,
        conflicts_with_all = ["controlled", "stay"],
    )]
    series: SeriesCount,
    /// Directory on a disk to record to; repeatable [default: ./keepup-data]
    #[arg(long, value_name = "DIR", conflicts_with = "to_null")]
    volume: Vec<PathBuf>,
    /// Seal and checksum blocks, then drop them, to test without a disk
    #[arg(long)]
    to_null: bool,
    /// Profile with block, segment, placement and reductions; may raise --pool
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Directory name of the recording [default: keepup-TIME-ID]
    #[arg(long)]
    name: Option<String>,
    /// Largest accepted event [default: 512 MiB]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    max_event: Option<u64>,
    /// Limit on concurrent connections [default: 1024]
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// Time without a write until a volume leaves rotation
    ///
    /// A volume is taken out of rotation when it has not completed a write for this long while others have.
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "5 s")]
    slow_after: Duration,
    /// Disconnect a peer that does not answer for this long
    ///
    /// If a peer sends nothing for this long, a new connection may take over its streams.
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "5 s")]
    peer_timeout: Duration,
    /// Remove the oldest segments beyond this size or time once they are copied (see --keep-until)
    ///
    /// A size such as "2 TB" or a time such as "3 h".
    #[arg(long, value_parser = keep_limit, value_name = "SIZE|TIME", conflicts_with = "to_null")]
    keep: Option<KeepLimit>,
    /// With --keep, remove segments even if no copy exists
    #[arg(long, requires = "keep")]
    disposable: bool,
    /// Copy required before --keep removes a segment: drained or archived
    ///
    /// drained: all events are durable at another recorder, in a sink or in a directory. archived: an archive
    /// in an object store has confirmed the segment, and all its blocks were intact when they were sent.
    #[arg(long, value_name = "COPY", requires = "keep", conflicts_with_all = ["disposable", "to_null"])]
    keep_until: Option<KeepUntilArg>,
    /// Program to run after each segment is sealed
    ///
    /// The command is split at white space, without quoting and without a shell; the path of the segment is
    /// added as the last argument. Environment: KEEPUP_SEGMENT (path), KEEPUP_DIRECTORY (recording on this
    /// volume), KEEPUP_RECORDING (identity), KEEPUP_VOLUME and KEEPUP_SEGMENT_NUMBER (both from 0),
    /// KEEPUP_SEGMENT_BYTES. A failure is reported as an incident and does not affect the recording. With
    /// --series, the next run starts when all programs have ended, or soon after --after-seal-timeout.
    #[arg(long, value_name = "COMMAND", conflicts_with = "to_null")]
    after_seal: Option<String>,
    /// Time limit for one run of --after-seal
    ///
    /// After this time, the program and its children are killed. After the end of the recording, the limit
    /// applies to all remaining runs together.
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "60 s")]
    #[arg(requires = "after_seal")]
    after_seal_timeout: Duration,
    /// Limit on concurrent runs of --after-seal
    ///
    /// Up to 1024 segments wait for a run; further ones are skipped and counted.
    #[arg(long, value_name = "N", default_value = "2", requires = "after_seal")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=AFTER_SEAL_JOBS_MAX as i64))]
    after_seal_jobs: u16,
    /// File to create when all sockets are bound and packets are recorded
    ///
    /// It contains the process id. With --controlled, it is created when commands are accepted. A service
    /// manager is notified at the same time.
    #[arg(long, value_name = "PATH")]
    ready_file: Option<PathBuf>,
    /// Continue after the last source has ended, until stopped
    #[arg(long)]
    stay: bool,
    /// Client or stream that must end before the recording does; repeatable
    ///
    /// The recording ends when all of these have sent their end and no connection is left. Without this
    /// option it ends when a client has ended, no connection is left, and every client whose connection was
    /// lost has come back and ended.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["stay", "from"])]
    expect: Vec<String>,
    /// Longest wait for clients that are expected or lost their connection [default: until stopped]
    ///
    /// The time counts from the end of the last connection, once a client has ended.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["stay", "from"])]
    return_timeout: Option<Duration>,
    /// Start and stop runs by HTTP commands, until Ctrl-C (see `keepup ctl`)
    #[arg(long, requires = "http")]
    controlled: bool,
    /// Qualification to compare the rate with [with --http: the newest]
    ///
    /// The default with --http is the newest result below `results` from this machine with the same volumes.
    #[arg(long, value_name = "DIR")]
    qualified_by: Option<PathBuf>,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    fleet: fleet::FleetArgs,
    #[command(flatten)]
    detectors: DetectorArgs,
    #[command(flatten)]
    http: HttpArgs,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunFlags,
    #[command(flatten)]
    recording: RecorderArgs,
}

/// Values of `--keep-until`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
#[value(rename_all = "lower")]
enum KeepUntilArg {
    Drained,
    Archived,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    #[cfg(feature = "fleet")]
    if let Some(file) = &args.fleet.fleet {
        return fleet::run(args, file);
    }
    let target = target(args.to_null, &args.volume)?;
    if args.to_null && args.run.is_about_the_recording() {
        return Err(usage("cannot use --run or --meta with --to-null: no recording is written"));
    }
    let settings = RunSettings { name: args.name.clone(), ..args.run.settings()? };
    let listen = if args.from.is_empty() { args.listen.clone() } else { (Ipv4Addr::LOCALHOST, 0).into() };
    let mut config = RecorderConfig::new(listen, target, String::new());
    config.sources.clone_from(&args.from);
    config.segment_auto = true;
    if let Some(profile) = &args.profile {
        config = keepup_workload::detector::recorder_config(&keepup_plan::load(profile)?, &config);
    }
    args.recording.apply(&mut config);
    config.event_bytes_max = args.max_event.unwrap_or(config.event_bytes_max);
    config.connections_max = args.max_connections.unwrap_or(config.connections_max);
    let until = match args.keep_until {
        None | Some(KeepUntilArg::Drained) => KeepUntil::Drained,
        Some(KeepUntilArg::Archived) => KeepUntil::Archived,
    };
    config.keep = args.keep.map(|limit| Keep { limit, disposable: args.disposable, until });
    config.after_seal = after_seal(args)?;
    config.slow_after = args.slow_after;
    config.peer_timeout = args.peer_timeout;
    config.stay = args.stay;
    config.expect.clone_from(&args.expect);
    config.return_timeout = args.return_timeout;
    let volumes = match &config.target {
        Target::Volumes(volumes) => volumes.as_slice(),
        Target::Null => &[],
    };
    let qualified = match &args.qualified_by {
        Some(path) => Some(qualified::read(path, volumes)?),
        None if args.http.http.is_some() => qualified::newest(Path::new(RESULTS), volumes),
        None => None,
    };
    let http = args.http.clone();
    let chain = SeriesChain::new(args.series, &mut config)?;
    let detectors = DetectorControl::connect(&args.detectors, &mut config)?;
    let (controlled, json) = (args.controlled, args.json);
    config.records_early = !controlled;
    let ready_file = args.ready_file.clone();
    let options = RecordOptions { http, qualified, controlled, json, ready_file, chain, detectors };
    record(config, settings, options)
}

/// Command of `--after-seal`.
fn after_seal(args: &Args) -> anyhow::Result<Option<AfterSeal>> {
    let Some(command) = &args.after_seal else { return Ok(None) };
    let search: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let (timeout, jobs) = (args.after_seal_timeout, args.after_seal_jobs.into());
    let found = AfterSeal::parse(command, &search, timeout, jobs);
    let fail = |why: Cause| usage(why.map(|why| format!("cannot use --after-seal {command:?}: {why}")));
    found.map(Some).map_err(fail)
}

/// Options of `record` besides the settings of a run.
#[derive(Default)]
pub(super) struct RecordOptions {
    /// Flags of the live page.
    pub(super) http: HttpArgs,
    /// Qualified rate to compare with.
    pub(super) qualified: Option<Qualified>,
    /// Runs are started by commands, instead of one run at once.
    pub(super) controlled: bool,
    /// Print the report as one JSON object.
    pub(super) json: bool,
    /// File to create when the recorder is ready.
    pub(super) ready_file: Option<PathBuf>,
    /// Runs after the first one.
    pub(super) chain: SeriesChain,
    /// Detectors to control.
    pub(super) detectors: DetectorControl,
}

/// Target of the recording: the given volumes, the default volume or none.
pub(super) fn target(to_null: bool, volumes: &[PathBuf]) -> anyhow::Result<Target> {
    if to_null {
        return Ok(Target::Null);
    }
    Ok(Target::Volumes(volumes_or_default(volumes)?))
}

/// The given name, with the number of the run if several are recorded, or a name of time and id.
pub(super) fn recording_name(given: Option<&str>, id: Id, run: Option<u64>) -> String {
    let compact = |time: String| time.replace(['-', ':'], "").to_lowercase();
    given.map_or_else(
        || {
            format!(
                "keepup-{}-{}",
                compact(keepup_results::rfc3339(SystemClock.unix_ns())),
                &id.to_string()[..6]
            )
        },
        |name| run.map_or_else(|| name.to_owned(), |run| format!("{name}-{run}")),
    )
}

/// Prints the report of a run with further incidents; returns the exit code.
type AccountRun<'a> = &'a dyn Fn(&mut Session, Vec<String>) -> anyhow::Result<Exit>;

/// Records one run with `settings`, or runs controlled by commands, and prints the report of each.
pub(super) fn record(
    mut config: RecorderConfig,
    settings: RunSettings,
    options: RecordOptions,
) -> anyhow::Result<Exit> {
    let RecordOptions {
        http,
        qualified,
        controlled,
        json: prints_json,
        ready_file,
        mut chain,
        mut detectors,
    } = options;
    preflight(&config)?;
    let stop = stop_flag()?;
    let live = serve(&http, &mut config)?;
    let mut session = Session::new(control(config, controlled), live, qualified);
    if !detectors.is_empty() {
        session.end_sources_first();
    }
    let account = |session: &mut Session, incidents: Vec<String>| {
        let report = session.report()?;
        let mut account = report.account(ProcessCpu::now().ns as f64 / 1e9);
        incidents.into_iter().for_each(|incident| account.incidents.push(incident));
        match prints_json {
            true => json(&serde_json::to_value(&account).context("cannot encode the report")?),
            false => print_listing(|style| listing::record(&account, style)),
        }
        Ok(exit(report))
    };
    let is_asked = || stop.load(Ordering::Acquire);
    let ready_file = ready_file.as_deref();
    let recorded = catch_panic(|| {
        if controlled {
            return record_controlled(&mut session, &mut detectors, ready_file, (&is_asked, &account));
        }
        session.start_now(&settings)?;
        session.service.ready(ready_file)?;
        record_series(&mut session, &mut chain, &mut detectors, (&is_asked, &account))
    });
    let exit = recorded.unwrap_or_else(|what| {
        session.fail(&what);
        Err(InternalError::after_panic("record", &what).into())
    })?;
    match detectors.take_failure() {
        Some(failure) => Err(failure.into()),
        None if exit == Exit::Done && detectors.has_failed() => Ok(Exit::Failed),
        None => Ok(exit),
    }
}

/// Records runs controlled by commands, until a signal.
fn record_controlled(
    session: &mut Session,
    detectors: &mut DetectorControl,
    ready_file: Option<&Path>,
    (is_asked, account): (&dyn Fn() -> bool, AccountRun<'_>),
) -> anyhow::Result<Exit> {
    let mut line = StatusLine::new();
    log("waiting for commands: keepup ctl configure");
    session.service.ready(ready_file)?;
    let (mut worst, mut stops, mut is_over) = (Exit::Done, false, false);
    loop {
        let is_asked = is_asked();
        if is_asked {
            session.service.stopping();
        }
        let state = session.poll(&mut line, stops);
        match session.change() {
            Some(RunState::Armed) => session.log_armed(),
            Some(RunState::Sealed | RunState::Error) => {
                session.error().iter().for_each(|why| line.log(&format!("error: {why}")));
                is_over = true;
            }
            Some(state) => {
                line.log(&state.to_string());
                if state == RunState::Recording {
                    session.recorder().into_iter().for_each(|recorder| detectors.start_run(recorder));
                }
            }
            None => {}
        }
        let goes_on = matches!(state, RunState::Armed | RunState::Recording | RunState::Draining);
        let is_ready = detectors.poll(is_asked || session.is_stop_asked(), state, &line);
        // The end of one run is not that of the next, which a command may arm in the next turn.
        stops = is_ready && (goes_on || is_asked);
        if is_over && detectors.is_settled() {
            is_over = false;
            let failure = detectors.take_failure();
            let text = failure
                .as_ref()
                .map(|failure| Cause::of(failure).map(|why| format!("error: {why}")).to_text());
            text.iter().for_each(|text| line.log(text));
            let outcome = account(session, detectors.take_incidents(&line));
            let is_complete =
                matches!(outcome, Ok(Exit::Done)) && failure.is_none() && !detectors.has_failed();
            if worst == Exit::Done && !is_complete {
                worst = Exit::Failed;
            }
        }
        session.hold_commands(is_over);
        if is_asked && !goes_on && !is_over {
            return Ok(worst);
        }
    }
}

/// Records a run, and another one for each series that follows.
fn record_series(
    session: &mut Session,
    chain: &mut SeriesChain,
    detectors: &mut DetectorControl,
    (is_asked, account): (&dyn Fn() -> bool, AccountRun<'_>),
) -> anyhow::Result<Exit> {
    let (mut line, mut worst) = (StatusLine::new(), Exit::Done);
    loop {
        session.recorder().into_iter().for_each(|recorder| detectors.start_run(recorder));
        let mut stops = false;
        loop {
            if stops {
                session.service.stopping();
            }
            let state = session.poll(&mut line, stops);
            stops = detectors.poll(is_asked() || session.is_stop_asked(), state, &line);
            if !matches!(state, RunState::Recording | RunState::Draining) && detectors.is_settled() {
                break;
            }
        }
        let incidents = detectors.take_incidents(&line);
        let is_stopped = is_asked() || session.is_stop_asked();
        let is_last = is_stopped || detectors.wants_end() || !session.has_ended_by_itself();
        if is_last || !chain.advance() {
            drop(line);
            // Of several runs, the last one is often stopped before it begins.
            let last = match session.has_removed() && chain.has_followed() {
                true => Exit::Done,
                false => account(session, incidents)?,
            };
            return Ok(if worst == Exit::Done { last } else { worst });
        }
        if account(session, incidents)? != Exit::Done {
            worst = Exit::Failed;
        }
        session.start_again()?;
    }
}

/// Starts the live page if `--http` is given, with event copies from the recorder's tap.
fn serve(http: &HttpArgs, config: &mut RecorderConfig) -> anyhow::Result<Option<Live>> {
    let tap = http.http.is_some().then(tap::new_tap);
    config.tap.clone_from(&tap);
    let tap = tap.map(|tap| Arc::new(tap::RecorderTap(tap)) as Arc<dyn TapSource>);
    let mut stored = vec![PathBuf::from(RESULTS)];
    if let Target::Volumes(volumes) = &config.target {
        stored.extend(volumes.iter().cloned());
    }
    let page = http.prepare(None, PageContent { commands: true, tap, catalog: Some(catalog(&stored)) })?;
    Ok(page.map(PreparedPage::start).transpose()?)
}

/// Checks the volumes before the first write and warns of an open port.
fn preflight(config: &RecorderConfig) -> anyhow::Result<()> {
    if let Target::Volumes(volumes) = &config.target {
        let kept = match config.keep {
            Some(Keep { limit: KeepLimit::Bytes(bytes), .. }) => bytes / volumes.len().max(1) as u64,
            _ => 0,
        };
        for volume in check(volumes, kept.max(2 * config.segment_bytes))? {
            volume.warnings.iter().for_each(|warning| log(&format!("warning: {warning}")));
        }
        common_disks(volumes).iter().for_each(|warning| log(&format!("warning: {warning}")));
    }
    if !config.listen.is_loopback() {
        log(&format!(
            "warning: {} is reachable from other machines; any of them can write to this recorder",
            config.listen
        ));
    }
    Ok(())
}

fn exit(report: &RecordReport) -> Exit {
    if report.is_complete() { Exit::Done } else { Exit::Failed }
}

/// Applies the reductions of `recorder` to `profile` and validates it.
pub(super) fn with_reductions(mut profile: Profile, recorder: &RecorderConfig) -> anyhow::Result<Profile> {
    profile.reductions.clone_from(&recorder.reductions);
    profile.validate().map_err(|invalid| usage(Cause::of(&invalid)))?;
    Ok(profile)
}

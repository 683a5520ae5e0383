//! `keepup trial`: measurement of the data path at one rate.
mod messages;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum as _;
use keepup_error::Cause;
use keepup_peer::Endpoint;
use keepup_plan::Profile;
use keepup_plan::units::Bytes;
use keepup_recorder::{PlacementKind, RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_results::{Event, RecordRun, RecordSummary};
use keepup_workload::Workload as _;
use keepup_workload::detector::{
    SourceRate, asked_bytes_per_second, events_in, recorder_config, source_plan,
};
use keepup_workload::preflight::{check, check_together, common_disks, usable_bytes_each};
use keepup_workload::record::{DrainSpec, RecordTrial, TrialSpec, Verification, repeat};

use crate::args::{
    Cpus, RecorderArgs, RepeatArgs, byte_rate, cpus, nonzero_duration, size, source_rate, volumes_or_default,
};
use crate::exit::{Exit, usage};
use crate::forecast::{forecast, print_plan};
use crate::generator::GeneratorArgs;
use crate::loads::{self, check_loads};
use crate::output::log;
use crate::protocol::ProtocolArgs;
use crate::verbs::record::with_reductions;
use crate::verbs::test_session::{TestSession, describe_measurement};

/// Default duration of a trial.
const TIME: Duration = Duration::from_secs(10);
/// Longest sampling interval, and number of samples of a trial with a known duration.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
const SAMPLES: u32 = 100;
/// Share of the free space that a trial at full speed may fill. Blocks are a little larger than their
/// payload.
const FILL_SHARE: f64 = 0.8;

/// Record at one rate and report throughput, losses and CPU cost
///
/// Runs source, recorder and drain in production configuration over loopback, and removes the recording
/// afterwards. With --source the source runs on another machine. `keepup qualify` runs such trials to find
/// the highest rate; this command runs a single one.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup trial csl --volume /data/a
  keepup trial csl --rate max --events 20000 --volume /data/a --repeats 5
  keepup trial csl --rate max --events 20000 --to-null
  keepup trial romanis --streams 508 --event '64 KiB' --rate max --events 100000 \\
    --volume /data/a --volume /data/b --volume /data/c --placement pinned --read-back
  keepup trial csl --rate '80 MB/s' --drain '20 MB/s' --load net=50MB/s --out results")]
pub(crate) struct Args {
    /// Built-in profile (see `keepup profile list`) or path of a profile file
    profile: String,
    /// Rate: "80 MB/s", "305 /s" or "max" [default: the profile's]
    #[arg(long, value_parser = source_rate, value_name = "RATE")]
    rate: Option<SourceRate>,
    /// Duration [default: 10s, or until --events]
    #[arg(long, value_parser = nonzero_duration, value_name = "TIME", conflicts_with = "events")]
    time: Option<Duration>,
    /// Number of events to send, over all streams
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// Payload size of every event [default: the profile's]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    event: Option<u64>,
    /// Number of streams [default: the profile's]
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// Number of connections for the streams [default: the profile's]
    #[arg(long, value_name = "N")]
    connections: Option<u32>,
    /// Directory on a disk to record to; repeatable [default: ./keepup-data]
    #[arg(long, value_name = "DIR", conflicts_with = "to_null")]
    volume: Vec<PathBuf>,
    /// Seal and checksum blocks, then drop them, to test without a disk
    #[arg(long, conflicts_with_all = ["read_back", "drain", "no_verify"])]
    to_null: bool,
    /// Also report the time of the first N events
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    first: u64,
    /// Also measure reading the recording back
    ///
    /// The caches are cold. Each volume has one thread, which reads stream by stream in order.
    #[arg(long)]
    read_back: bool,
    /// Skip the verification of all recorded data
    #[arg(long)]
    no_verify: bool,
    /// Drain concurrently at this rate, such as "20 MB/s", and drop the data
    #[arg(long, value_parser = byte_rate, value_name = "RATE")]
    drain: Option<f64>,
    #[command(flatten)]
    generator: GeneratorArgs,
    #[command(flatten)]
    protocol: ProtocolArgs,
    /// CPUs of the source threads, on the machine of the source, such as "1" [default: any]
    #[arg(long, value_parser = cpus, value_name = "LIST")]
    source_cpus: Option<Cpus>,
    #[command(flatten)]
    recording: RecorderArgs,
    #[command(flatten)]
    runs: RepeatArgs,
}

/// Plan of a trial.
struct Plan {
    profile: Profile,
    volumes: Vec<PathBuf>,
    spec: TrialSpec,
    asked_bytes_per_second: Option<f64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut plan = plan(args)?;
    let load_plan = args.runs.loads.plan()?;
    let footprint = RecordTrial::new(plan.spec.clone()).plan();
    let each = footprint.space_bytes.values().max().copied().unwrap_or(0);
    for checked in check_together(&plan.volumes, each)? {
        checked.warnings.iter().for_each(|warning| log(&format!("warning: {warning}")));
    }
    common_disks(&plan.volumes).iter().for_each(|warning| log(&format!("warning: {warning}")));
    let time = plan.spec.source.duration.map(|time| time * args.runs.repeats);
    let text = std::iter::once(messages::plan(&plan, args.runs.repeats, &footprint)).chain(check_loads(
        &load_plan,
        &footprint.space_bytes,
        time,
    )?);
    let text = text.collect::<Vec<_>>().join("\n");
    let output = &args.runs.output;
    if output.dry_run {
        print_plan(&forecast(&footprint.times(args.runs.repeats), &load_plan, text), output.json);
        return Ok(Exit::Done);
    }
    log(&text);
    plan.spec.generator = args.generator.connect(&plan.spec.generator)?;
    let mut session =
        TestSession::<RecordSummary>::start("record", settings(args, &plan), &plan.volumes, output)?;
    plan.spec.recorder.name = format!("keepup-trial-{}", session.id());
    describe_measurement(&plan.volumes, &plan.spec.recorder.name);
    let (samples, received) = channel();
    let mut context = session.context();
    // Sending fails only after the receiver is dropped at the end.
    context.sample = Box::new(move |t_ms, values| drop(samples.send((t_ms, values))));
    let mut loads = loads::start(&load_plan, session.id(), &session.stop)?;
    let repeats = args.runs.repeats;
    let mut on_run = |run: &RecordRun| {
        let begin_ms = (run.begin_seconds * 1e3) as u64;
        let samples: Vec<(u64, BTreeMap<String, f64>)> = received.try_iter().collect();
        for (t_ms, values) in samples {
            session.log_event(|t_unix_ns| Event::Sample { t_unix_ns, t_ms: begin_ms + t_ms, values });
        }
        session.log_event(|t_unix_ns| Event::RecordRun { t_unix_ns, run: Box::new(run.clone()) });
        if !output.json {
            log(&messages::ended(run, repeats));
        }
    };
    let asked = plan.asked_bytes_per_second;
    let done = repeat(&plan.spec, asked, repeats, &mut loads, &mut context, &mut on_run);
    drop(loads);
    let is_whole = done.runs.iter().all(RecordRun::is_whole);
    session.summary.runs = done.runs;
    let failure = done.failure.map(anyhow::Error::from);
    let exit = session.end(failure, done.is_interrupted)?;
    Ok(if exit == Exit::Done && !is_whole { Exit::Failed } else { exit })
}

/// Plan from the flags, with defaults from the profile.
fn plan(args: &Args) -> anyhow::Result<Plan> {
    let volumes = volumes(args)?;
    let mut profile = keepup_plan::load(&args.profile)?;
    if let Some(bytes) = args.event {
        profile = profile.with_events_of(Bytes(bytes));
    }
    if let Some(streams) = args.streams {
        profile = profile.with_streams(streams);
    }
    profile.connections = args.connections.unwrap_or(profile.connections);
    let profile = profile.on_volumes(u32::try_from(volumes.len().max(1)).unwrap_or(u32::MAX));
    profile.validate().map_err(|invalid| usage(Cause::of(&invalid)))?;
    let recorder = recorder(args, &profile, &volumes)?;
    let profile = with_reductions(profile, &recorder)?;
    let rate = args.rate.unwrap_or(SourceRate::Profile);
    let mut source = source_plan(&profile, rate, Some(args.time.unwrap_or(TIME)));
    source.cpus = args.source_cpus.clone().unwrap_or_default().0;
    let has_place = args.generator.place_of_files(&volumes).is_some();
    let protocol = args.protocol.of_trial(&source, &profile, args.generator.is_remote(), has_place);
    let generator = args.generator.local(protocol, args.protocol.keep_files(), &volumes)?;
    let mut source = source.in_protocol(protocol);
    source.events = args.events;
    if args.events.is_some() {
        source.duration = None;
    } else if rate == SourceRate::Max && !volumes.is_empty() {
        // The amount of data at full speed is unknown, so limit it to the free space.
        let free_bytes = usable_bytes_each(&check(&volumes, 0)?).saturating_sub(2 * recorder.segment_bytes);
        let bytes = (free_bytes as f64 * FILL_SHARE) as u64 * volumes.len() as u64;
        source.events = Some(events_in(&profile, bytes).max(1));
    }
    let sample_every = source.duration.map_or(SAMPLE_EVERY, |time| (time / SAMPLES).min(SAMPLE_EVERY));
    let spec = TrialSpec {
        watcher_slot: None,
        source,
        generator,
        recorder,
        recording: Id::random().context("cannot read random bytes")?,
        drain: args.drain.map(|rate| DrainSpec { rate, to: None }),
        verify: (!args.no_verify).then_some(Verification::Whole),
        read_back: args.read_back,
        cut_off: None,
        first_events: Some(args.first),
        sample_every,
    };
    let asked_bytes_per_second = asked_bytes_per_second(&profile, rate);
    Ok(Plan { profile, volumes, spec, asked_bytes_per_second })
}

/// Volumes to record to; none with --to-null.
fn volumes(args: &Args) -> anyhow::Result<Vec<PathBuf>> {
    if args.to_null { Ok(args.volume.clone()) } else { volumes_or_default(&args.volume) }
}

fn recorder(args: &Args, profile: &Profile, volumes: &[PathBuf]) -> anyhow::Result<RecorderConfig> {
    let target = if args.to_null { Target::Null } else { Target::Volumes(volumes.to_vec()) };
    let base = RecorderConfig::new(Endpoint::from((Ipv4Addr::LOCALHOST, 0)), target, "keepup-trial");
    let mut recorder = recorder_config(profile, &base);
    args.recording.apply(&mut recorder);
    if volumes.len() <= 1 {
        recorder.placement = PlacementKind::Free;
    }
    recorder.validate()?;
    Ok(recorder)
}

/// Settings for the result.
fn settings(args: &Args, plan: &Plan) -> serde_json::Value {
    let Plan { profile, spec, .. } = plan;
    let engine = args.recording.engine.to_possible_value();
    serde_json::json!({
        "profile": profile.to_toml(),
        "volumes": plan.volumes,
        "to_null": args.to_null,
        "rate_bytes_per_second": plan.asked_bytes_per_second,
        "seconds": spec.source.duration.map(|time| time.as_secs_f64()),
        "events": args.events,
        "event_bytes": spec.source.size.max_bytes(),
        "streams": spec.source.streams,
        "connections": spec.source.connections,
        "protocol": spec.source.protocol,
        "first_events": args.first,
        "verify": spec.verify.is_some(),
        "read_back": spec.read_back,
        "drain_bytes_per_second": args.drain,
        "placement": spec.recorder.placement,
        "pool_bytes": spec.recorder.pool_bytes,
        "block_bytes": spec.recorder.block_bytes,
        "segment_bytes": spec.recorder.segment_bytes,
        "depth": spec.recorder.depth,
        "engine": engine.map(|engine| engine.get_name().to_owned()),
        "repeats": args.runs.repeats,
        "loads": args.runs.loads.names(),
        "source": spec.generator.host(),
        "files": spec.generator.file_store().map(|store| {
            serde_json::json!({"below": store.below, "keep_bytes": store.keep_bytes})
        }),
    })
}

//! `keepup trial`: one run of the path that records, at one rate, with a result.
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
use keepup_workload::record::{DrainSpec, RecordTrial, TrialSpec, repeat};

use crate::args::{Cpus, Recording, Runs, byte_rate, cpus, size, some_time, source_rate, volumes_or_default};
use crate::exit::{Exit, usage};
use crate::forecast::{forecast, foretell};
use crate::loads::{self, announce};
use crate::output::say;
use crate::verbs::record::reduced;
use crate::verbs::sitting::Sitting;

/// How long a trial takes unless told otherwise.
const TIME: Duration = Duration::from_secs(10);
/// Pause between two samples at most, and how many there are of a trial whose length is known.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
const SAMPLES: u32 = 100;
/// Share of the room that a trial without a rate may fill: blocks take a little more than their payload.
const ROOM_SHARE: f64 = 0.8;

/// Record once, at one rate, and say what came through and what it cost
///
/// Runs source, recorder and drain as they run in earnest, over loopback, and removes the recording
/// afterwards.
/// `keepup qualify` makes such trials to find the highest rate; this makes the one that is asked for.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  keepup trial csl --volume /data/a
  keepup trial csl --rate max --events 20000 --volume /data/a --repeats 5
  keepup trial csl --rate max --events 20000 --to-null
  keepup trial romanis --streams 508 --event '64 KiB' --rate max --events 100000 \\
    --volume /data/a --volume /data/b --volume /data/c --placement pinned --read-back
  keepup trial csl --rate '80 MB/s' --drain '20 MB/s' --load net=50MB/s --out results")]
pub(crate) struct Args {
    /// A built-in profile (see `keepup profile list`) or the path of a profile file
    profile: String,
    /// "80 MB/s", "305 /s" or "max" [default: the profile's]
    #[arg(long, value_parser = source_rate, value_name = "RATE")]
    rate: Option<SourceRate>,
    /// How long to send [default: 10s, or until --events]
    #[arg(long, value_parser = some_time, value_name = "TIME", conflicts_with = "events")]
    time: Option<Duration>,
    /// How many events to send, of all streams together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// Payload of every event [default: the profile's]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    event: Option<u64>,
    /// Number of streams [default: the profile's]
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// Connections the streams are dealt over [default: the profile's]
    #[arg(long, value_name = "N")]
    connections: Option<u32>,
    /// Directory on the disk to record to; once for each disk [default: ./keepup-data]
    #[arg(long, value_name = "DIR", conflicts_with = "to_null")]
    volume: Vec<PathBuf>,
    /// Seal and checksum blocks, then drop them: the path without the disk
    #[arg(long, conflicts_with_all = ["read_back", "drain", "no_verify"])]
    to_null: bool,
    /// Tell apart how long so many events took, from the first on
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    first: u64,
    /// Read the recording back too: cold, stream by stream, in order, a thread for each volume
    #[arg(long)]
    read_back: bool,
    /// Do not read everything back to check it
    #[arg(long)]
    no_verify: bool,
    /// Read out concurrently, to nowhere, so much payload per second, as in "20 MB/s"
    #[arg(long, value_parser = byte_rate, value_name = "RATE")]
    drain: Option<f64>,
    /// Processors of the source's threads, as in "1" [default: any]
    #[arg(long, value_parser = cpus, value_name = "LIST")]
    source_cpus: Option<Cpus>,
    #[command(flatten)]
    recording: Recording,
    #[command(flatten)]
    runs: Runs,
}

/// What is to be run.
struct Plan {
    profile: Profile,
    volumes: Vec<PathBuf>,
    spec: TrialSpec,
    asked_bytes_per_second: Option<f64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut plan = plan(args)?;
    let beside = args.runs.loads.plan()?;
    let footprint = RecordTrial::new(plan.spec.clone()).plan();
    let each = footprint.space_bytes.values().max().copied().unwrap_or(0);
    for checked in check_together(&plan.volumes, each)? {
        checked.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    }
    common_disks(&plan.volumes).iter().for_each(|warning| say(&format!("warning: {warning}")));
    let time = plan.spec.source.duration.map(|time| time * args.runs.repeats);
    let told = std::iter::once(messages::plan(&plan, args.runs.repeats, &footprint)).chain(announce(
        &beside,
        &footprint.space_bytes,
        time,
    )?);
    let told = told.collect::<Vec<_>>().join("\n");
    let outlet = &args.runs.outlet;
    if outlet.dry_run {
        foretell(&forecast(&footprint.times(args.runs.repeats), &beside, told), outlet.json);
        return Ok(Exit::Done);
    }
    say(&told);
    let mut sitting =
        Sitting::<RecordSummary>::begin("record", settings(args, &plan), &plan.volumes, outlet)?;
    plan.spec.recorder.name = format!("keepup-trial-{}", sitting.id());
    let (samples, seen) = channel();
    let mut context = sitting.context();
    // Nobody listens only when all is over.
    context.sample = Box::new(move |t_ms, values| drop(samples.send((t_ms, values))));
    let mut loads = loads::start(&beside, sitting.id(), &sitting.stop)?;
    let repeats = args.runs.repeats;
    let mut tell = |run: &RecordRun| {
        let begin_ms = (run.begin_seconds * 1e3) as u64;
        let samples: Vec<(u64, BTreeMap<String, f64>)> = seen.try_iter().collect();
        for (t_ms, values) in samples {
            sitting.keep(|t_unix_ns| Event::Sample { t_unix_ns, t_ms: begin_ms + t_ms, values });
        }
        sitting.keep(|t_unix_ns| Event::RecordRun { t_unix_ns, run: Box::new(run.clone()) });
        if !outlet.json {
            say(&messages::ended(run, repeats));
        }
    };
    let asked = plan.asked_bytes_per_second;
    let done = repeat(&plan.spec, asked, repeats, &mut loads, &mut context, &mut tell);
    drop(loads);
    let is_whole = done.runs.iter().all(RecordRun::is_whole);
    sitting.summary.runs = done.runs;
    let failure = done.failure.map(anyhow::Error::from);
    let exit = sitting.end(failure, done.is_interrupted)?;
    Ok(if exit == Exit::Done && !is_whole { Exit::Failed } else { exit })
}

/// What is asked for, with the profile's answers where nothing is said.
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
    let profile = reduced(profile, &recorder)?;
    let rate = args.rate.unwrap_or(SourceRate::Profile);
    let mut source = source_plan(&profile, rate, Some(args.time.unwrap_or(TIME)));
    source.cpus = args.source_cpus.clone().unwrap_or_default().0;
    source.events = args.events;
    if args.events.is_some() {
        source.duration = None;
    } else if rate == SourceRate::Max && !volumes.is_empty() {
        // What comes in the time is not known: no more than there is room for.
        let room = usable_bytes_each(&check(&volumes, 0)?).saturating_sub(2 * recorder.segment_bytes);
        let bytes = (room as f64 * ROOM_SHARE) as u64 * volumes.len() as u64;
        source.events = Some(events_in(&profile, bytes).max(1));
    }
    let sample_every = source.duration.map_or(SAMPLE_EVERY, |time| (time / SAMPLES).min(SAMPLE_EVERY));
    let spec = TrialSpec {
        watcher_slot: None,
        source,
        recorder,
        recording: Id::random().context("cannot read random bytes")?,
        drain: args.drain.map(|rate| DrainSpec { rate, to: None }),
        verify: !args.no_verify,
        read_back: args.read_back,
        first_events: Some(args.first),
        sample_every,
    };
    let asked_bytes_per_second = asked_bytes_per_second(&profile, rate);
    Ok(Plan { profile, volumes, spec, asked_bytes_per_second })
}

/// Where to record to: nowhere with --to-null.
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

/// The plan as the result keeps it.
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
        "first_events": args.first,
        "verify": spec.verify,
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
    })
}

//! Part of a recorder: a trial with a source on another host.
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use keepup_peer::Endpoint;
use keepup_plan::{Profile, ProfileError};
use keepup_qualify::bottleneck::Evidence;
use keepup_qualify::judge::{self, TrialRequest};
use keepup_qualify::run_space::usable_bytes;
use keepup_qualify::run_time::CUT_OFF;
use keepup_recorder::{PlacementKind, RecorderConfig, Target};
use keepup_recording::id::Id;
use keepup_workload::detector::{SourceRate, recorder_config, source_plan};
use keepup_workload::net::{NetServer, RemoteSource};
use keepup_workload::preflight::{check_together, usable_bytes_each};
use keepup_workload::record::{DrainSpec, RecordTrial, TrialMeasured, TrialSpec, Verification};
use keepup_workload::{Context, Workload as _};

use super::plan::{ReadBack, RecorderPlan, SECONDS_MAX};
use super::setting::{Setting, text};
use super::total::Outcome;
use crate::host::Done;
use crate::part::PartControl;

/// Time for the source to be ready, and time between attempts.
const SOURCE_TIME: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_millis(100);
/// Longest sampling interval, and samples of a trial.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
const SAMPLES: u32 = 100;

/// Prepares, waits for the start, records; returns the [`Outcome`] as JSON.
pub(super) fn record(
    plan: &RecorderPlan,
    setting: &Setting,
    control: &PartControl,
) -> Result<String, String> {
    let (spec, usable_bytes) = spec(plan, setting, control)?;
    let mut context = context(setting, control);
    let mut trial = RecordTrial::new(spec.clone());
    let measured = run(&mut trial, setting, control, &mut context);
    let cleaned = trial.clean_up().map_err(|error| text(&error));
    let start_ns = measured?;
    cleaned?;
    let measured = trial.measured().map_err(|error| text(&error))?;
    let outcome = outcome(plan, &measured, (&spec, usable_bytes), start_ns);
    serde_json::to_string(&outcome).map_err(|error| format!("cannot write the result: {error}"))
}

fn outcome(
    plan: &RecorderPlan,
    measured: &TrialMeasured,
    (spec, usable_bytes): (&TrialSpec, Option<f64>),
    start_ns: u64,
) -> Outcome {
    let began_ns = measured.begin_ns + measured.lead_ns;
    let late_ns = i128::from(began_ns) - i128::from(start_ns);
    let duration = Duration::from_secs_f64(plan.seconds);
    let drain_rate = plan.drain.map(|drain| drain.rate);
    let asked = TrialRequest { rate: plan.rate, duration, drain_rate };
    let judged = judge::outcome(&asked, measured, measured.elapsed_ns as f64 / 1e9);
    let failed = judge::first_failed(&judged).is_some() && !judged.generator_limited;
    Outcome {
        run: measured.run(spec, plan.rate),
        start_delay_seconds: late_ns as f64 / 1e9,
        evidence: Evidence::of(measured, plan.rate, judge::drain_behind(&asked, measured), failed),
        judged,
        is_throttled: judge::is_throttled(measured),
        drain_failure: measured.drain_failure.clone(),
        drain_bytes_per_second: drain_rate.and_then(|_| judge::drain_rate(&measured.samples)),
        usable_bytes,
        file_bytes: measured.file_bytes,
    }
}

/// The steps of the trial; returns the agreed start, ns on the clock.
fn run(
    trial: &mut RecordTrial,
    setting: &Setting,
    control: &PartControl,
    context: &mut Context,
) -> Result<u64, String> {
    trial.prepare(context).map_err(|error| text(&error))?;
    // The recorder asks its source to connect; nobody else needs its address.
    let address = (Ipv4Addr::UNSPECIFIED, 0).into();
    control.report(Done::Prepared { run: control.run, address: Some(address) });
    let start_ns = wait(setting, control)?;
    trial.measure(context).map_err(|error| text(&error))?;
    trial.drain(context).map_err(|error| text(&error))?;
    // An early end must not wait for a long verification: the controller has a deadline.
    if !control.is_stopped() {
        trial.verify(context).map_err(|error| text(&error))?;
    }
    Ok(start_ns)
}

/// Waits until the agreed start; returns it.
fn wait(setting: &Setting, control: &PartControl) -> Result<u64, String> {
    let until = control.wait().ok_or("ended before the start")?;
    let start_ns = setting.clock.now_ns().saturating_add(until.as_nanos() as u64);
    setting.clock.sleep_until_ns(start_ns);
    Ok(start_ns)
}

fn context(setting: &Setting, control: &PartControl) -> Context {
    Context {
        clock: Arc::clone(&setting.clock),
        stop: control.stop_flag(),
        sample: Box::new(|_, _| ()),
        note: Box::new(|_| ()),
    }
}

/// The trial, after its plan was checked: it comes from the network. Also returns the payload that its
/// volumes can take, bytes.
fn spec(
    plan: &RecorderPlan,
    setting: &Setting,
    control: &PartControl,
) -> Result<(TrialSpec, Option<f64>), String> {
    let profile = profile(&plan.profile)?;
    let rates = [plan.rate, plan.drain.map(|drain| drain.rate)];
    let is_rate = rates.into_iter().flatten().all(|rate| rate > 0.0 && rate.is_finite());
    if !(plan.seconds > 0.0 && plan.seconds <= SECONDS_MAX && is_rate) {
        let rate = plan.rate.unwrap_or_default();
        return Err(format!("a trial of {} s at {rate} bytes/s is out of range", plan.seconds));
    }
    let time = Duration::from_secs_f64(plan.seconds);
    let recording = Id::random().map_err(|error| format!("cannot read random bytes: {error}"))?;
    let (recorder, usable_bytes) = recorder(&profile, plan, (setting, recording))?;
    let rate = plan.rate.map_or(SourceRate::Max, SourceRate::Bytes);
    let mut source = source_plan(&profile, rate, Some(time));
    if plan.rate.is_none() {
        // Nothing else bounds what an unthrottled source writes.
        let bytes = usable_bytes.into_iter().chain(plan.bytes_max).reduce(f64::min);
        source.events = bytes.map(|bytes| (bytes / profile.event.mean_bytes()) as u64);
    }
    let spec = TrialSpec {
        watcher_slot: Some(setting.watcher.clone()),
        source,
        generator: Arc::new(connect(plan, setting, control)?),
        recorder,
        recording,
        drain: plan.drain.map(|drain| DrainSpec { rate: drain.rate, to: drain.to.map(Into::into) }),
        verify: verification(plan)?,
        read_back: false,
        cut_off: plan.cut_off.then_some(CUT_OFF),
        first_events: None,
        sample_every: (time / SAMPLES).min(SAMPLE_EVERY),
    };
    Ok((spec, usable_bytes))
}

fn verification(plan: &RecorderPlan) -> Result<Option<Verification>, String> {
    Ok(match plan.check {
        _ if plan.volumes.is_empty() => None,
        ReadBack::None => None,
        ReadBack::Whole => Some(Verification::Whole),
        ReadBack::Sample(seconds) => {
            let time = Duration::try_from_secs_f64(seconds);
            Some(Verification::Sample(time.map_err(|error| format!("cannot read back: {error}"))?))
        }
    })
}

/// Parses a profile of the controller. It is complete: no other one is read for it.
pub(super) fn profile(toml: &str) -> Result<Profile, String> {
    let extended = |name: &str| Err(ProfileError::Unknown { name: name.to_owned(), close: Vec::new() });
    keepup_plan::parse(toml, "the plan of the controller", &extended).map_err(|error| text(&error))
}

fn recorder(
    profile: &Profile,
    plan: &RecorderPlan,
    (setting, recording): (&Setting, Id),
) -> Result<(RecorderConfig, Option<f64>), String> {
    let volumes = plan.volumes.iter().map(|volume| setting.directories.check(volume));
    let volumes = volumes.collect::<Result<Vec<_>, _>>()?;
    let bytes = plan.rate.unwrap_or_default() * plan.seconds / volumes.len().max(1) as f64;
    let checked = check_together(&volumes, bytes as u64).map_err(|error| text(&error))?;
    let few = volumes.len() <= 1;
    let target = if volumes.is_empty() { Target::Null } else { Target::Volumes(volumes) };
    let name = format!("keepup-fleet-trial-{recording}");
    let mut config =
        recorder_config(profile, &RecorderConfig::new((Ipv4Addr::LOCALHOST, 0).into(), target, &name));
    if few {
        config.placement = PlacementKind::Free;
    }
    config.validate().map_err(|error| text(&error))?;
    let count = checked.len();
    let usable = usable_bytes(config.placement, profile.streams, count, usable_bytes_each(&checked));
    Ok((config, (count > 0).then_some(usable)))
}

/// Connects to the source, which may not be ready yet.
fn connect(plan: &RecorderPlan, setting: &Setting, control: &PartControl) -> Result<RemoteSource, String> {
    let endpoint: Endpoint = plan.source.parse().map_err(|error| format!("{}: {error}", plan.source))?;
    let until_ns = setting.clock.now_ns().saturating_add(SOURCE_TIME.as_nanos() as u64);
    loop {
        let server =
            NetServer { endpoint: endpoint.clone(), credentials: setting.credentials.clone(), name: None };
        let error = match RemoteSource::connect(server, Arc::clone(&setting.clock)) {
            Ok(source) => return Ok(source),
            Err(error) => error,
        };
        let now_ns = setting.clock.now_ns();
        if now_ns >= until_ns || control.is_stopped() {
            return Err(text(&error));
        }
        setting.clock.sleep_until_ns(now_ns + RETRY.as_nanos() as u64);
    }
}

//! Settings and cost estimate of a qualification.
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_plan::Profile;
use keepup_recorder::report::Ended;
use keepup_recorder::watch::WatcherSlot;
use keepup_recorder::{PlacementKind, Recorder, RecorderConfig, RecorderError, Target};
use keepup_recording::id::Id;
use keepup_stream::source::{Protocol, SourcePlan};
use keepup_workload::WorkloadError;
use keepup_workload::detector::{SourceRate, source_plan};
use keepup_workload::load::LoadPlan;
use keepup_workload::preflight::{Checked, check};
use keepup_workload::record::Generator;

use crate::QualifyError;
use crate::run_time::{Lengths, RunTime};
use crate::search::SearchPlan;

/// Share of the bytes of search and soaks that is kept for soaks.
const SOAK_SHARE: f64 = 0.5;
/// Largest share of the byte limit that is kept for counter-trials.
const COUNTER_SHARE: f64 = 0.3;
/// Counter-trials without a schedule may be faster than the unthrottled trial by this factor.
pub(crate) const COUNTER_MARGIN: f64 = 1.1;
/// Default limit of bytes written: search, three soaks and counter-trials at 2 GB/s.
pub const WRITE_BYTES_MAX: u64 = 400_000_000_000;
/// Connection timeout of a sink.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum useful soak, seconds.
const SOAK_SECONDS_MIN: f64 = 2.0;

/// Checks a soak time set by the user.
///
/// # Errors
/// A soak that is too short to prove anything.
pub fn check_soak(time: Duration) -> Result<Duration, QualifyError> {
    if time.as_secs_f64() >= SOAK_SECONDS_MIN {
        return Ok(time);
    }
    let what = format!("cannot soak for {} s: at least {SOAK_SECONDS_MIN} s", time.as_secs_f64());
    Err(QualifyError::Settings {
        what: Cause::new(what).with_hint("--soak '30 s', the default without --quick"),
        environment: false,
    })
}

/// Settings of one qualification.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The detector.
    pub profile: Profile,
    /// Target directories, one per disk.
    pub volumes: Vec<PathBuf>,
    /// Short search.
    pub quick: bool,
    /// Write until the rate is steady before the search.
    pub until_steady: bool,
    /// Soak time, if not the default.
    pub soak: Option<Duration>,
    /// Limit of bytes written, over all volumes and trials.
    pub write_bytes_max: u64,
    /// Rated endurance of each volume, bytes written; empty if not stated.
    pub endurance: Vec<u64>,
    /// Remote sink of the concurrent drain.
    pub drain_to: Option<Endpoint>,
    /// Recorder configuration from profile and flags; target and name are replaced.
    pub recorder: RecorderConfig,
    /// What runs the source: this machine or another.
    pub generator: Arc<dyn Generator>,
    /// CPUs of the source's threads, on the machine of the source.
    pub source_cpus: Vec<usize>,
    /// Protocol of the source.
    pub protocol: Protocol,
    /// Background loads during all measurements.
    pub loads: LoadPlan,
    /// Command line, for the record.
    pub command: String,
    /// Directory for results.
    pub results: PathBuf,
    /// Version of the tool.
    pub tool_version: String,
    /// Receives the live counters of the running trial's recorder.
    pub watcher_slot: Option<WatcherSlot>,
}

/// Cost of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Bytes written at most, over all volumes.
    pub bytes_written: u64,
    /// Time if the first soak holds, seconds.
    pub seconds: f64,
    /// Time if soaks fail, seconds.
    pub seconds_max: f64,
    /// Maximum space used on all volumes together, bytes.
    pub space_bytes: u64,
}

impl Settings {
    /// Durations of the parts.
    pub fn lengths(&self) -> Lengths {
        Lengths::new(self.quick)
    }

    /// Required rate of the profile, bytes per second.
    pub fn required(&self) -> f64 {
        self.profile.required_bytes_per_second()
    }

    /// Recorder configuration of every trial.
    pub fn recorder(&self, name: String) -> RecorderConfig {
        let mut config = self.recorder.clone();
        config.target = Target::Volumes(self.volumes.clone());
        config.name = name;
        if self.volumes.len() == 1 {
            config.placement = PlacementKind::Free;
        }
        config
    }

    /// Source settings of a trial.
    pub fn source(&self, rate: SourceRate, duration: Duration) -> SourcePlan {
        let mut plan = source_plan(&self.profile, rate, Some(duration));
        plan.cpus.clone_from(&self.source_cpus);
        match rate {
            // Without flow control, full speed would measure what the kernel drops: the path must set the
            // pace.
            SourceRate::Max if !self.protocol.has_flow_control() => plan,
            _ => plan.in_protocol(self.protocol),
        }
    }

    /// Checks the volumes; returns the usable space of each.
    pub fn preflight(&self) -> Result<Vec<Checked>, QualifyError> {
        Ok(check(&self.volumes, self.space_bytes_min())?)
    }

    /// Checks profile, volumes, sink and recorder before anything is measured. `identity` is
    /// random.
    ///
    /// # Errors
    /// An unusable profile, soak time, volume, sink or recorder configuration.
    pub fn preflight_all(&self, identity: Id, clock: &Arc<dyn Clock>) -> Result<(), QualifyError> {
        self.profile.validate()?;
        self.soak.map(check_soak).transpose()?;
        self.preflight()?;
        self.try_sink()?;
        self.try_recorder(identity, clock)
    }

    /// Starts and stops a recorder, so that unavailable memory, volumes, engine or CPUs are found
    /// early.
    fn try_recorder(&self, identity: Id, clock: &Arc<dyn Clock>) -> Result<(), QualifyError> {
        let name = format!("keepup-qualify-{}-000", &identity.to_string()[..8]);
        let mut config = self.recorder(name);
        config.listen = SocketAddr::from((self.generator.reach().listen, 0)).into();
        let ended = Recorder::arm(config, identity, Arc::clone(clock)).and_then(Recorder::disarm);
        match ended.map_err(WorkloadError::from)? {
            Ended::VolumesFailed(why) | Ended::SourceFailed(why) => {
                Err(WorkloadError::from(RecorderError::Ended { why: Cause::from_text(&why) }).into())
            }
            Ended::EndOfRun | Ended::Stopped => Ok(()),
        }
    }

    /// Test connection to the drain's sink, if the profile has a drain.
    fn try_sink(&self) -> Result<(), QualifyError> {
        let Some(to) = self.drain_to.as_ref().filter(|_| self.profile.drain.is_some()) else { return Ok(()) };
        match to.try_each(|address| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)) {
            Ok(_) => Ok(()),
            Err(error) => Err(QualifyError::Settings {
                what: Cause::new(format!("cannot connect to the sink {to}: {error}"))
                    .with_hint("start it with keepup sink --to-null --stay"),
                environment: true,
            }),
        }
    }

    /// Minimum space on each volume, bytes.
    pub fn space_bytes_min(&self) -> u64 {
        4 * self.recorder(String::new()).segment_bytes
    }

    /// Search plan before the speed of volumes and source is known.
    fn plan(&self, min_rate: f64, max_rate: f64) -> SearchPlan {
        match self.quick {
            true => SearchPlan::quick_qualification(min_rate, max_rate),
            false => SearchPlan::qualification(min_rate, max_rate),
        }
    }

    /// Search plan, once the speed of volumes and source is known.
    ///
    /// The soak is shortened to fit the limits of bytes and space.
    pub fn search(&self, bounds: &Bounds) -> Result<SearchPlan, QualifyError> {
        let mut plan = self.plan(bounds.min_rate, bounds.max_rate);
        let target = self.required() * self.profile.headroom;
        plan.target_rate = Some(target).filter(|&rate| rate <= bounds.max_rate);
        if let Some(burst) = self.profile.burst {
            // A trial must contain whole bursts to have the correct mean rate.
            let period = burst.on.0 + burst.off.0;
            plan.initial_trial = plan.initial_trial.max(period);
            plan.trial = plan.trial.max(2 * period);
            plan.budget = plan.budget.max(6 * plan.trial);
        }
        let rate = bounds.write_rate.min(bounds.max_rate).max(1.0);
        let counter_bytes = COUNTER_MARGIN * rate * self.lengths().counter_trials_s();
        plan.bytes = bounds.bytes_left - counter_bytes.min(COUNTER_SHARE * bounds.bytes_left);
        plan.search_bytes = (1.0 - SOAK_SHARE) * plan.bytes;
        plan.trial_bytes = bounds.usable_bytes;
        let soak_bytes = (plan.bytes - plan.search_bytes).min(plan.trial_bytes);
        let soak_s = soak_bytes / rate;
        match self.soak {
            Some(asked) if asked.as_secs_f64() > soak_s => {
                return Err(QualifyError::Settings {
                    what: Cause::new(format!(
                        "cannot soak for {:.0} s: it may write {:.0} GB and {:.0} GB may be used",
                        asked.as_secs_f64(),
                        rate * asked.as_secs_f64() / 1e9,
                        soak_bytes / 1e9
                    ))
                    .with_hint("a shorter --soak, more space, or a larger --max-write"),
                    environment: true,
                });
            }
            Some(asked) => plan.soak = asked,
            None => plan.soak = plan.soak.min(Duration::from_secs_f64(soak_s)),
        }
        let first_bytes = plan.initial_trial.as_secs_f64() * bounds.max_rate;
        let trial_bytes = first_bytes.max(plan.trial.as_secs_f64() * rate);
        let is_too_little = trial_bytes > plan.search_bytes.min(plan.trial_bytes);
        if plan.soak.as_secs_f64() < SOAK_SECONDS_MIN || is_too_little {
            return Err(QualifyError::Settings {
                what: Cause::new(format!(
                    "cannot search and soak: {:.1} GB may be written, too little at {:.0} MB/s",
                    plan.bytes / 1e9,
                    rate / 1e6
                ))
                .with_hint("a larger --max-write, or more space on the volume"),
                environment: true,
            });
        }
        Ok(plan)
    }

    /// Length of soaks that neither bytes nor space shorten.
    pub(crate) fn soak_planned(&self) -> Duration {
        self.soak.unwrap_or_else(|| self.plan(1.0, 1.0).soak)
    }

    /// Cost of the run, before anything is known about the machine.
    pub fn cost(&self, usable_bytes: u64) -> Cost {
        let plan = SearchPlan { soak: self.soak_planned(), ..self.plan(1.0, 1.0) };
        let time = RunTime::new(&plan, &self.lengths(), self.volumes.len(), self.until_steady);
        Cost {
            bytes_written: self.write_bytes_max,
            seconds: time.seconds,
            seconds_max: time.seconds_max,
            space_bytes: self.write_bytes_max.min(usable_bytes),
        }
    }
}

/// Results of the ceilings and the unthrottled trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lowest rate to try.
    pub min_rate: f64,
    /// Highest rate to try.
    pub max_rate: f64,
    /// Whether the source limits the highest rate.
    pub source_bound: bool,
    /// Maximum throughput of the volumes.
    pub write_rate: f64,
    /// Payload from the source that fits the volumes, bytes.
    pub usable_bytes: f64,
    /// Payload from the source that may still be written, bytes.
    pub bytes_left: f64,
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;

//! What a qualification is told, and what it will cost, before anything is touched.
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_plan::Profile;
use keepup_recorder::report::Ended;
use keepup_recorder::watch::Spotlight;
use keepup_recorder::{PlacementKind, Recorder, RecorderConfig, RecorderError, Target};
use keepup_recording::id::Id;
use keepup_stream::source::SourcePlan;
use keepup_workload::WorkloadError;
use keepup_workload::detector::{SourceRate, source_plan};
use keepup_workload::load::LoadPlan;
use keepup_workload::preflight::{Checked, check};

use crate::QualifyError;
use crate::search::SearchPlan;

/// Share of the bytes allowed that the soak may take; the search has the rest.
const SOAK_SHARE: f64 = 0.5;
/// Bytes written at most unless told otherwise.
pub const WRITE_BYTES_MAX: u64 = 200_000_000_000;
/// Reading back takes about this many times as long as the soak that wrote.
const READ_BACK: f64 = 2.0;
/// A sink that has not answered by then is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A soak shorter than this proves nothing, in seconds.
pub const SOAK_SECONDS_MIN: f64 = 2.0;

/// Settings of one qualification.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The detector.
    pub profile: Profile,
    /// Where to record to, one directory per disk.
    pub volumes: Vec<PathBuf>,
    /// A first look instead of the whole search.
    pub quick: bool,
    /// Length of the soak, when not the usual.
    pub soak: Option<Duration>,
    /// Bytes written at most, over all volumes and trials.
    pub write_bytes_max: u64,
    /// A sink elsewhere for the concurrent read-out.
    pub drain_to: Option<Endpoint>,
    /// How the recorder is set up, profile and flags included; target and name are replaced.
    pub recorder: RecorderConfig,
    /// Processors of the source's threads.
    pub source_cpus: Vec<usize>,
    /// What runs beside everything that is measured.
    pub loads: LoadPlan,
    /// The command as it was given, for the record.
    pub command: String,
    /// Where the result's directory goes.
    pub results: PathBuf,
    /// Version of the tool.
    pub tool_version: String,
    /// Where the recorder of the trial under way can be looked at.
    pub spotlight: Option<Spotlight>,
}

/// Lengths of everything but the search and the soak.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Each ceiling.
    pub ceiling: Duration,
    /// The trial without a schedule, and the one that proves the next limit.
    pub saturated: Duration,
}

/// Time for the search and for each soak, in seconds, and how many soaks.
struct SearchSeconds {
    search: f64,
    soak: f64,
    soaks_max: u32,
}

/// What it will cost, at most.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Bytes written, over all volumes.
    pub bytes_written: u64,
    /// Time, in seconds.
    pub seconds: f64,
    /// Space held at a time on all volumes together, in bytes.
    pub space_bytes: u64,
}

impl Settings {
    /// Lengths of the parts.
    pub fn lengths(&self) -> Lengths {
        let ms = |quick, full| Duration::from_millis(if self.quick { quick } else { full });
        Lengths { ceiling: ms(1000, 2500), saturated: ms(1500, 4000) }
    }

    /// Time for search and soak.
    fn search_seconds(&self) -> SearchSeconds {
        match self.quick {
            true => SearchSeconds { search: 14.0, soak: 6.0, soaks_max: 2 },
            false => SearchSeconds { search: 60.0, soak: 30.0, soaks_max: 3 },
        }
    }

    /// Rate that the profile requires, in bytes per second.
    pub fn required(&self) -> f64 {
        self.profile.required_bytes_per_second()
    }

    /// The recorder of every trial.
    pub fn recorder(&self, name: String) -> RecorderConfig {
        let mut config = self.recorder.clone();
        config.target = Target::Volumes(self.volumes.clone());
        config.name = name;
        if self.volumes.len() == 1 {
            config.placement = PlacementKind::Free;
        }
        config
    }

    /// The source of a trial.
    pub fn source(&self, rate: SourceRate, duration: Duration) -> SourcePlan {
        let mut plan = source_plan(&self.profile, rate, Some(duration));
        plan.cpus.clone_from(&self.source_cpus);
        plan
    }

    /// Checks the volumes and says what each may take.
    pub fn preflight(&self) -> Result<Vec<Checked>, QualifyError> {
        Ok(check(&self.volumes, self.space_bytes_min())?)
    }

    /// Tries everything that can be tried before anything is measured. `identity` is random.
    ///
    /// # Errors
    /// A profile, volumes, a sink or a recorder that cannot work.
    pub fn try_all(&self, identity: Id, clock: &Arc<dyn Clock>) -> Result<(), QualifyError> {
        self.profile.validate()?;
        self.preflight()?;
        self.try_sink()?;
        self.try_recorder(identity, clock)
    }

    /// Starts the recorder of a trial and takes it back: memory, volumes, engine or processors that it cannot
    /// have are known then.
    fn try_recorder(&self, identity: Id, clock: &Arc<dyn Clock>) -> Result<(), QualifyError> {
        let name = format!("keepup-qualify-{}-000", &identity.to_string()[..8]);
        let mut config = self.recorder(name);
        config.listen = SocketAddr::from((config.listen.address().ip(), 0)).into();
        let ended = Recorder::arm(config, identity, Arc::clone(clock)).and_then(Recorder::disarm);
        match ended.map_err(WorkloadError::from)? {
            Ended::VolumesFailed(why) => Err(WorkloadError::from(RecorderError::Ended { why }).into()),
            Ended::EndOfRun | Ended::Stopped => Ok(()),
        }
    }

    /// Connects to the sink of the concurrent read-out, where the profile has one, and closes the connection.
    fn try_sink(&self) -> Result<(), QualifyError> {
        let Some(to) = self.drain_to.as_ref().filter(|_| self.profile.drain.is_some()) else { return Ok(()) };
        match to.try_each(|address| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)) {
            Ok(_) => Ok(()),
            Err(error) => Err(QualifyError::Settings {
                what: format!("cannot connect to the sink {to}: {error}\nhint: keepup sink --to-null --stay"),
                environment: true,
            }),
        }
    }

    /// Least space on each volume, in bytes.
    pub fn space_bytes_min(&self) -> u64 {
        4 * self.recorder(String::new()).segment_bytes
    }

    /// Settings of the search, once it is known how fast the volumes and the source are.
    ///
    /// `write_rate` is the most that the volumes take, `usable_bytes` what they may hold, `written` what
    /// was written already. The soak is shortened so that bytes and space suffice; a soak that the user
    /// asked for is not.
    pub fn search(&self, bounds: &Bounds) -> Result<SearchPlan, QualifyError> {
        let mut plan = match self.quick {
            true => SearchPlan::quick(bounds.min_rate, bounds.max_rate),
            false => SearchPlan::standard(bounds.min_rate, bounds.max_rate),
        };
        let seconds = self.search_seconds();
        (plan.budget, plan.soak) =
            (Duration::from_secs_f64(seconds.search), Duration::from_secs_f64(seconds.soak));
        if !self.quick {
            (plan.trial, plan.sum_trials) = (Duration::from_secs(4), 4);
        }
        plan.second_loss_ratio = None;
        plan.soak_attempts_max = seconds.soaks_max;
        let target = self.required() * self.profile.headroom;
        plan.target_rate = Some(target).filter(|&rate| rate <= bounds.max_rate);
        if let Some(burst) = self.profile.burst {
            // A trial must see whole bursts, or it measures the wrong rate.
            let period = burst.on.0 + burst.off.0;
            plan.initial_trial = plan.initial_trial.max(period);
            plan.trial = plan.trial.max(2 * period);
            plan.budget = plan.budget.max(6 * plan.trial);
        }
        let rate = bounds.write_rate.min(bounds.max_rate).max(1.0);
        let allowed = self.write_bytes_max.saturating_sub(bounds.bytes_written) as f64;
        let soak_bytes = (allowed * SOAK_SHARE).min(bounds.usable_bytes as f64);
        let search_s = allowed * (1.0 - SOAK_SHARE) / rate;
        plan.budget = plan.budget.min(Duration::from_secs_f64(search_s));
        let soak_s = soak_bytes / rate;
        match self.soak {
            Some(asked) if asked.as_secs_f64() > soak_s => {
                return Err(QualifyError::Settings {
                    what: format!(
                        "a soak of {:.0} s may write {:.0} GB and {:.0} GB may be used\n\
                         hint: a shorter --soak, more space, or a larger --max-write",
                        asked.as_secs_f64(),
                        rate * asked.as_secs_f64() / 1e9,
                        soak_bytes / 1e9
                    ),
                    environment: true,
                });
            }
            Some(asked) => plan.soak = asked,
            None => plan.soak = plan.soak.min(Duration::from_secs_f64(soak_s)),
        }
        if plan.soak.as_secs_f64() < SOAK_SECONDS_MIN || plan.budget < plan.trial {
            return Err(QualifyError::Settings {
                what: format!(
                    "{:.1} GB may be written, too little for a search and a soak at {:.0} MB/s\n\
                     hint: a larger --max-write, or more space on the volume",
                    allowed / 1e9,
                    rate / 1e6
                ),
                environment: true,
            });
        }
        Ok(plan)
    }

    /// What the whole run may cost, before anything is known of the machine.
    pub fn cost(&self, usable_bytes: u64) -> Cost {
        let lengths = self.lengths();
        let seconds = self.search_seconds();
        let soak_s = self.soak.map_or(seconds.soak, |s| s.as_secs_f64());
        let ceilings_s = (3.0 + self.volumes.len() as f64) * lengths.ceiling.as_secs_f64();
        let saturated_s = 2.0 * lengths.saturated.as_secs_f64();
        Cost {
            bytes_written: self.write_bytes_max,
            seconds: ceilings_s
                + saturated_s
                + seconds.search
                + (f64::from(seconds.soaks_max) + READ_BACK) * soak_s,
            space_bytes: self.write_bytes_max.min(usable_bytes),
        }
    }
}

/// What was learnt before the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lowest rate worth trying.
    pub min_rate: f64,
    /// Highest rate worth trying.
    pub max_rate: f64,
    /// Whether the source is what keeps higher rates from being tried.
    pub source_bound: bool,
    /// Most that the volumes take.
    pub write_rate: f64,
    /// What the volumes may hold, in bytes.
    pub usable_bytes: u64,
    /// What was written already.
    pub bytes_written: u64,
}

//! Settings and cost estimate of a qualification.
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_plan::Profile;
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
use crate::search_request::{Bounds, SearchRequest, check_soak};

/// Connection timeout of a sink.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
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
        self.check_write_limit()?;
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
        match ended.map_err(WorkloadError::from)?.failure() {
            Some(why) => Err(WorkloadError::from(RecorderError::Ended { why: Cause::from_text(why) }).into()),
            None => Ok(()),
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

    /// What the rate search depends on.
    fn search_request(&self) -> SearchRequest<'_> {
        let counter_s = self.lengths().counter_trials_s();
        SearchRequest { profile: &self.profile, quick: self.quick, soak: self.soak, counter_s }
    }

    /// Checks that the limit of bytes permits an answer.
    ///
    /// # Errors
    /// See [`SearchRequest::check_write_limit`].
    pub fn check_write_limit(&self) -> Result<(), QualifyError> {
        self.search_request().check_write_limit(self.write_bytes_max)
    }

    /// Limit of bytes without one from the user.
    pub fn write_bytes_default(&self) -> u64 {
        self.search_request().write_bytes_default()
    }

    /// Bytes kept for a soak at the target.
    pub(crate) fn reserved_bytes(&self) -> f64 {
        self.search_request().reserved_bytes()
    }

    /// Search plan, once the speed of volumes and source is known.
    ///
    /// # Errors
    /// See [`SearchRequest::plan`].
    pub fn search(&self, bounds: &Bounds) -> Result<SearchPlan, QualifyError> {
        self.search_request().plan(bounds)
    }

    /// Length of soaks that neither bytes nor space shorten.
    pub(crate) fn soak_planned(&self) -> Duration {
        self.search_request().soak_planned()
    }

    /// Cost of the run, before anything is known about the machine.
    pub fn cost(&self, usable_bytes: u64) -> Cost {
        let request = self.search_request();
        let plan = SearchPlan { soak: request.soak_planned(), ..request.unbounded(1.0, 1.0) };
        let time = RunTime::new(&plan, &self.lengths(), self.volumes.len(), self.until_steady);
        Cost {
            bytes_written: self.write_bytes_max,
            seconds: time.seconds,
            seconds_max: time.seconds_max,
            space_bytes: self.write_bytes_max.min(usable_bytes),
        }
    }
}

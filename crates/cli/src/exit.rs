//! Exit codes, and which error ends in which.
use std::process::ExitCode;

use keepup_campaign::{CampaignError, CompareError};
use keepup_live::LiveError;
use keepup_model::ModelError;
use keepup_peer::TokenError;
use keepup_plan::ProfileError;
use keepup_qualify::QualifyError;
use keepup_recorder::RecorderError;
use keepup_recording::error::RecordingError;
use keepup_results::ResultsError;
use keepup_stream::client::ClientError;
use keepup_stream::source::SourceError;
use keepup_workload::net::NetError;
use keepup_workload::register::RegisterError;
use keepup_workload::register::ipbus::IpbusError;
use keepup_workload::replay::ReplayError;
use keepup_workload::replay::trace::TraceError;
use keepup_workload::{VolumeTrouble, WorkloadError};

use crate::token::SharedTokenFile;
use crate::verbs::ctl::CtlError;

/// What `--help` says about exit codes.
pub(crate) const HELP: &str = "\
Exit codes: 0 fit or done; 1 not fit, or data lost or corrupt; 2 usage; 3 refused for safety;
4 this environment cannot test it (no space, no permission, generator too slow); 5 inconclusive;
130 interrupted";

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Fit, or done.
    Done,
    /// Not fit, or data lost or corrupt.
    Failed,
    /// A slip in the command or in a file it names.
    Usage,
    /// Refused because it would not be safe.
    Unsafe,
    /// This environment cannot do it.
    Environment,
    /// The measurement cannot tell.
    Inconclusive,
    /// Interrupted by the user; what was known is kept.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Unsafe => 3,
            Exit::Environment => 4,
            Exit::Inconclusive => 5,
            Exit::Interrupted => 130,
        })
    }
}

impl Exit {
    /// The code for an error, by the first of its causes that is known here.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        error.chain().find_map(Self::of_cause).unwrap_or(Self::Environment)
    }

    fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if let Some(e) = cause.downcast_ref::<QualifyError>() {
            return Some(Self::of_qualify(e));
        }
        if let Some(e) = cause.downcast_ref::<WorkloadError>() {
            return Some(Self::of_workload(e));
        }
        if let Some(e) = cause.downcast_ref::<RecorderError>() {
            return Some(Self::of_recorder(e));
        }
        if let Some(e) = cause.downcast_ref::<SourceError>() {
            return Some(Self::of_source(e));
        }
        if let Some(e) = cause.downcast_ref::<RecordingError>() {
            return Some(Self::of_recording(e));
        }
        if let Some(e) = cause.downcast_ref::<ReplayError>() {
            return Some(Self::of_replay(e));
        }
        if let Some(e) = cause.downcast_ref::<TraceError>() {
            return Some(Self::of_trace(e));
        }
        if let Some(e) = cause.downcast_ref::<CampaignError>() {
            return Some(Self::of_campaign(e));
        }
        if let Some(e) = cause.downcast_ref::<ResultsError>() {
            return Some(Self::of_results(e));
        }
        if let Some(e) = cause.downcast_ref::<LiveError>() {
            return Some(Self::of_live(e));
        }
        if let Some(e) = cause.downcast_ref::<CtlError>() {
            return Some(Self::of_ctl(e));
        }
        if cause.is::<SharedTokenFile>() {
            return Some(Self::Unsafe);
        }
        let usage = cause.is::<ProfileError>()
            || cause.is::<TokenError>()
            || cause.is::<UsageError>()
            || cause.is::<CompareError>()
            || cause.is::<ModelError>();
        usage.then_some(Self::Usage)
    }

    fn of_qualify(error: &QualifyError) -> Self {
        match error {
            QualifyError::Workload(e) => Self::of_workload(e),
            QualifyError::Settings { environment: true, .. }
            | QualifyError::Measure(_)
            | QualifyError::Results(ResultsError::Io { .. }) => Self::Environment,
            QualifyError::Results(_) => Self::Unsafe,
            QualifyError::Settings { .. } | QualifyError::Profile(_) | QualifyError::Search(_) => Self::Usage,
        }
    }

    fn of_workload(error: &WorkloadError) -> Self {
        match error {
            WorkloadError::Volume { trouble: VolumeTrouble::Missing, .. } => Self::Usage,
            WorkloadError::Volume { trouble: VolumeTrouble::Unsafe, .. } => Self::Unsafe,
            WorkloadError::Net(NetError::Spec(_) | NetError::Address { .. } | NetError::Endpoint(_)) => {
                Self::Usage
            }
            WorkloadError::Ipbus(IpbusError::Options(_) | IpbusError::Range { .. })
            | WorkloadError::Register(
                RegisterError::Name { .. } | RegisterError::Span { .. } | RegisterError::Profile { .. },
            ) => Self::Usage,
            WorkloadError::Register(RegisterError::Unsafe { .. })
            | WorkloadError::Ipbus(IpbusError::Exposed { .. }) => Self::Unsafe,
            WorkloadError::Replay(e) => Self::of_replay(e),
            WorkloadError::StatePlan { .. } | WorkloadError::Interface { .. } => Self::Usage,
            WorkloadError::State { .. } | WorkloadError::Reference { .. } => Self::Failed,
            WorkloadError::Recorder(e) => Self::of_recorder(e),
            WorkloadError::Source(e) => Self::of_source(e),
            WorkloadError::Recording(e) => Self::of_recording(e),
            _ => Self::Environment,
        }
    }

    fn of_replay(error: &ReplayError) -> Self {
        match error {
            ReplayError::Trace(e) => Self::of_trace(e),
            ReplayError::Unfit { .. } => Self::Usage,
            ReplayError::Failed { .. } => Self::Environment,
        }
    }

    fn of_campaign(error: &CampaignError) -> Self {
        match error {
            CampaignError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Self::Usage,
            CampaignError::Io { .. } | CampaignError::Run { .. } => Self::Environment,
            CampaignError::Results(ResultsError::Io { .. }) => Self::Environment,
            CampaignError::Results(ResultsError::NotEmpty { .. }) | CampaignError::Running { .. } => {
                Self::Unsafe
            }
            _ => Self::Usage,
        }
    }

    fn of_results(error: &ResultsError) -> Self {
        match error {
            ResultsError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Self::Usage,
            ResultsError::NotAResult { .. }
            | ResultsError::NotASummary { .. }
            | ResultsError::SchemaVersion { .. }
            | ResultsError::BadName { .. } => Self::Usage,
            ResultsError::NotEmpty { .. } | ResultsError::NotADirectory { .. } => Self::Unsafe,
            ResultsError::Summary { .. } | ResultsError::Event { .. } | ResultsError::CutOff { .. } => {
                Self::Failed
            }
            ResultsError::Io { .. } | ResultsError::LogBroken { .. } | ResultsError::Unwritable { .. } => {
                Self::Environment
            }
        }
    }

    fn of_live(error: &LiveError) -> Self {
        match error {
            LiveError::Open { .. } => Self::Unsafe,
            LiveError::Listen { .. } | LiveError::Start { .. } => Self::Environment,
        }
    }

    fn of_recorder(error: &RecorderError) -> Self {
        match error {
            RecorderError::Config { .. } => Self::Usage,
            RecorderError::Recording(e) => Self::of_recording(e),
            RecorderError::Client(e) => Self::of_client(e),
            RecorderError::Listen { .. }
            | RecorderError::Sys(_)
            | RecorderError::Thread { .. }
            | RecorderError::Ended { .. } => Self::Environment,
        }
    }

    /// Of a drain, which loses nothing when the other side goes away: the recording still has everything.
    fn of_client(error: &ClientError) -> Self {
        match error {
            ClientError::Wire(_) => Self::Failed,
            ClientError::NotListening { .. }
            | ClientError::Io { .. }
            | ClientError::Refused { .. }
            | ClientError::Closed { .. }
            | ClientError::TimedOut { .. } => Self::Environment,
        }
    }

    fn of_ctl(error: &CtlError) -> Self {
        match error {
            CtlError::Refused { .. } => Self::Unsafe,
            CtlError::Failed { .. } => Self::Failed,
            CtlError::Unreachable { .. } | CtlError::Answer { .. } => Self::Environment,
        }
    }

    fn of_source(error: &SourceError) -> Self {
        match error {
            SourceError::Plan { .. } => Self::Usage,
            SourceError::Broken { .. } => Self::Failed,
            SourceError::Connect { .. } | SourceError::Thread { .. } => Self::Environment,
        }
    }

    fn of_trace(error: &TraceError) -> Self {
        match error {
            TraceError::Io { source, .. } if source.kind() != std::io::ErrorKind::NotFound => {
                Self::Environment
            }
            TraceError::Bad { .. } => Self::Failed,
            TraceError::Io { .. } | TraceError::Asked { .. } | TraceError::Usage { .. } => Self::Usage,
        }
    }

    fn of_recording(error: &RecordingError) -> Self {
        match error {
            RecordingError::Exists { .. } | RecordingError::Foreign { .. } | RecordingError::Taken { .. } => {
                Self::Unsafe
            }
            RecordingError::NotARecording { .. }
            | RecordingError::Name { .. }
            | RecordingError::VolumeMissing { .. } => Self::Usage,
            RecordingError::Io { .. } => Self::Environment,
            _ => Self::Failed,
        }
    }
}

/// A slip in the command that the argument parser cannot see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

#[cfg(test)]
#[path = "exit_tests.rs"]
mod tests;

//! Exit codes, and the exit code of each error.
use std::borrow::Cow;
use std::process::ExitCode;

use keepup_archive::ArchiveError;
use keepup_campaign::{CampaignError, CompareError};
use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_fleet::FleetError;
use keepup_live::LiveError;
use keepup_measure::MeasureError;
use keepup_model::{EngineError, ModelError, SweepError};
use keepup_peer::{EndpointError, PrefixError, TokenError};
use keepup_plan::units::UnitError;
use keepup_plan::{Invalid, LoadSpecError, ProfileError};
use keepup_qualify::QualifyError;
use keepup_qualify::search::PlanError;
use keepup_recorder::RecorderError;
use keepup_recording::error::RecordingError;
use keepup_recording::layout::LayoutError;
use keepup_registers::RegisterError;
use keepup_registers::ipbus::IpbusError;
use keepup_replay::ReplayError;
use keepup_reproduce::ReproduceError;
use keepup_results::ResultsError;
use keepup_results::live::RunRefusal;
use keepup_simplon::SimplonError;
use keepup_soak::SoakError;
use keepup_sources::capture::CaptureError;
use keepup_sources::{DetectorError, SourceAddressError};
use keepup_stream::client::ClientError;
use keepup_stream::source::SourceError;
use keepup_stream::wire::WireError;
use keepup_sys::SysError;
use keepup_trace::TraceError;
use keepup_workload::WorkloadError;
use keepup_workload::net::NetError;

use crate::ctl_error::CtlError;
use crate::internal_error::InternalError;
use crate::token::SharedTokenFile;

/// Exit codes as listed by `--help`.
pub(crate) const HELP: &str = "\
Exit codes: 0 fit or done; 1 not fit, or data lost or corrupt; 2 usage error; 3 refused for safety;
4 not possible in this environment (no space, no permission, generator too slow, output not written);
5 inconclusive; 6 fit with limits; 130 interrupted";

/// Outcome of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Fit, or done.
    Done,
    /// Not fit, or data lost or corrupt.
    Failed,
    /// Error in the command line or in a file named there.
    Usage,
    /// Refused for safety.
    Unsafe,
    /// Not possible in this environment.
    Environment,
    /// The measurement is inconclusive.
    Inconclusive,
    /// Fit, with limits that the verdict names.
    FitWithLimits,
    /// Interrupted by the user; partial results are kept.
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
            Exit::FitWithLimits => 6,
            Exit::Interrupted => 130,
        })
    }
}

impl From<ErrorClass> for Exit {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Failed => Self::Failed,
            ErrorClass::Usage => Self::Usage,
            ErrorClass::Refused => Self::Unsafe,
            ErrorClass::Environment => Self::Environment,
            ErrorClass::Interrupted => Self::Interrupted,
        }
    }
}

impl Exit {
    /// Whether the command did what was asked.
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Self::Done | Self::FitWithLimits)
    }

    /// Exit code of an error, from the outermost cause that has a class. An error without a class is a failed
    /// system call of this crate.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        let class = error.chain().find_map(diagnostic).map(|found| found.class());
        class.unwrap_or(ErrorClass::Environment).into()
    }
}

/// Hint of the innermost cause that has one.
pub(crate) fn hint(error: &anyhow::Error) -> Option<Cow<'_, str>> {
    error.chain().rev().find_map(|cause| diagnostic(cause)?.hint())
}

/// Class and hint of one cause. The list holds every error type of keepup that can reach `main`.
pub(crate) fn diagnostic<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a dyn Diagnostic> {
    macro_rules! first_of {
        ($($kind:ty),* $(,)?) => {
            None$(.or_else(|| Some(cause.downcast_ref::<$kind>()? as &dyn Diagnostic)))*
        };
    }
    first_of![
        UsageError,
        InternalError,
        SharedTokenFile,
        CtlError,
        FleetError,
        QualifyError,
        PlanError,
        WorkloadError,
        NetError,
        SoakError,
        RegisterError,
        IpbusError,
        ReplayError,
        TraceError,
        CampaignError,
        CompareError,
        ReproduceError,
        ModelError,
        EngineError,
        SweepError,
        LiveError,
        ArchiveError,
        RecorderError,
        RecordingError,
        LayoutError,
        SourceError,
        ClientError,
        WireError,
        ResultsError,
        RunRefusal,
        SysError,
        MeasureError,
        EndpointError,
        CaptureError,
        DetectorError,
        SimplonError,
        SourceAddressError,
        PrefixError,
        TokenError,
        ProfileError,
        Invalid,
        UnitError,
        LoadSpecError,
    ]
}

/// Usage error that the argument parser cannot detect.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) Cause);

impl UsageError {
    /// Creates the error from a text with an optional hint.
    pub(crate) fn new(what: impl Into<Cause>) -> Self {
        Self(what.into())
    }

    /// Copies text and hint of `error`.
    pub(crate) fn of(error: &dyn Diagnostic) -> Self {
        Self(Cause::of(error))
    }
}

impl Diagnostic for UsageError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        self.0.hint()
    }
}

/// Usage error as an `anyhow` error.
pub(crate) fn usage(what: impl Into<Cause>) -> anyhow::Error {
    UsageError::new(what).into()
}

#[cfg(test)]
#[path = "exit_tests.rs"]
mod tests;

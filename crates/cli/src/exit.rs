//! Exit codes, and which error ends in which.
use std::borrow::Cow;
use std::process::ExitCode;

use keepup_campaign::{CampaignError, CompareError};
use keepup_error::{Cause, Diagnostic, ErrorClass};
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
use keepup_reproduce::ReproduceError;
use keepup_results::ResultsError;
use keepup_results::live::RunRefusal;
use keepup_stream::client::ClientError;
use keepup_stream::source::SourceError;
use keepup_stream::wire::WireError;
use keepup_sys::SysError;
use keepup_trace::TraceError;
use keepup_workload::WorkloadError;
use keepup_workload::net::NetError;
use keepup_workload::replay::ReplayError;

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
    /// A mistake in the command or in a file it names.
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

impl From<ErrorClass> for Exit {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Failed => Self::Failed,
            ErrorClass::Usage => Self::Usage,
            ErrorClass::Refused => Self::Unsafe,
            ErrorClass::Environment => Self::Environment,
        }
    }
}

impl Exit {
    /// The code for an error: the class of the outermost cause that has one. An error without a class is the
    /// system's answer to something that the command line itself tried.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        let class = error.chain().find_map(diagnostic).map(|found| found.class());
        class.unwrap_or(ErrorClass::Environment).into()
    }
}

/// Hint of an error: that of the innermost cause that has one.
pub(crate) fn hint(error: &anyhow::Error) -> Option<Cow<'_, str>> {
    error.chain().rev().find_map(|cause| diagnostic(cause)?.hint())
}

/// Class and hint of one cause. Every error type of keepup that can get here is in the list.
pub(crate) fn diagnostic<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a dyn Diagnostic> {
    macro_rules! first_of {
        ($($kind:ty),* $(,)?) => {
            None$(.or_else(|| Some(cause.downcast_ref::<$kind>()? as &dyn Diagnostic)))*
        };
    }
    first_of![
        UsageError,
        SharedTokenFile,
        CtlError,
        QualifyError,
        PlanError,
        WorkloadError,
        NetError,
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
        PrefixError,
        TokenError,
        ProfileError,
        Invalid,
        UnitError,
        LoadSpecError,
    ]
}

/// A mistake in the command that the argument parser cannot see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) Cause);

impl UsageError {
    /// What is wrong, and what helps where that is known.
    pub(crate) fn new(what: impl Into<Cause>) -> Self {
        Self(what.into())
    }

    /// With the text and the hint of `error`.
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

/// A mistake in the command, as an error.
pub(crate) fn usage(what: impl Into<Cause>) -> anyhow::Error {
    UsageError::new(what).into()
}

#[cfg(test)]
#[path = "exit_tests.rs"]
mod tests;

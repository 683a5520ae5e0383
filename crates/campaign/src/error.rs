//! Errors of campaigns.
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_plan::SourceLocation;
use keepup_results::ResultsError;

/// Error of a campaign.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A file cannot be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// Failed operation.
        what: &'static str,
        /// File.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The campaign file is invalid.
    #[error("{place}: {}{reason}", prefix(.key))]
    Invalid {
        /// File and line.
        place: SourceLocation,
        /// Dotted key, empty if the file is not TOML.
        key: String,
        /// Cause.
        reason: Cause,
    },
    /// The directory contains no campaign.
    #[error("cannot open the campaign {}: {why}", path.display())]
    NotACampaign {
        /// Directory.
        path: PathBuf,
        /// Cause.
        why: String,
    },
    /// Another process runs the campaign.
    #[error("cannot run the campaign in {}: process {pid} is running it", path.display())]
    Running {
        /// Directory.
        path: PathBuf,
        /// Process id in the lock file.
        pid: String,
    },
    /// The campaign was changed since it started.
    #[error("cannot resume {}: {why}", path.display())]
    Changed {
        /// Directory.
        path: PathBuf,
        /// Difference.
        why: String,
        /// Remedy.
        hint: &'static str,
    },
    /// Error of the result directory.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The command of a cell cannot be started, or its result cannot be stored.
    #[error("cannot run cell {cell} ({name}): {why}")]
    Run {
        /// Cell number.
        cell: u32,
        /// Name of the cell.
        name: String,
        /// Cause.
        why: String,
    },
}

impl Diagnostic for CampaignError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => ErrorClass::Usage,
            Self::Io { .. } | Self::Run { .. } => ErrorClass::Environment,
            Self::Running { .. } => ErrorClass::Refused,
            Self::Results(error) => of_results(error),
            Self::Invalid { .. } | Self::NotACampaign { .. } | Self::Changed { .. } => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Invalid { reason, .. } => reason.hint(),
            Self::NotACampaign { .. } => Some("use the directory printed by `keepup campaign run`".into()),
            Self::Running { .. } => Some("`keepup campaign status` shows its progress".into()),
            Self::Changed { hint, .. } => Some((*hint).into()),
            Self::Results(error) => error.hint(),
            Self::Io { .. } | Self::Run { .. } => None,
        }
    }
}

/// The command names the directory, so an unsuitable result is a usage error.
fn of_results(error: &ResultsError) -> ErrorClass {
    match error {
        ResultsError::Io { .. } => ErrorClass::Environment,
        ResultsError::NotEmpty { .. } => ErrorClass::Refused,
        ResultsError::NotADirectory { .. }
        | ResultsError::NotAResult { .. }
        | ResultsError::BadName { .. }
        | ResultsError::LogBroken { .. }
        | ResultsError::Summary { .. }
        | ResultsError::Unwritable { .. }
        | ResultsError::NotASummary { .. }
        | ResultsError::CutOff { .. }
        | ResultsError::Event { .. }
        | ResultsError::Changed { .. }
        | ResultsError::SchemaVersion { .. } => ErrorClass::Usage,
    }
}

impl CampaignError {
    /// Adds the operation and the path to an I/O error.
    pub(crate) fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { what, path, source }
    }
}

fn prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

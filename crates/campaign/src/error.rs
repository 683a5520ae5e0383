//! What can go wrong with campaigns.
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use keepup_error::{Cause, Diagnostic, ErrorClass};
use keepup_plan::SourceLocation;
use keepup_results::ResultsError;

/// Why there is no such campaign, or why it cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A file cannot be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The file says something that cannot be.
    #[error("{place}: {}{reason}", prefix(.key))]
    Invalid {
        /// File and line.
        place: SourceLocation,
        /// Dotted key; empty where the text as a whole is no TOML.
        key: String,
        /// What is wrong.
        reason: Cause,
    },
    /// A directory that is no campaign's.
    #[error("cannot open the campaign {}: {why}", path.display())]
    NotACampaign {
        /// The directory.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Another process runs the campaign.
    #[error("cannot run the campaign in {}: another keepup runs it (process {pid})", path.display())]
    Running {
        /// The directory.
        path: PathBuf,
        /// Its number, as it wrote it down.
        pid: String,
    },
    /// The campaign to resume differs from the one that was started.
    #[error("cannot resume {}: {why}", path.display())]
    Changed {
        /// The directory.
        path: PathBuf,
        /// What is different.
        why: String,
        /// What helps.
        hint: &'static str,
    },
    /// The campaign's own result.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// A cell cannot be run at all.
    #[error("cannot run cell {cell} ({name}): {why}")]
    Run {
        /// Its number.
        cell: u32,
        /// What it is.
        name: String,
        /// Why not.
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
            Self::NotACampaign { .. } => Some("name the directory that `keepup campaign run` printed".into()),
            Self::Running { .. } => Some("`keepup campaign status` shows how far it is".into()),
            Self::Changed { hint, .. } => Some((*hint).into()),
            Self::Results(error) => error.hint(),
            Self::Io { .. } | Self::Run { .. } => None,
        }
    }
}

/// A campaign's directory is named in the command, so a result that does not fit is a mistake there.
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
        | ResultsError::SchemaVersion { .. } => ErrorClass::Usage,
    }
}

impl CampaignError {
    /// For `map_err`: what was tried, on which path.
    pub(crate) fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { what, path, source }
    }
}

fn prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}: ") }
}

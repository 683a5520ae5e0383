//! What can go wrong with campaigns.
use std::io;
use std::path::PathBuf;

use keepup_model::ModelError;
use keepup_plan::Place;
use keepup_results::ResultsError;

/// Why there is no such campaign, or why it cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A file cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
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
        place: Place,
        /// Dotted key; empty where the text as a whole is no TOML.
        key: String,
        /// What is wrong, possibly with a hint on a second line.
        reason: String,
    },
    /// No paper has that name.
    #[error(transparent)]
    NoPaper(#[from] ModelError),
    /// A paper cannot be repeated with what was given.
    #[error("cannot repeat {name}: {why}")]
    Paper {
        /// Its name.
        name: String,
        /// Why not, possibly with a hint on a second line.
        why: String,
    },
    /// A directory that is no campaign's.
    #[error(
        "{} holds no campaign: {why}\nhint: name the directory that `keepup campaign run` printed",
        path.display()
    )]
    NotACampaign {
        /// The directory.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Another process runs the campaign.
    #[error(
        "another keepup runs the campaign in {} (process {pid})\n\
         hint: `keepup campaign status` tells how far it is",
        path.display()
    )]
    Running {
        /// The directory.
        path: PathBuf,
        /// Its number, as it wrote it down.
        pid: String,
    },
    /// What was begun is not what would be gone on with.
    #[error("{} cannot be gone on with: {why}\nhint: {hint}", path.display())]
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

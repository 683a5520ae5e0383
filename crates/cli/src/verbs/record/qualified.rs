//! The rate that a stored result says this machine holds, to be compared with the present one.
use std::path::{Path, PathBuf};

use anyhow::Context;
use keepup_measure::environment::Environment;
use keepup_recorder::watch::Qualified;
use keepup_results::{Stored, StoredResult};

use super::usage;

/// Reads the qualified rate of the result at `path`. `volumes` are what is recorded to now.
pub(super) fn qualified(path: &Path, volumes: &[PathBuf]) -> anyhow::Result<Qualified> {
    let stored = StoredResult::open(path).with_context(|| format!("cannot use {}", path.display()))?;
    let Stored::Qualify(summary) = stored.summary else {
        return Err(usage(format!(
            "{} is no result of a qualification\nhint: keepup qualify PROFILE --volume DIR",
            path.display()
        )));
    };
    let Some(bytes_per_second) = summary.qualified_bytes_per_second else {
        return Err(usage(format!("{} has no qualified rate: {}", path.display(), summary.verdict)));
    };
    let mut differs = Vec::new();
    let now = Environment::collect(volumes, Path::new("/"));
    if now.fingerprint() != summary.environment_hash {
        differs.push("machine or settings".into());
    }
    Ok(Qualified { bytes_per_second, result: summary.result_directory, differs })
}

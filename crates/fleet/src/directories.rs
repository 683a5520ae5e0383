//! Directories that an agent may use. Every path in a plan must be inside one of them.
use std::path::{Component, Path, PathBuf};

use keepup_error::Cause;

use crate::error::FleetError;

/// Directories of one host, with symbolic links resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories(Vec<PathBuf>);

impl Directories {
    /// Resolves the directories.
    ///
    /// # Errors
    /// A path that is not an existing directory.
    pub fn open(paths: &[PathBuf]) -> Result<Self, FleetError> {
        let open = |path: &PathBuf| {
            let real = path.canonicalize().map_err(|error| refused(path, error.to_string()))?;
            if real.is_dir() { Ok(real) } else { Err(refused(path, "it is no directory")) }
        };
        paths.iter().map(open).collect::<Result<_, _>>().map(Self)
    }

    /// Resolves `path`, which must be inside one of the directories. Its last components need not exist.
    ///
    /// # Errors
    /// A relative path, one with `..`, or one that is outside, also through a symbolic link.
    pub fn check(&self, path: &Path) -> Result<PathBuf, FleetError> {
        let is_plain =
            path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !path.is_absolute() || !is_plain {
            return Err(refused(path, "it is not an absolute path without \"..\""));
        }
        let real = real_path(path)?;
        match self.0.iter().any(|directory| real.starts_with(directory)) {
            true => Ok(real),
            false => {
                let why = format!("it leads to {}, outside the volumes of this host", real.display());
                Err(FleetError::Path {
                    path: path.display().to_string(),
                    why: Cause::new(why)
                        .with_hint("add the directory to `volumes` of the host in the fleet file"),
                })
            }
        }
    }
}

/// Resolves the symbolic links in the existing part of a path.
fn real_path(path: &Path) -> Result<PathBuf, FleetError> {
    for known in path.ancestors() {
        // Do not follow links here: the target of a dangling link could be created later.
        match known.symlink_metadata() {
            Ok(_) => {
                let real = known.canonicalize().map_err(|error| refused(path, error.to_string()))?;
                let rest = path.strip_prefix(known).map_err(|error| refused(path, error.to_string()))?;
                return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(refused(path, error.to_string())),
        }
    }
    Err(refused(path, "it does not exist"))
}

fn refused(path: &Path, why: impl Into<Cause>) -> FleetError {
    FleetError::Path { path: path.display().to_string(), why: why.into() }
}

#[cfg(test)]
#[path = "directories_tests.rs"]
mod tests;

//! Directories that an agent may use. Every path in a plan must be inside one of them.
use std::path::{Component, Path, PathBuf};

use keepup_error::Cause;

use crate::error::FleetError;

/// Directories of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    /// With symbolic links resolved.
    present: Vec<PathBuf>,
    /// Those that cannot be resolved, for example because a disk is not mounted, with the reason.
    missing: Vec<(PathBuf, String)>,
}

impl Directories {
    /// Resolves the directories. Some may be missing: [`check`](Self::check) refuses paths in them, and the
    /// recordings on the others remain readable.
    ///
    /// # Errors
    /// All are missing, or a path is not a directory.
    pub fn open(paths: &[PathBuf]) -> Result<Self, FleetError> {
        let (mut present, mut missing) = (Vec::new(), Vec::new());
        for path in paths {
            match path.canonicalize() {
                Ok(real) if real.is_dir() => present.push(real),
                Ok(_) => return Err(refused(path, "it is not a directory")),
                Err(error) => missing.push((path.clone(), error.to_string())),
            }
        }
        match missing.first() {
            Some((path, why)) if present.is_empty() => Err(refused(path, why.clone())),
            _ => Ok(Self { present, missing }),
        }
    }

    /// Resolves `path`, which must be inside one of the directories. Its last components need not exist.
    ///
    /// # Errors
    /// A relative path, one with `..`, or one that is outside, also through a symbolic link.
    pub fn check(&self, path: &Path) -> Result<PathBuf, FleetError> {
        if !is_plain(path) {
            return Err(refused(path, "it is not an absolute path without \"..\""));
        }
        if let Some((volume, why)) = self.missing.iter().find(|(volume, _)| path.starts_with(volume)) {
            return Err(refused(volume, why.clone()));
        }
        let real = real_path(path)?;
        match self.present.iter().any(|directory| real.starts_with(directory)) {
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

    /// The same for a path that will only be read: a path that does not exist is returned unresolved.
    ///
    /// # Errors
    /// As [`check`](Self::check), for a path that exists; a relative path or one with `..`.
    pub fn check_to_read(&self, path: &Path) -> Result<PathBuf, FleetError> {
        match self.check(path) {
            Err(_) if is_plain(path) && path.symlink_metadata().is_err() => Ok(path.to_owned()),
            checked => checked,
        }
    }
}

/// Whether a path is absolute and has no `..`.
fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    path.is_absolute() && parts.all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
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

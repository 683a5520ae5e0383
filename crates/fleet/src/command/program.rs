//! The program whose commands a host runs.
use std::path::PathBuf;
use std::process::Command;

/// The program whose commands run.
pub trait Program: Send + Sync {
    /// All paths that the command with these arguments writes to, except its result.
    ///
    /// # Errors
    /// It is not a command that measures, or a flag is not allowed on a host. The text has its hint.
    fn paths_written(&self, arguments: &[String]) -> Result<Vec<PathBuf>, String>;

    /// The command with these arguments.
    fn command(&self, arguments: &[String]) -> Command;
}

//! The peers' programs: whether they are installed, and which version.

use std::path::Path;
use std::process::{Command, Stdio};

/// A program that somebody else wrote.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tool {
    /// Its name in PATH.
    pub(super) program: &'static str,
    /// The Debian package that brings it.
    pub(super) package: &'static str,
}

impl Tool {
    /// Whether PATH leads to it.
    pub(super) fn is_installed(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| is_program(&directory.join(self.program)))
    }

    /// What it says about its version, or that it is missing.
    pub(super) fn version(&self) -> String {
        if !self.is_installed() {
            return self.advice();
        }
        first_line(self.program, &["--version"]).unwrap_or_else(|| "does not say".to_owned())
    }

    /// What a row says when it is missing.
    pub(super) fn advice(&self) -> String {
        format!("not installed (apt-get install {})", self.package)
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The first line that a program prints, on standard output or else on standard error.
pub(super) fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let lines = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    lines.iter().flat_map(|text| text.lines()).map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;

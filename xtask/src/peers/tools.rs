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
        // Those that do not know the flag tell how they are used, and their version with it.
        let mut lines = lines(self.program, &["--version"]).into_iter();
        let version = lines.find(|line| line.chars().any(|letter| letter.is_ascii_digit()));
        version.unwrap_or_else(|| "does not say".to_owned())
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
    lines(program, arguments).into_iter().next()
}

/// The lines that a program prints and that are not empty, those on standard output first.
fn lines(program: &str, arguments: &[&str]) -> Vec<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let texts = output.map_or_else(|_| Vec::new(), |output| vec![output.stdout, output.stderr]);
    let text = String::from_utf8_lossy(&texts.concat()).into_owned();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Name of a program without where it lies.
pub(super) fn file_name(program: &Path) -> String {
    program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// A command line as one would type it.
pub(super) fn typed(program: &Path, arguments: &[String]) -> String {
    let quoted = arguments.iter().map(|argument| match argument.contains(' ') {
        true => format!(" '{argument}'"),
        false => format!(" {argument}"),
    });
    format!("`{}{}`", file_name(program), quoted.collect::<String>())
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;

//! External programs: availability and versions.

use std::path::Path;
use std::process::{Command, Stdio};

/// External program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tool {
    /// Name in PATH.
    pub(super) program: &'static str,
    /// Debian package.
    pub(super) package: &'static str,
}

impl Tool {
    /// Whether it is in PATH.
    pub(super) fn is_installed(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| is_program(&directory.join(self.program)))
    }

    /// Its version, or how to install it.
    pub(super) fn version(&self) -> String {
        if !self.is_installed() {
            return self.advice();
        }
        // Those that do not know the flag tell how they are used, and their version with it.
        let mut lines = lines(self.program, &["--version"]).into_iter();
        let version = lines.find(|line| line.chars().any(|letter| letter.is_ascii_digit()));
        version.unwrap_or_else(|| "does not say".to_owned())
    }

    /// Text for a missing program.
    pub(super) fn advice(&self) -> String {
        format!("not installed (apt-get install {})", self.package)
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// First line of a program on standard output, or on standard error.
pub(super) fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    lines(program, arguments).into_iter().next()
}

/// Non-empty lines of a program, standard output first.
fn lines(program: &str, arguments: &[&str]) -> Vec<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let texts = output.map_or_else(|_| Vec::new(), |output| vec![output.stdout, output.stderr]);
    let text = String::from_utf8_lossy(&texts.concat()).into_owned();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// File name of a program.
pub(super) fn file_name(program: &Path) -> String {
    program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Command line for display.
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

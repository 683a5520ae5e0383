//! Parser of a guest's second serial port: the script's output with framed parts.
//!
//! A frame is `\x01begin NAME\n`, the raw bytes, and `\n\x01end NAME STATUS\n`; the script as a
//! whole ends like a frame named `script`. JSON and text contain no byte of value 1, so no escaping
//! is needed.
use std::collections::BTreeMap;

/// Result of one command run with `part NAME COMMAND...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its exit status.
    pub status: i32,
    /// Exact output.
    pub stdout: String,
}

/// Result of a guest.
#[derive(Clone, PartialEq, Eq)]
pub struct GuestOutput {
    /// Exit status of the script.
    pub status: i32,
    /// Output of the script outside of parts.
    pub stdout: String,
    /// Parts by name; of equal names the last.
    pub parts: BTreeMap<String, Part>,
    /// First serial port: stderr and kernel messages.
    pub console: String,
    /// Final content of the shared memory; empty without [`Device::Shared`](super::Device).
    pub shared: Vec<u8>,
}

impl std::fmt::Debug for GuestOutput {
    /// Omits the shared memory, which is megabytes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuestOutput")
            .field("status", &self.status)
            .field("stdout", &self.stdout)
            .field("parts", &self.parts)
            .field("console", &self.console)
            .finish_non_exhaustive()
    }
}

impl GuestOutput {
    /// Lines of the script's output outside of parts.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.stdout.lines()
    }

    /// A part by its name.
    ///
    /// # Panics
    /// The script had no part of that name.
    pub fn part(&self, name: &str) -> &Part {
        self.parts.get(name).unwrap_or_else(|| panic!("no part {name:?} in {self:#?}"))
    }
}

/// Output and parts of the script; `None` if it did not finish.
pub(crate) fn parse(text: &str) -> Option<(i32, String, BTreeMap<String, Part>)> {
    let (mut stdout, mut parts, mut rest) = (String::new(), BTreeMap::new(), text);
    loop {
        let (before, frame) = rest.split_once('\u{1}')?;
        if let Some(name) = frame.strip_prefix("begin ") {
            let (name, content) = name.split_once('\n')?;
            let (content, end) = content.split_once(&format!("\n\u{1}end {name} "))?;
            let (status, after) = end.split_once('\n')?;
            let part = Part { status: status.parse().ok()?, stdout: content.to_owned() };
            parts.insert(name.to_owned(), part);
            stdout.push_str(before);
            rest = after;
        } else {
            let (status, _) = frame.strip_prefix("end script ")?.split_once('\n')?;
            stdout.push_str(before.strip_suffix('\n')?);
            return Some((status.parse().ok()?, stdout, parts));
        }
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;

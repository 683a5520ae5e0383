//! What comes back over a guest's second serial port: the output of its script, and parts of it in frames.
//!
//! A frame is `\x01begin NAME\n`, the bytes as they are, and `\n\x01end NAME STATUS\n`; the script as a whole
//! ends as a frame called `script` does. JSON and text hold no byte of value 1, so nothing has to be escaped.
use std::collections::BTreeMap;

/// What one command of the script, run with `part NAME COMMAND...`, left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its exit status.
    pub status: i32,
    /// What it printed, to the byte.
    pub stdout: String,
}

/// What a guest left behind.
#[derive(Clone, PartialEq, Eq)]
pub struct GuestOutput {
    /// Exit status of the script.
    pub status: i32,
    /// What the script printed outside of parts.
    pub stdout: String,
    /// The parts, by their names; of two with the same name the last.
    pub parts: BTreeMap<String, Part>,
    /// What came over the first serial port: stderr and the kernel's messages.
    pub console: String,
    /// The memory shared with the host as the guest left it; empty without [`Device::Shared`](super::Device).
    pub shared: Vec<u8>,
}

impl std::fmt::Debug for GuestOutput {
    /// Without the shared memory, which is megabytes.
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
    /// What the script printed outside of parts, line by line.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.stdout.lines()
    }

    /// A part by its name.
    ///
    /// # Panics
    /// When the script had none of that name.
    pub fn part(&self, name: &str) -> &Part {
        self.parts.get(name).unwrap_or_else(|| panic!("no part {name:?} in {self:#?}"))
    }
}

/// The script's output and its parts; `None` when it did not come to its end.
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

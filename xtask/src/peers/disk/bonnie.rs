//! bonnie++: block phases and seeks, equivalent to `keepup disk block`.

use std::fs;
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result};

use crate::peers::contestant::Run;
use crate::peers::program::Program;
use crate::peers::tools::Tool;

/// Program.
pub(super) const TOOL: Tool = Tool { program: "bonnie++", package: "bonnie++" };

/// Memory size passed to bonnie++, which requires a file of at least twice that.
const MEMORY_MIB: u64 = 16;
/// Fields of its line, from 0, and the phases that they are of: rate in KiB/s, or seeks per second. The CPU
/// in per cent follows each; bon_csv2html(1).
const FIELDS: [(usize, &str); 4] = [(11, "write"), (13, "rewrite"), (17, "read"), (19, "seeks")];

/// bonnie++ with a file of `file_bytes` in blocks of `chunk` bytes.
pub(super) fn program(name: &'static str, file_bytes: u64, chunk: u64, direct: bool) -> Program {
    let size = format!("{}:{chunk}", file_bytes >> 20);
    let mut arguments: Vec<String> = "-q -f -n 0 -d . -r".split(' ').map(str::to_owned).collect();
    arguments.extend([MEMORY_MIB.to_string(), "-s".to_owned(), size]);
    arguments.extend(direct.then(|| "-D".to_owned()));
    // Required as root.
    if fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
        arguments.extend(["-u", "root"].map(str::to_owned));
    }
    Program {
        name,
        program: TOOL.program.into(),
        arguments,
        shown: None,
        tool: Some(&TOOL),
        read: Box::new(move |said| phases(said, file_bytes, direct)),
    }
}

/// Parses its line: rates, or plus signs for phases that were too short.
fn phases(said: &str, file_bytes: u64, direct: bool) -> Result<Vec<Run>> {
    let line = said.lines().find(|line| line.starts_with("1.98,")).with_context(|| {
        format!("bonnie++ printed no line of format 1.98: {:?}", said.lines().next().unwrap_or_default())
    })?;
    let fields: Vec<&str> = line.split(',').collect();
    let number = |at: usize| fields.get(at)?.parse::<f64>().ok().filter(|number| *number > 0.0);
    let phase = |(at, name): (usize, &str)| {
        let rate = number(at)?;
        let (bytes, events, seconds) = match name {
            "seeks" => (0, Some(rate as u64), 1.0),
            _ => (file_bytes, None, file_bytes as f64 / 1024.0 / rate),
        };
        let billed_ns = number(at + 1).map(|percent| (percent / 100.0 * seconds * 1e9) as u64);
        Some(Run { phase: name.to_owned(), bytes, events, seconds, billed_ns, ..Run::default() })
    };
    // Past the page cache it opens its file for this phase alone.
    let fields = FIELDS.into_iter().filter(|(_, name)| !direct || *name == "write");
    Ok(fields.filter_map(phase).collect())
}

#[cfg(test)]
#[path = "bonnie_tests.rs"]
mod tests;

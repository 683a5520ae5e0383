//! The listing of the camera computer's report, compiled by whoever has it: `keepup disk testdisk` does the
//! same.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::groups::label;
use crate::peers::contestant::Run;
use crate::peers::program::Program;

/// Series that it creates, and then overwrites.
const SERIES: usize = 3;

/// The program at this path.
pub(super) fn program(path: &Path) -> Program {
    Program {
        name: "listing",
        program: path.to_path_buf(),
        // What the names of its files begin with.
        arguments: vec!["data".to_owned()],
        shown: None,
        tool: None,
        read: Box::new(phases),
    }
}

/// A phase of each line.
fn phases(said: &str) -> Result<Vec<Run>> {
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("Transferred")).collect();
    ensure!(lines.len() == 2 * SERIES, "the listing told of {} series, not of {}", lines.len(), 2 * SERIES);
    let verbs = [["create"; SERIES], ["overwrite"; SERIES]].concat();
    verbs.iter().zip(lines).map(|(verb, line)| phase(verb, line)).collect()
}

/// What `Transferred 4096 MBytes (   1 files) in   4.950 s: 827.47 MB/s` says.
fn phase(verb: &str, line: &str) -> Result<Run> {
    let numbers =
        line.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|word| word.parse::<f64>().ok());
    let [mib, files, seconds, _] = numbers.collect::<Vec<_>>()[..] else {
        return Err(anyhow::anyhow!("four numbers were expected")).context(format!("read {line:?}"));
    };
    let bytes = (mib as u64) << 20;
    let each = bytes.checked_div(files as u64).with_context(|| format!("no files in {line:?}"))?;
    Ok(Run { phase: format!("{verb} {files} x {}", label(each)), bytes, seconds, ..Run::default() })
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;

//! Program listed in the report on the camera computer, compiled by the user; equivalent to
//! `keepup disk testdisk`.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::label;
use crate::peers::contestant::Run;
use crate::peers::program::Program;

/// Number of series, each created and then overwritten.
const SERIES: usize = 3;

/// The program at this path.
pub(super) fn program(path: &Path) -> Program {
    Program {
        name: "listing",
        program: path.to_path_buf(),
        // Prefix of its file names.
        arguments: vec!["data".to_owned()],
        shown: None,
        tool: None,
        read: Box::new(phases),
    }
}

/// Phases, one per line.
fn phases(said: &str) -> Result<Vec<Run>> {
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("Transferred")).collect();
    ensure!(
        lines.len() == 2 * SERIES,
        "the listing printed {} series instead of {}",
        lines.len(),
        2 * SERIES
    );
    let verbs = [["create"; SERIES], ["overwrite"; SERIES]].concat();
    verbs.iter().zip(lines).map(|(verb, line)| phase(verb, line)).collect()
}

/// Parses `Transferred 4096 MBytes (   1 files) in   4.950 s: 827.47 MB/s`.
fn phase(verb: &str, line: &str) -> Result<Run> {
    let numbers =
        line.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|word| word.parse::<f64>().ok());
    let [mib, files, seconds, _] = numbers.collect::<Vec<_>>()[..] else {
        return Err(anyhow::anyhow!("expected four numbers")).context(format!("read {line:?}"));
    };
    let bytes = (mib as u64) << 20;
    let each = bytes.checked_div(files as u64).with_context(|| format!("no files in {line:?}"))?;
    Ok(Run { phase: format!("{verb} {files} x {}", label(each)), bytes, seconds, ..Run::default() })
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;

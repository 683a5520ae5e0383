//! The result of a command on a host, stored as if the command had run here.
use std::fs;
use std::path::Path;

use keepup_fleet::command::{CommandEnd, Reply, ReplyError, unpack};
use keepup_results::{ResultDirectory, renewed};
use keepup_sys::output;
use serde::Deserialize;

/// Summary of a result.
const SUMMARY: &str = "result.json";
/// Files that contain the path of their directory.
const FILES: [&str; 2] = [SUMMARY, "report.html"];
/// Longest file whose paths are changed, bytes.
const BYTES_MAX: u64 = 64 << 20;

/// Part of a summary.
#[derive(Deserialize)]
struct Summary {
    result_directory: Option<String>,
}

/// Stores the result of a command in `run_directory`, which is empty.
///
/// # Errors
/// A malformed result, or a file that cannot be written. The directory is empty then.
pub(super) fn store(reply: &Reply, run_directory: &Path) -> Result<CommandEnd, ReplyError> {
    let io = |error: std::io::Error| ReplyError::Io(format!("{}: {error}", run_directory.display()));
    let stored = unpack(reply, run_directory).and_then(|end| {
        name_directories(run_directory).map_err(io)?;
        Ok(end)
    });
    if stored.is_err() {
        // A part of a result must not look like a result.
        fs::remove_dir_all(run_directory).and_then(|()| fs::create_dir(run_directory)).map_err(io)?;
    }
    stored
}

/// Replaces the temporary path on the host by the path here, in each result in `run_directory`.
fn name_directories(run_directory: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(run_directory)? {
        let directory = entry?.path();
        let Some(summary) = read(&directory.join(SUMMARY)) else { continue };
        let summary: Option<Summary> = serde_json::from_str(&summary).ok();
        let Some(old) = summary.and_then(|summary| summary.result_directory) else { continue };
        // Only the path that the command itself has written. A short text could occur anywhere.
        let old_path = Path::new(&old);
        if !old_path.is_absolute() || old_path.file_name() != directory.file_name() {
            continue;
        }
        let (old, new) = (in_quotes(&old), in_quotes(&directory.display().to_string()));
        for file in FILES {
            let path = directory.join(file);
            if let Some(text) = read(&path) {
                let changed = renewed(&text, text.replace(&old, &new));
                output::write(&path, changed.as_bytes())?;
                if let Ok(result) = ResultDirectory::open(&directory) {
                    result.cover(file).map_err(std::io::Error::other)?;
                }
            }
        }
    }
    Ok(())
}

/// The text of a file; none if it is too long or cannot be read.
fn read(path: &Path) -> Option<String> {
    let is_short = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= BYTES_MAX);
    is_short.then(|| fs::read_to_string(path).ok()).flatten()
}

/// A path as in a string of JSON, without the quotes. Most paths are the same in JSON and HTML.
fn in_quotes(path: &str) -> String {
    let quoted = serde_json::Value::from(path).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;

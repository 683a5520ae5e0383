//! Checksums of results: of a document, in its field `checksum`, and of the files of a directory, in
//! `SHA256SUMS`.
//!
//! The checksum of a document is that of its content, not of its bytes: other white space, another order of
//! the fields and `1` for `1.0` leave it unchanged, so tools that reformat JSON do not break it.
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Take};
use std::path::Path;

use keepup_sys::regular;
use serde::Serialize;
use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

use crate::file_names::{CHECKSUMS, MARKER};

/// Field of a document.
pub(crate) const FIELD: &str = "checksum";
/// Bytes that are hashed at once.
const PIECE_BYTES: usize = 64 << 10;
/// Largest file with a line, bytes: the longest event log that is read. Reading more would take minutes.
const FILE_BYTES_MAX: u64 = 4 << 30;
/// Largest integer below which every integer is exact in a floating-point number.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A summary with its checksum, as it is printed and stored.
#[derive(Debug, Serialize)]
pub struct Document<'a, S> {
    #[serde(flatten)]
    summary: &'a S,
    checksum: String,
}

impl<'a, S: Serialize> Document<'a, S> {
    /// Computes the checksum of a summary.
    ///
    /// # Errors
    /// JSON cannot represent the summary.
    pub fn new(summary: &'a S) -> serde_json::Result<Self> {
        // Of what a reader parses, so that a rounding difference of the parser changes nothing.
        let read = serde_json::from_str(&serde_json::to_string(summary)?)?;
        Ok(Self { summary, checksum: of_content(read) })
    }

    /// The document as one value.
    ///
    /// # Errors
    /// As [`Document::new`].
    pub fn value(summary: &'a S) -> serde_json::Result<Value> {
        serde_json::to_value(Self::new(summary)?)
    }
}

/// Outcome of the check of a document or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// As written.
    Same,
    /// Changed after it was written.
    Changed,
    /// Without a checksum.
    Absent,
}

/// Removes the checksum from a document and checks it.
pub(crate) fn take(document: &mut Value) -> Check {
    match document.as_object_mut().and_then(|fields| fields.remove(FIELD)) {
        None => Check::Absent,
        Some(Value::String(sum)) if sum == of_content(document.clone()) => Check::Same,
        Some(_) => Check::Changed,
    }
}

/// `changed`, a document that was made from `original`, with a new checksum if that of `original` was right.
#[must_use]
pub fn renewed(original: &str, changed: String) -> String {
    let Ok(mut before) = serde_json::from_str::<Value>(original) else { return changed };
    let Some(Value::String(old)) = before.get(FIELD).cloned() else { return changed };
    let Ok(mut after) = serde_json::from_str::<Value>(&changed) else { return changed };
    if take(&mut before) != Check::Same {
        return changed;
    }
    take(&mut after);
    changed.replace(&old, &of_content(after))
}

/// Checksum of a document without its checksum.
fn of_content(mut document: Value) -> String {
    unify_numbers(&mut document);
    // The fields of an object are sorted by name.
    format!("sha256:{}", hex(&Sha256::digest(document.to_string())))
}

/// Replaces floating-point numbers without a fraction by integers.
fn unify_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < EXACT_MAX);
            if let Some(whole) = whole {
                *number = Number::from(whole as i64);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(unify_numbers),
        Value::Object(fields) => fields.values_mut().for_each(unify_numbers),
        _ => {}
    }
}

/// Lines of `SHA256SUMS` for all files below `directory`. Those of a result within it are covered by its own
/// `SHA256SUMS`.
pub(crate) fn lines_of(directory: &Path) -> io::Result<String> {
    let mut lines = String::new();
    add_lines(directory, "", &mut lines)?;
    Ok(lines)
}

fn add_lines(directory: &Path, prefix: &str, lines: &mut String) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (kind, path) = (entry.file_type()?, entry.path());
        let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}")) else { continue };
        let has_own = || fs::symlink_metadata(path.join(CHECKSUMS)).is_ok_and(|found| found.is_file());
        if kind.is_dir() && has_own() {
            lines.push_str(&line(&path.join(CHECKSUMS), &format!("{name}/{CHECKSUMS}"))?);
        } else if kind.is_dir() {
            add_lines(&path, &format!("{name}/"), lines)?;
        } else if kind.is_file() && is_covered(&name) && entry.metadata()?.len() <= FILE_BYTES_MAX {
            lines.push_str(&line(&path, &name)?);
        }
    }
    Ok(())
}

/// Whether a file has a line. Locks and files that are being written are hidden.
fn is_covered(name: &str) -> bool {
    let is_hidden = name.rsplit('/').next().is_some_and(|last| last.starts_with('.') && last != MARKER);
    // `sha256sum` escapes these characters; no file of a result has them.
    !is_hidden && name != CHECKSUMS && !name.contains(['\\', '\n', '\r'])
}

/// `lines` with a new line for the file `name` in `directory`.
pub(crate) fn with_line(lines: &str, directory: &Path, name: &str) -> io::Result<String> {
    let new = line(&directory.join(name), name)?;
    let others = lines.lines().filter(|line| name_and_sum(line).is_none_or(|(other, _)| other != name));
    let mut all: Vec<&str> = others.chain([new.trim_end()]).collect();
    all.sort_by_key(|line| name_and_sum(line).map(|(name, _)| name));
    Ok(all.join("\n") + "\n")
}

/// Checks the file `name` in `directory`.
pub(crate) fn check_file(lines: &str, directory: &Path, name: &str) -> io::Result<Check> {
    let listed = lines.lines().filter_map(name_and_sum).find(|(other, _)| *other == name);
    let Some((_, sum)) = listed else { return Ok(Check::Absent) };
    let is_same = sum.eq_ignore_ascii_case(&of_file(&directory.join(name))?);
    Ok(if is_same { Check::Same } else { Check::Changed })
}

fn name_and_sum(line: &str) -> Option<(&str, &str)> {
    line.split_once("  ").map(|(sum, name)| (name, sum))
}

fn line(path: &Path, name: &str) -> io::Result<String> {
    Ok(format!("{}  {name}\n", of_file(path)?))
}

fn of_file(path: &Path) -> io::Result<String> {
    let (mut file, mut sum): (Take<File>, Sha256) =
        (regular::open(path)?.take(FILE_BYTES_MAX), Sha256::new());
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hex(&sum.finalize())),
            Ok(bytes) => sum.update(&piece[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
#[path = "checksum_tests.rs"]
mod tests;

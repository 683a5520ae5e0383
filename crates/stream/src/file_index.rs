//! Index of the files that were recorded from a directory: one line of JSON for each file.
//!
//! The files are the events of one stream; the lines are the events of a second stream, named after the first
//! one with [`INDEX_SUFFIX`]. An event of the first stream is byte-identical to its file.
use serde::{Deserialize, Serialize};

/// Name of the stream of files. With several sources, it follows the directory and a hyphen.
pub const FILES: &str = "files";
/// What the name of the index adds to the name of its stream of files.
pub const INDEX_SUFFIX: &str = "-index";

/// A line of the index: a recorded file, a new name of one, or a file that was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Sequence number of its event in the stream of files.
    pub sequence: u64,
    /// Name in the directory. Bytes that are not UTF-8 are replaced; `name_hex` is exact then.
    pub name: String,
    /// All bytes of a name that is not UTF-8, as hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_hex: Option<String>,
    /// Size, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Time of the last change, ns since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtime_ns: Option<u64>,
    /// CRC-32 of the content (as in zlib and MCAP), 8 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<String>,
    /// Earlier name of the event: the file was renamed after it had been recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// Why the file is missing in the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl FileEntry {
    /// An entry with nothing but sequence number and name.
    pub fn new(sequence: u64, name: &[u8]) -> Self {
        let text = String::from_utf8_lossy(name);
        let is_exact = text.as_bytes() == name;
        Self {
            sequence,
            name_hex: (!is_exact).then(|| name.iter().map(|byte| format!("{byte:02x}")).collect()),
            name: text.into_owned(),
            bytes: None,
            mtime_ns: None,
            crc32: None,
            renamed_from: None,
            lost: None,
        }
    }

    /// Exact bytes of the name; `None` if `name_hex` is invalid.
    pub fn name_bytes(&self) -> Option<Vec<u8>> {
        let Some(hex) = &self.name_hex else { return Some(self.name.clone().into_bytes()) };
        let digits = hex.as_bytes();
        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
        digits.chunks(2).map(pair).collect()
    }

    /// The entry as a line of JSON, with its line feed.
    pub fn to_line(&self) -> Vec<u8> {
        // Cannot fail: the map has only string keys.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Parses a line; `None` if it is not an entry.
    pub fn from_line(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

#[cfg(test)]
#[path = "file_index_tests.rs"]
mod tests;

//! Lines with a checksum: a JSON object, a space, the CRC-32 of the JSON text as 8 lower-case hex
//! digits, a newline.

use std::io::Write;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::crc::crc32;

/// Longest line, bytes: the journal's end record of 65535 streams takes about 8 MB.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Replaces `line` with the line for `content`.
///
/// # Errors
/// The reason why it cannot be a line.
pub fn put_line(line: &mut Vec<u8>, content: &impl Serialize) -> Result<(), String> {
    line.clear();
    serde_json::to_writer(&mut *line, content).map_err(|error| error.to_string())?;
    let crc = crc32(line);
    writeln!(line, " {crc:08x}").map_err(|error| error.to_string())?;
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("it would be longer than {LINE_BYTES_MAX} bytes"));
    }
    Ok(())
}

/// Reads one line, without its newline.
///
/// # Errors
/// The defect of the line.
pub fn parse_line<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    let cut = || "it has no checksum".to_owned();
    let (json, checksum) = line.split_last_chunk::<9>().ok_or_else(cut)?;
    let crc = crc32(json);
    if checksum[..] != *format!(" {crc:08x}").as_bytes() {
        return Err(format!("its checksum is not {crc:08x}"));
    }
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

//! VLBI Data Interchange Format, release 1.1.1 (<https://vlbi.org/vlbi-standards/vdif/>): one data frame per
//! packet.
//!
//! A frame is numbered within its second, so numbering across seconds needs the frames per second, which only
//! some extended headers state.
use time::{Date, Month, OffsetDateTime, Time};

use super::Numbered;

/// Bytes of the header without extended data.
const LEGACY_BYTES: usize = 16;
/// Bytes of the header with extended data.
const HEADER_BYTES: usize = 32;
/// Most frames per second that the 24 bits of a frame number can count.
pub(crate) const FRAMES_PER_SECOND_MAX: u64 = 1 << 24;

/// VDIF frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vdif {
    /// Frames of a thread per second, where the header does not state the sample rate.
    pub frames_per_second: Option<u64>,
}

impl Vdif {
    /// Number and time of a frame.
    pub(super) fn read(&self, frame: &[u8]) -> Result<Numbered, String> {
        let Some(header) = frame.get(..LEGACY_BYTES) else {
            return Err(format!("{} bytes, shorter than a VDIF header", frame.len()));
        };
        let word = |at: usize| word(header, at).unwrap_or(0);
        let stated = (word(2) & 0xFF_FFFF) as usize * 8;
        if stated != frame.len() {
            return Err(format!("{} bytes, but its VDIF header states {stated}", frame.len()));
        }
        let per_second = self.frames_per_second.or_else(|| frames_per_second(frame));
        let Some(per_second) = per_second else {
            return Err(
                "its VDIF header states no sample rate; add frames-per-second=N to the source".to_owned()
            );
        };
        let (seconds, epoch) = (u64::from(word(0) & 0x3FFF_FFFF), (word(1) >> 24) & 0x3F);
        let in_second = u64::from(word(1) & 0xFF_FFFF);
        if in_second >= per_second {
            return Err(format!("frame number {in_second} is out of range: {per_second} frames per second"));
        }
        let (station, thread) = ((word(3) & 0xFFFF) as u16, (word(3) >> 16 & 0x3FF) as u16);
        let number = seconds * per_second + in_second;
        let within_ns = in_second * 1_000_000_000 / per_second;
        let timestamp_ns = epoch_seconds(epoch).saturating_add(seconds) * 1_000_000_000 + within_ns;
        Ok(Numbered { thread: Some((station, thread)), number, frame: 0, timestamp_ns: Some(timestamp_ns) })
    }
}

fn word(header: &[u8], at: usize) -> Option<u32> {
    header[4 * at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Start of a reference epoch, s since the Unix epoch: each is half a year, the first one 2000-01-01.
fn epoch_seconds(epoch: u32) -> u64 {
    let month = if epoch.is_multiple_of(2) { Month::January } else { Month::July };
    let date = Date::from_calendar_date(2000 + epoch as i32 / 2, month, 1);
    let start = date.map(|date| OffsetDateTime::new_utc(date, Time::MIDNIGHT).unix_timestamp());
    start.ok().and_then(|start| u64::try_from(start).ok()).unwrap_or(0)
}

/// Frames of a thread per second, by the rate in extended data of version 3 (VLBA): that of complex samples,
/// half the one of real samples. The same field of version 1 has several interpretations.
fn frames_per_second(frame: &[u8]) -> Option<u64> {
    let is_legacy = word(frame, 0)? & 1 << 30 != 0;
    let extended = word(frame.get(..HEADER_BYTES)?, 4)?;
    if is_legacy || extended >> 24 != 3 {
        return None;
    }
    let unit = if extended & 1 << 23 == 0 { 1_000 } else { 1_000_000 };
    let channels = 1u64 << (word(frame, 2)? >> 24 & 0x1F);
    let (bits, is_complex) = ((word(frame, 3)? >> 26 & 0x1F) + 1, word(frame, 3)? >> 31 == 1);
    let samples_per_second = u64::from(extended & 0x7F_FFFF) * unit * if is_complex { 1 } else { 2 };
    let bits_per_sample = channels * u64::from(bits) * if is_complex { 2 } else { 1 };
    let samples = (frame.len() - HEADER_BYTES) as u64 * 8 / bits_per_sample;
    let is_whole = samples > 0 && samples_per_second.is_multiple_of(samples);
    let per_second = is_whole.then(|| samples_per_second / samples)?;
    (1..=FRAMES_PER_SECOND_MAX).contains(&per_second).then_some(per_second)
}

/// Name of a station: its two letters if it has some, else its number.
pub(super) fn station_name(station: u16) -> String {
    let letters = station.to_be_bytes();
    match letters.iter().all(u8::is_ascii_alphanumeric) {
        true => letters.iter().map(|byte| char::from(*byte)).collect(),
        false => station.to_string(),
    }
}

#[cfg(test)]
#[path = "vdif_tests.rs"]
mod tests;

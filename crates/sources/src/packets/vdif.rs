//! VLBI Data Interchange Format, release 1.1.1 (<https://vlbi.org/vlbi-standards/vdif/>): one data frame per
//! packet.
use time::{Date, Month, OffsetDateTime, Time};

/// Bytes of the header without extended data.
const LEGACY_BYTES: usize = 16;
/// Bytes of the header with extended data.
const HEADER_BYTES: usize = 32;
/// Most frames per second that the 24 bits of a frame number can count.
pub(crate) const FRAMES_PER_SECOND_MAX: u64 = 1 << 24;
/// Times after the leap seconds since 2000, s since the Unix epoch: 2006, 2009, July 2012, July 2015, 2017.
const LEAPS: [u64; 5] = [1_136_073_600, 1_230_768_000, 1_341_100_800, 1_435_708_800, 1_483_228_800];

/// VDIF frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vdif {
    /// Frames of a thread per second; `None`: as the stream shows.
    pub frames_per_second: Option<u64>,
}

/// What the header of a frame states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) station: u16,
    pub(super) thread: u16,
    /// Reference epoch: half years since 2000.
    pub(super) epoch: u32,
    /// Seconds since the reference epoch, leap seconds included.
    pub(super) second: u32,
    /// Number within the second.
    pub(super) in_second: u64,
    /// Frames of the thread per second, by the sample rate in the header.
    pub(super) stated: Option<u64>,
    /// The sender has marked it as invalid: the rest of the header may be junk.
    pub(super) is_invalid: bool,
}

impl Frame {
    /// Reads the header of a frame.
    pub(super) fn read(frame: &[u8]) -> Result<Self, String> {
        let Some(header) = frame.get(..LEGACY_BYTES) else {
            return Err(format!("{} bytes, shorter than a VDIF header", frame.len()));
        };
        let word = |at: usize| word(header, at).unwrap_or(0);
        let stated = (word(2) & 0xFF_FFFF) as usize * 8;
        if stated != frame.len() {
            return Err(format!("{} bytes, but its VDIF header states {stated}", frame.len()));
        }
        Ok(Self {
            station: (word(3) & 0xFFFF) as u16,
            thread: (word(3) >> 16 & 0x3FF) as u16,
            epoch: (word(1) >> 24) & 0x3F,
            second: word(0) & 0x3FFF_FFFF,
            in_second: u64::from(word(1) & 0xFF_FFFF),
            stated: frames_per_second(frame),
            is_invalid: word(0) >> 31 == 1,
        })
    }

    /// Seconds since 2000 without a leap second left out, so that they increase by 1 with each second.
    pub(super) fn elapsed_s(&self) -> u64 {
        let start = epoch_seconds(self.epoch);
        let leaps = LEAPS.iter().filter(|after| **after <= start).count() as u64;
        (start + leaps - epoch_seconds(0)).saturating_add(u64::from(self.second))
    }

    /// Start of its second, s since the Unix epoch.
    pub(super) fn unix_s(&self) -> u64 {
        let start = epoch_seconds(self.epoch);
        let elapsed = u64::from(self.second);
        let leaps = LEAPS.iter().filter(|after| **after > start).zip(0u64..);
        let passed = leaps.filter(|(after, before)| elapsed > **after - start + before).count() as u64;
        start.saturating_add(elapsed).saturating_sub(passed)
    }

    /// Whether its second is the last of its reference epoch, or a leap second behind that.
    pub(super) fn is_last_of_epoch(&self) -> bool {
        let days = epoch_seconds(self.epoch + 1) - epoch_seconds(self.epoch);
        (days.saturating_sub(1)..=days).contains(&u64::from(self.second))
    }
}

fn word(header: &[u8], at: usize) -> Option<u32> {
    header.get(4 * at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Start of a reference epoch, s since the Unix epoch: each is half a year, the first one 2000-01-01.
fn epoch_seconds(epoch: u32) -> u64 {
    let month = if epoch.is_multiple_of(2) { Month::January } else { Month::July };
    let date = Date::from_calendar_date(2000 + epoch as i32 / 2, month, 1);
    let start = date.map(|date| OffsetDateTime::new_utc(date, Time::MIDNIGHT).unix_timestamp());
    start.ok().and_then(|start| u64::try_from(start).ok()).unwrap_or(0)
}

/// Frames of a thread per second, by the rate in extended data of versions 1 (NICT) and 3 (VLBA): that of
/// complex samples, half the one of real samples. Version 1 is also used with the rate of real samples, so
/// what the stream shows has precedence.
fn frames_per_second(frame: &[u8]) -> Option<u64> {
    let is_legacy = word(frame, 0)? & 1 << 30 != 0;
    let extended = word(frame.get(..HEADER_BYTES)?, 4)?;
    if is_legacy || ![1, 3].contains(&(extended >> 24)) {
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

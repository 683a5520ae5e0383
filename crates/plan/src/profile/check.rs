//! Limits of a profile and relations between its fields.

use std::borrow::Cow;
use std::time::Duration;

use keepup_error::{Cause, Diagnostic, ErrorClass};

use super::{Burst, EventSize, Placement, Profile};
use crate::element::Element;
use crate::reduction::{Samples, check_apart};
use crate::units::Bytes;

/// Maximum event size; the recorder holds an event in memory.
const EVENT_MAX: Bytes = Bytes(512 << 20);
/// Smallest image that a detector compresses: a block of the compressor.
const IMAGE_MIN: Bytes = Bytes(8192);
/// Images without photons compress to less than a share of this.
const COMPRESSION_MAX: u64 = 100;
/// Maximum number of streams: a stream's number is a 16-bit channel in the recording, and one is
/// reserved.
const STREAMS_MAX: u32 = 65_535;
/// Maximum number of connections of the simulated source, each a thread.
const CONNECTIONS_MAX: u32 = 64;
/// Minimum block size: the alignment of payload in a segment.
const BLOCK_MIN: Bytes = Bytes(4096);
/// Maximum number of dimensions of an event.
const DIMENSIONS_MAX: usize = 8;
/// Longest run.
const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);
/// Longest lifetime of volumes.
const LIFETIME_MAX: Duration = Duration::from_secs(100 * 366 * 86_400);
/// Maximum length of a name, so that it fits in file names.
const NAME_MAX: usize = 64;

/// Error of an invalid field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct Invalid {
    /// Key as in a file: "source.rate".
    pub key: &'static str,
    /// Reason with values.
    pub reason: Cause,
}

impl Diagnostic for Invalid {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        self.reason.hint()
    }
}

fn refuse(key: &'static str, reason: impl Into<Cause>) -> Result<(), Invalid> {
    Err(Invalid { key, reason: reason.into() })
}

impl Profile {
    /// Returns the first invalid field, individually or in combination with others.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.check_name()?;
        self.check_event()?;
        self.check_shape()?;
        self.check_compression()?;
        self.check_source()?;
        self.check_burst()?;
        self.check_record()?;
        self.check_reductions()?;
        self.check_requirements()?;
        self.check_run()
    }

    fn check_name(&self) -> Result<(), Invalid> {
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        if self.name.is_empty() || self.name.len() > NAME_MAX || !self.name.bytes().all(plain) {
            let name = &self.name;
            return refuse("name", format!("{name:?} is not 1 to {NAME_MAX} of a-z, 0-9 and hyphen"));
        }
        if self.title.trim().is_empty() || self.title.contains(char::is_control) {
            return refuse("title", "it must be one line of text");
        }
        Ok(())
    }

    fn check_event(&self) -> Result<(), Invalid> {
        let largest = self.event.max();
        let key = match self.event {
            EventSize::Fixed(_) => "event.size",
            _ => "event.max",
        };
        if largest.0 == 0 {
            return refuse(key, "an event of zero bytes carries nothing");
        }
        if largest > EVENT_MAX {
            return refuse(
                key,
                format!("{} is more than {}, the largest event", largest.binary(), EVENT_MAX.binary()),
            );
        }
        match self.event {
            EventSize::Uniform { min, max } if min > max => {
                refuse("event.min", format!("{min} is more than event.max, {max}"))
            }
            EventSize::LogNormal { median, max, .. } if median.0 == 0 || median > max => {
                refuse("event.median", format!("{median} is not between zero and event.max, {max}"))
            }
            EventSize::LogNormal { sigma, .. } if !(sigma > 0.0 && sigma <= 4.0) => {
                refuse("event.sigma", format!("{sigma} is not above 0 and at most 4"))
            }
            _ => Ok(()),
        }
    }

    fn check_shape(&self) -> Result<(), Invalid> {
        if self.shape.is_empty() {
            return Ok(());
        }
        if self.element.is_none() {
            return refuse("event.shape", "a shape needs event.element, the type of its elements");
        }
        if self.shape.len() > DIMENSIONS_MAX {
            return refuse("event.shape", format!("more than {DIMENSIONS_MAX} dimensions"));
        }
        if self.compression.is_some() {
            return Ok(());
        }
        let EventSize::Fixed(size) = self.event else {
            let reason = Cause::new("events of varying size have no fixed shape");
            return refuse("event.shape", reason.with_hint("compression = \"bslz4\", for compressed images"));
        };
        let array = self.array();
        if array != Some(size) {
            let array = array.map_or("more than 2^64 B".to_owned(), |array| format!("{} B", array.0));
            return refuse("event.shape", format!("the array is {array}, but event.size is {} B", size.0));
        }
        Ok(())
    }

    fn check_compression(&self) -> Result<(), Invalid> {
        if self.compression.is_none() {
            return Ok(());
        }
        if !matches!(self.element, Some(Element::U8 | Element::U16 | Element::U32)) || self.shape.is_empty() {
            return refuse("event.compression", "it needs event.shape, and event.element u8, u16 or u32");
        }
        let image = self.array().filter(|image| (IMAGE_MIN..=EVENT_MAX).contains(image));
        let Some(image) = image else {
            let (least, most) = (IMAGE_MIN.binary(), EVENT_MAX.binary());
            return refuse("event.shape", format!("an uncompressed image must have {least} to {most}"));
        };
        let (largest, least) = (self.event.max(), Bytes(image.0 / COMPRESSION_MAX));
        if !(least..=image).contains(&largest) {
            let key = if matches!(self.event, EventSize::Fixed(_)) { "event.size" } else { "event.max" };
            let reason =
                format!("{largest} is not between 1 % of the uncompressed image and its size, {image}");
            return refuse(key, reason);
        }
        Ok(())
    }

    fn check_source(&self) -> Result<(), Invalid> {
        if self.rate.events_per_second() <= 0.0 {
            return refuse("source.rate", "a rate of zero sends nothing");
        }
        if !(1..=STREAMS_MAX).contains(&self.streams) {
            return refuse("source.streams", format!("{} is not 1 to {STREAMS_MAX}", self.streams));
        }
        if !(1..=CONNECTIONS_MAX.min(self.streams)).contains(&self.connections) {
            let (connections, streams) = (self.connections, self.streams);
            let reason =
                format!("{connections} is not 1 to {CONNECTIONS_MAX} and at most source.streams, {streams}");
            return refuse("source.connections", reason);
        }
        if self.buffer < self.event.max() {
            let (buffer, event) = (self.buffer, self.event.max());
            return refuse("source.buffer", format!("{buffer} does not hold one event of {event}"));
        }
        Ok(())
    }

    fn check_burst(&self) -> Result<(), Invalid> {
        let Some(Burst { on, off }) = self.burst else { return Ok(()) };
        if on.0.is_zero() || off.0.is_zero() {
            return refuse(
                "source.burst",
                "on and off must be longer than zero; leave burst out for an even rate",
            );
        }
        if on.0 > DURATION_MAX || off.0 > DURATION_MAX {
            return refuse("source.burst", "on and off must be shorter than a year");
        }
        if self.rate.events_per_second() * on.0.as_secs_f64() < 1.0 {
            return refuse("source.burst", format!("no event fits into {on} at {}", self.rate));
        }
        Ok(())
    }

    fn check_record(&self) -> Result<(), Invalid> {
        if self.volumes == 0 {
            return refuse("record.volumes", "at least one volume is needed");
        }
        if self.placement == Placement::Pinned && self.volumes > self.streams {
            let (volumes, streams) = (self.volumes, self.streams);
            let reason = format!("of {volumes} volumes some would stay empty with {streams} pinned streams");
            return refuse("record.placement", reason);
        }
        if self.block < BLOCK_MIN {
            return refuse(
                "record.block",
                format!("{} is less than {}", self.block.binary(), BLOCK_MIN.binary()),
            );
        }
        let needed = self.block.max(self.event.max());
        if let Some(segment) = self.segment.filter(|segment| *segment < needed) {
            let reason = format!("{} does not hold a block of {}", segment.binary(), needed.binary());
            return refuse("record.segment", reason);
        }
        Ok(())
    }

    fn check_reductions(&self) -> Result<(), Invalid> {
        let invalid = |reason: Cause| Invalid { key: "reduce", reason };
        check_apart(&self.reductions).map_err(invalid)?;
        for reduction in &self.reductions {
            let (Some(element), false) = (self.element, self.shape.is_empty()) else {
                return refuse("reduce", "it needs event.element and event.shape");
            };
            let samples =
                Samples { element, shape: self.shape.clone(), compressed: self.compression.is_some() };
            reduction.output(&samples).map_err(|error| invalid(error.to_string().into()))?;
        }
        Ok(())
    }

    fn check_requirements(&self) -> Result<(), Invalid> {
        if self.drain.is_some_and(|rate| rate.bytes_per_second() <= 0.0) {
            return refuse("drain.rate", "a rate of zero reads nothing; leave drain out");
        }
        if !(self.headroom >= 1.0 && self.headroom.is_finite()) {
            return refuse(
                "require.headroom",
                format!("{} is less than 1, the required rate itself", self.headroom),
            );
        }
        if self.cpu_free.fraction() >= 1.0 {
            return refuse("require.cpu_free", "recording itself needs some of the processors");
        }
        if let Some(lifetime) = self.lifetime.filter(|span| span.0.is_zero() || span.0 > LIFETIME_MAX) {
            return refuse("require.lifetime", format!("{lifetime} is not above zero and at most 100 years"));
        }
        Ok(())
    }

    fn check_run(&self) -> Result<(), Invalid> {
        if self.duration.0.is_zero() || self.duration.0 > DURATION_MAX {
            return refuse("run.duration", format!("{} is not above zero and at most a year", self.duration));
        }
        if self.space_needed().0 > i64::MAX as u64 {
            return refuse("source.rate", format!("more than 8 EiB would come in {}", self.duration));
        }
        Ok(())
    }
}

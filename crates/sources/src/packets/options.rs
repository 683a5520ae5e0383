//! Meaning of the packets of a source, as a user names it.
use keepup_stream::rejected::RejectUnit;

use super::admission::{Packet, Senders};
use super::counter::unwrapped;
use super::group::Rule;
use super::{Counter, Numbered, Spead, Vdif, vdif};

/// Default of [`Options::window`].
const WINDOW: usize = 64;
/// Default of [`Options::window`] for heaps, as in spead2.
const HEAPS_WINDOW: usize = 4;
/// Limit of [`Options::window`] for heaps.
const HEAPS_WINDOW_MAX: usize = 256;
/// Limit of [`Options::window`].
const WINDOW_MAX: u64 = 4096;
/// Limit of [`Options::group`].
const GROUP_MAX: u64 = 1 << 16;
/// Bits of a frame number that are compared: with as many packets as possible, packet numbers have 63 bits.
const FRAME_BITS: u32 = 46;
/// What the place of a number must look like.
const PLACE: &str = "expected a type and offset such as u64be@0, u48be@2 or u32le";
/// Options of udp, for messages.
const COUNTER_OPTIONS: &str = "counter, step, group, frame, skip, window, streams, from";
/// Default and limit of [`Options::streams`].
const STREAMS: usize = 256;
const STREAMS_MAX: u64 = 4096;
/// Most entries of [`Options::from`].
const FROM_MAX: usize = 256;
/// Packets within which two packets of a sender are taken for parts of one stream.
const NEAR_MAX: u64 = 64;
/// Limit of [`Options::skip`].
const SKIP_MAX: u64 = 1024;

/// Meaning of the packets of a source, and how much disorder is repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Header of each packet.
    pub format: Format,
    /// Bytes at the start of each packet that are not recorded.
    pub skip: usize,
    /// Packets of a stream that may wait for a missing one. SPEAD: heaps that are assembled at once.
    pub window: usize,
    /// Packets of an event, at least 1; `None`: each packet is an event, or all with the same frame number.
    pub group: Option<u64>,
    /// Place of the number of the frame to which a packet belongs. With [`Options::group`], the counter
    /// counts the packets of a frame, from 0.
    pub frame: Option<Counter>,
    /// Most streams of the source.
    pub streams: usize,
    /// Senders that are recorded; empty: those of which two packets fit together.
    pub from: Vec<Senders>,
}

/// Header of the packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A packet counter at a fixed place.
    Counter(Counter),
    /// VLBI Data Interchange Format.
    Vdif(Vdif),
    /// Packets of heaps.
    Spead(Spead),
}

impl Options {
    /// Packets of a format, recorded as a whole.
    #[must_use]
    pub fn new(format: Format) -> Self {
        let window = if matches!(format, Format::Spead(_)) { HEAPS_WINDOW } else { WINDOW };
        let (streams, from) = (STREAMS, Vec::new());
        Self { format, skip: 0, window, group: None, frame: None, streams, from }
    }

    /// Defaults of a scheme such as `udp`.
    #[must_use]
    pub fn of_scheme(scheme: &str) -> Option<Self> {
        match scheme {
            "udp" => Some(Self::new(Format::Counter(Counter::default()))),
            "vdif" => Some(Self::new(Format::Vdif(Vdif::default()))),
            "spead" => Some(Self::new(Format::Spead(Spead::default()))),
            _ => None,
        }
    }

    /// Applies an option; `others` lists those that are not options of packets.
    pub(crate) fn apply(&mut self, name: &str, value: &str, others: &str) -> Result<(), String> {
        let number = |most: u64| {
            let number = value.parse().ok().filter(|number| *number <= most);
            number.ok_or_else(|| format!("expected a whole number, at most {most}"))
        };
        let positive = |most: u64| match number(most)? {
            0 => Err("must be at least 1".to_owned()),
            number => Ok(number),
        };
        match (name, &mut self.format) {
            ("streams", _) => self.streams = positive(STREAMS_MAX)? as usize,
            ("from", _) if self.from.len() >= FROM_MAX => {
                return Err(format!("at most {FROM_MAX} senders"));
            }
            ("from", _) => self.from.push(value.parse()?),
            ("window", Format::Spead(_)) => self.window = positive(HEAPS_WINDOW_MAX as u64)? as usize,
            ("step", Format::Spead(spead)) => spead.step = positive(1 << 32)?,
            ("senders", Format::Spead(spead)) => spead.senders = positive(STREAMS_MAX)? as usize,
            (_, Format::Spead(_)) => {
                return Err(format!(
                    "unknown option; spead has step, senders, window, streams, from, {others}"
                ));
            }
            ("group", _) => self.group = Some(positive(GROUP_MAX)?),
            ("frame", Format::Counter(_)) => self.frame = Some(Counter::parse(value).ok_or(PLACE)?),
            ("skip", _) => self.skip = number(SKIP_MAX)? as usize,
            ("window", _) => self.window = number(WINDOW_MAX)? as usize,
            ("counter", Format::Counter(counter)) => {
                let step = counter.step;
                let place = Counter::parse(value).ok_or(PLACE)?;
                *counter = Counter { step, ..place };
            }
            ("step", Format::Counter(counter)) => counter.step = positive(1 << 32)?,
            ("frames-per-second", Format::Vdif(vdif)) => {
                vdif.frames_per_second = Some(positive(vdif::FRAMES_PER_SECOND_MAX)?);
            }
            (_, Format::Counter(_)) => {
                return Err(format!("unknown option; udp has {COUNTER_OPTIONS}, {others}"));
            }
            (_, Format::Vdif(_)) => {
                return Err(format!(
                    "unknown option; vdif has frames-per-second, group, skip, window, streams, from, {others}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that the options fit together.
    pub(crate) fn check(&self) -> Result<(), String> {
        match (&self.format, self.group, self.frame) {
            (Format::Counter(counter), Some(_), Some(_)) if counter.step > 1 => {
                Err("step must be 1 with group and frame: the counter counts the packets of a frame"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Which packets make an event, if not each packet is one.
    pub(super) fn rule(&self) -> Option<Rule> {
        match (self.group, self.frame) {
            (Some(packets), _) => Some(Rule::Count(packets)),
            (None, Some(frame)) => Some(Rule::Frame(frame.bits().min(FRAME_BITS))),
            (None, None) => None,
        }
    }

    /// Step of packet numbers, and the mask of their bits.
    pub(super) fn steps(&self) -> (u64, u64) {
        match (&self.format, self.group, self.frame) {
            // Numbers go through all frames.
            (Format::Counter(_), Some(_), Some(_)) => (1, u64::MAX),
            (Format::Counter(counter), ..) => (counter.step, counter.mask()),
            (Format::Vdif(_), ..) => (1, u64::MAX),
            // The mask depends on the flavour.
            (Format::Spead(spead), ..) => (spead.step, u64::MAX),
        }
    }

    /// Number of a packet in its stream, given the number that is expected next, if the stream is known.
    pub(super) fn number(&self, packet: &Numbered, expected: Option<u64>) -> u64 {
        match (self.group, self.frame) {
            (Some(packets), Some(place)) => {
                // Frame numbers of few bits wrap around; numbers of packets must not.
                let bits = place.bits().min(FRAME_BITS);
                let reference = expected.map_or((1 << FRAME_BITS) + packet.frame, |number| number / packets);
                unwrapped(packet.frame, bits, reference).wrapping_mul(packets).wrapping_add(packet.number)
            }
            _ => packet.number,
        }
    }

    /// Whether two packets of a sender are taken for packets of one stream: that their numbers are neighbors.
    pub(super) fn are_of_one_stream(&self, earlier: &[u8], later: &[u8]) -> bool {
        let (Ok(earlier), Ok(later)) = (self.read(earlier), self.read(later)) else { return false };
        if let (Some(earlier), Some(later)) = (earlier.vdif, later.vdif) {
            // Of the same thread, with lengths that agree with the packets.
            let apart_s = earlier.elapsed_s().abs_diff(later.elapsed_s());
            return apart_s <= NEAR_MAX && (apart_s > 0 || earlier.in_second != later.in_second);
        }
        let first = self.number(&earlier, None);
        let second = self.number(&later, Some(first));
        let (step, mask) = self.steps();
        let ahead = second.wrapping_sub(first) & mask;
        let distance = ahead.min(ahead.wrapping_neg() & mask);
        distance > 0 && distance.is_multiple_of(step) && distance / step <= NEAR_MAX
    }

    /// Whether a packet is a VDIF frame that its sender has marked as invalid.
    pub(super) fn is_marked_invalid(&self, packet: &[u8]) -> bool {
        self.read(packet).is_ok_and(|numbered| numbered.vdif.is_some_and(|frame| frame.is_invalid))
    }

    /// Sorts packets of a sender that has just been admitted.
    pub(super) fn sort(&self, packets: &mut [Packet]) {
        let read = |packet: &Packet| self.read(&packet.bytes).ok();
        let Some(first) = packets.first().and_then(read) else { return };
        let (_, mask) = self.steps();
        let (start, shift) = (self.number(&first, None), mask.leading_zeros());
        packets.sort_by_key(|packet| {
            let Some(numbered) = read(packet) else { return (0, 0) };
            let number = self.number(&numbered, Some(start));
            let distance = (number.wrapping_sub(start) << shift).cast_signed() >> shift;
            (numbered.vdif.map_or(0, |frame| frame.elapsed_s()), distance)
        });
    }

    /// Reads the header of a packet.
    pub(super) fn read(&self, packet: &[u8]) -> Result<Numbered, String> {
        match &self.format {
            Format::Counter(counter) => {
                let number = counter.read(packet, self.skip)?;
                let frame = self.frame.map(|place| place.read(packet, self.skip)).transpose()?;
                if let (Some(packets), Some(_)) = (self.group, frame)
                    && number >= packets
                {
                    return Err(format!("packet {number} of a frame of {packets} packets"));
                }
                let frame = frame.unwrap_or(0) & (u64::MAX >> (u64::BITS - FRAME_BITS));
                Ok(Numbered { number, frame, vdif: None })
            }
            Format::Vdif(_) => {
                let frame = vdif::Frame::read(packet.get(self.skip..).unwrap_or(&[]))?;
                Ok(Numbered { number: frame.in_second, frame: 0, vdif: Some(frame) })
            }
            Format::Spead(_) => Err("a part of a heap".to_owned()),
        }
    }
}

impl Format {
    /// What its numbers count.
    pub(super) fn unit(&self) -> &'static str {
        match self {
            Format::Counter(_) => "counter",
            Format::Vdif(_) => "frame",
            Format::Spead(_) => "heap",
        }
    }

    /// What is counted where it is not recorded.
    pub(super) fn event_unit(&self) -> RejectUnit {
        match self {
            Format::Counter(_) | Format::Vdif(_) => RejectUnit::Packet,
            Format::Spead(_) => RejectUnit::Heap,
        }
    }
}

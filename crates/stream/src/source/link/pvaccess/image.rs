//! The NTNDArray of a simulated IOC as NDPluginPva fills it: its type, and updates with the fields of an
//! image.
//!
//! Invariant: the length of everything around the pixels depends on the plan alone.
use super::super::super::event::Event;
use super::super::super::plan::{EventSize, SourcePlan};
use super::session::Monitor;
use crate::pvaccess::command::MONITOR;
use crate::pvaccess::{FLAG_SERVER, HEADER_BYTES, NUMBERS, Output, code};
use crate::wire::ElementType;

const NS_PER_S: u64 = 1_000_000_000;
/// Bits of the fields that an image changes: value, codec, compressedSize, uncompressedSize, dimension,
/// uniqueId, dataTimeStamp, attribute and timeStamp.
const CHANGED: [u32; 9] = [1, 2, 5, 6, 7, 8, 9, 13, 19];

/// Images of a source.
pub(super) struct Images {
    element: ElementType,
    /// Index of the element type in [`NUMBERS`].
    number: u32,
    /// Pixels along each dimension, the fastest one first.
    dimensions: Vec<u64>,
    type_text: Vec<u8>,
    request: u32,
    trailer_bytes: usize,
}

impl Images {
    /// Images as they are declared to a recorder, or else one line of bytes.
    pub(super) fn new(plan: &SourcePlan) -> Self {
        let bytes = plan.size.max_bytes();
        let (element, dimensions) = match plan.size {
            EventSize::Fixed(_) if !plan.shape.is_empty() => {
                (plan.element, plan.shape.iter().rev().copied().collect())
            }
            _ => (ElementType::U8, vec![bytes]),
        };
        // Truth values come first and have bytes, too.
        let number = NUMBERS.iter().rposition(|(.., known)| *known == element).unwrap_or(0) as u32;
        let mut type_text = Vec::new();
        put_image_type(&mut Output::new(&mut type_text, false));
        let mut images = Self { element, number, dimensions, type_text, request: 0, trailer_bytes: 0 };
        let mut trailer = Vec::new();
        images.put_fields(0, bytes, 0, &mut Output::new(&mut trailer, false));
        images.trailer_bytes = trailer.len();
        images
    }

    /// Description of the PV's type.
    pub(super) fn type_text(&self) -> &[u8] {
        &self.type_text
    }

    /// Sets the monitor that gets the images.
    pub(super) fn start(&mut self, monitor: Option<Monitor>) {
        self.request = monitor.map_or(0, |monitor| monitor.request);
    }

    /// The first update of a monitor: all fields of the PV before the first image.
    pub(super) fn first_update(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        Output::new(&mut bytes, false).message(FLAG_SERVER, MONITOR, |out| {
            // All fields have changed: one byte with the bit 0. The value selects no member.
            out.u32(self.request).u8(0).size(1).u8(1).u8(code::NULL);
            out.text("").u8(code::NULL).u64(0).u64(0).size(0).u32(0);
            put_time(out, 0);
            out.size(0).text("").u32(0).u32(0).text("");
            put_time(out, 0);
            out.u64(0).u64(0).text("").text("").text("").size(0);
        });
        bytes
    }

    /// Appends everything of an image in front of its pixels.
    pub(super) fn put_header(&self, event: &Event, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        let mut out = Output::new(bytes, false);
        out.head(FLAG_SERVER, MONITOR, 0);
        let mut bits = [0; 3];
        CHANGED.iter().for_each(|bit| bits[(bit / 8) as usize] |= 1 << (bit % 8));
        out.u32(self.request).u8(0).size(bits.len() as u32).raw(&bits);
        out.size(self.number).size((event.bytes / self.element.bytes()) as u32);
        let around = bytes.len() - start - HEADER_BYTES + self.trailer_bytes;
        // The plan was checked: it fits.
        let length = around as u32 + event.bytes as u32;
        bytes[start + 4..start + HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
    }

    /// Appends everything of an image behind its pixels.
    pub(super) fn put_trailer(&self, event: &Event, timestamp_ns: u64, bytes: &mut Vec<u8>) {
        // `uniqueId` counts from 1, and wraps around.
        let unique_id = event.sequence.wrapping_add(1) as u32;
        self.put_fields(unique_id, event.bytes, timestamp_ns, &mut Output::new(bytes, false));
    }

    /// The changed fields behind the value, and the bits of combined updates: there are none.
    fn put_fields(&self, unique_id: u32, bytes: u64, timestamp_ns: u64, out: &mut Output<'_>) {
        out.text("").u8(code::INT).u32(self.number).u64(bytes).u64(bytes);
        out.size(self.dimensions.len() as u32);
        for size in &self.dimensions {
            let size = *size as u32;
            out.u8(1).u32(size).u32(0).u32(size).u32(1).u8(0);
        }
        out.u32(unique_id);
        put_time(out, timestamp_ns);
        out.size(2);
        put_attribute(out, "ColorMode", "Color mode", |out| {
            out.u8(code::INT).u32(0);
        });
        put_attribute(out, "DriverVersion", "Simulated detector", |out| {
            out.u8(code::TEXT).text(concat!("keepup ", env!("CARGO_PKG_VERSION")));
        });
        put_time(out, timestamp_ns);
        out.size(0);
    }
}

/// A time, ns since the Unix epoch, and its tag.
fn put_time(out: &mut Output<'_>, unix_ns: u64) {
    out.u64(unix_ns / NS_PER_S).u32((unix_ns % NS_PER_S) as u32).u32(0);
}

/// An attribute of an image: name, value, description, and the driver as its source.
fn put_attribute(out: &mut Output<'_>, name: &str, description: &str, value: impl FnOnce(&mut Output<'_>)) {
    out.u8(1).text(name);
    value(out);
    out.size(0).text(description).u32(0).text("Driver");
}

/// Type of a time.
fn put_time_type(out: &mut Output<'_>) {
    out.structure("time_t", 3).text("secondsPastEpoch").u8(code::LONG);
    out.text("nanoseconds").u8(code::INT).text("userTag").u8(code::INT);
}

/// Type of the PV, as in the specification of normative types.
fn put_image_type(out: &mut Output<'_>) {
    out.structure("epics:nt/NTNDArray:1.0", 12);
    out.text("value").u8(code::UNION).text("").size(NUMBERS.len() as u32);
    for (name, number, _) in NUMBERS {
        out.text(&format!("{name}Value")).u8(number | code::FLAG_ARRAY);
    }
    out.text("codec").structure("codec_t", 2).text("name").u8(code::TEXT).text("parameters").u8(code::ANY);
    out.text("compressedSize").u8(code::LONG).text("uncompressedSize").u8(code::LONG);
    out.text("dimension").u8(code::STRUCTURE | code::FLAG_ARRAY).structure("dimension_t", 5);
    for name in ["size", "offset", "fullSize", "binning"] {
        out.text(name).u8(code::INT);
    }
    out.text("reverse").u8(code::BOOL);
    out.text("uniqueId").u8(code::INT);
    out.text("dataTimeStamp");
    put_time_type(out);
    out.text("attribute").u8(code::STRUCTURE | code::FLAG_ARRAY).structure("epics:nt/NTAttribute:1.0", 6);
    out.text("name")
        .u8(code::TEXT)
        .text("value")
        .u8(code::ANY)
        .text("tags")
        .u8(code::TEXT | code::FLAG_ARRAY);
    out.text("descriptor").u8(code::TEXT).text("sourceType").u8(code::INT).text("source").u8(code::TEXT);
    out.text("descriptor").u8(code::TEXT);
    out.text("alarm").structure("alarm_t", 3).text("severity").u8(code::INT).text("status").u8(code::INT);
    out.text("message").u8(code::TEXT);
    out.text("timeStamp");
    put_time_type(out);
    out.text("display").structure("display_t", 5).text("limitLow").u8(code::DOUBLE);
    out.text("limitHigh").u8(code::DOUBLE).text("description").u8(code::TEXT).text("format").u8(code::TEXT);
    out.text("units").u8(code::TEXT);
}

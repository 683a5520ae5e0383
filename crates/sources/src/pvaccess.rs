//! pvAccess monitor of an EPICS PV with images (NTNDArray), as areaDetector's NDPluginPva serves them.
//!
//! The PV is one stream, each image an event of it; its `uniqueId` numbers the events. The monitor is
//! pipelined: the server sends no more updates than were acknowledged, and an image is acknowledged when it
//! was taken. Invariant: an image becomes an item only if its size, type and codec are those of the stream.
mod frames;
mod image;
mod numbers;
mod types;
mod values;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use keepup_stream::ledger::LossCause;
use keepup_stream::pvaccess::command::{
    CONNECTION_VALIDATED, CONNECTION_VALIDATION, CREATE_CHANNEL, DESTROY_CHANNEL, ECHO, MONITOR,
};
use keepup_stream::pvaccess::monitor::{DESTROY, INIT, PIPELINE, START};
use keepup_stream::pvaccess::{Output, Reader, code};
use keepup_stream::wire::{ElementType, METADATA_MAX, StreamInfo};

use self::frames::{Frames, HEADROOM};
use self::image::{Fields, Layout, check_type};
use self::numbers::Numbers;
use self::types::{Type, Types};
use self::values::{Array, Values};
use crate::error::DetectorError;
use crate::{Decoder, Event, Input, Item, Limits};

/// Default of [`Options::queue`].
const QUEUE: u32 = 16;
/// Largest queue that a user may ask for.
pub(crate) const QUEUE_MAX: u32 = 65_536;
/// Interval of echo requests. A server disconnects a client that is silent for 30 to 60 s.
const ECHO_NS: u64 = 10_000_000_000;
/// Pause before a channel is created again that the server has closed.
const RETRY_NS: u64 = 1_000_000_000;

/// Options of a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Name of the PV, 1 to 200 bytes of visible characters.
    pub name: String,
    /// Images that the server queues while the recorder does not take any; at least 2.
    pub queue: u32,
}

impl Options {
    /// Options for the PV `name`.
    pub fn new(name: String) -> Self {
        Self { name, queue: QUEUE }
    }
}

/// Progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The server offers ways to authenticate.
    Greeting,
    /// The server answers the choice.
    Validation,
    /// The server creates the channel.
    Channel,
    /// The server describes the type of the PV.
    Init {
        server_id: u32,
    },
    Running {
        server_id: u32,
    },
    /// The server has closed the channel: create it again at `at_ns`, monotonic.
    Waiting {
        at_ns: Option<u64>,
    },
}

/// An image of the current message.
#[derive(Debug)]
struct Pending {
    payload: Range<usize>,
    sequence: u64,
    timestamp_ns: u64,
    /// The numbers with this image.
    numbers: Numbers,
}

/// What is not recorded, for the report.
#[derive(Debug, Default)]
struct Counts {
    /// Updates without pixels.
    empty: u64,
    /// Updates that the server combined because its queue was full.
    overruns: u64,
    /// Images that the HDF5 filter could not read.
    unreadable: u64,
    /// Times that the server closed the channel or ended the monitor.
    closed: u64,
}

/// Decoder of a monitor.
pub struct PvAccess {
    options: Options,
    frames: Frames,
    types: Types,
    phase: Phase,
    /// Number of the channel and monitor; the next ones get other numbers.
    id: u32,
    image_type: Option<Arc<Type>>,
    fields: Fields,
    /// Whether the next update is the first one of its monitor: the value that the server already had.
    is_first: bool,
    layout: Option<Layout>,
    streams: Vec<StreamInfo>,
    is_declared: bool,
    pending: Option<Pending>,
    numbers: Numbers,
    /// Whether the server has closed the channel since the last image.
    was_closed: bool,
    /// Updates that were taken since the last acknowledgement.
    unacknowledged: u32,
    metadata: BTreeMap<String, String>,
    counts: Counts,
    outgoing: Vec<u8>,
    echo_at_ns: Option<u64>,
    received_ns: u64,
    is_finishing: bool,
}

impl PvAccess {
    /// A decoder for a connection that has just been made.
    pub fn new(options: Options, limits: Limits) -> Self {
        Self {
            options,
            frames: Frames::new(limits.message_bytes_max),
            types: Types::default(),
            phase: Phase::Greeting,
            id: 1,
            image_type: None,
            fields: Fields::new(),
            is_first: true,
            layout: None,
            streams: Vec::new(),
            is_declared: false,
            pending: None,
            numbers: Numbers::default(),
            was_closed: false,
            unacknowledged: 0,
            metadata: BTreeMap::new(),
            counts: Counts::default(),
            outgoing: Vec::new(),
            echo_at_ns: None,
            received_ns: 0,
            is_finishing: false,
        }
    }

    fn send(&mut self, command: u8, put: impl FnOnce(&mut Output<'_>)) {
        self.frames.put(&mut self.outgoing, command, put);
    }

    /// Decodes the message that has arrived.
    fn decode(&mut self) -> Result<(), DetectorError> {
        match (self.frames.head().0, self.phase) {
            (CONNECTION_VALIDATION, Phase::Greeting) => {
                self.send(CONNECTION_VALIDATION, |out| {
                    // Sizes that no server uses, then the quality of service, and no credentials.
                    out.u32(0x1_0000).u16(0x7FFF).u16(0).text("anonymous").u8(0xFF);
                });
                self.phase = Phase::Validation;
            }
            (CONNECTION_VALIDATED, Phase::Validation) => {
                let status = self.reader().status()?;
                if status.is_failure {
                    return refused(format!("the server refuses an anonymous client: {}", status.text));
                }
                self.create_channel();
            }
            (CREATE_CHANNEL, Phase::Channel) => self.channel_created()?,
            (DESTROY_CHANNEL, Phase::Init { server_id } | Phase::Running { server_id })
                if self.reader().u32()? == server_id =>
            {
                self.closed();
            }
            (MONITOR, Phase::Init { server_id }) => self.monitor_created(server_id)?,
            (MONITOR, Phase::Running { server_id }) => self.update(server_id)?,
            // Answers to echo requests, log messages, and answers to an earlier channel.
            _ => {}
        }
        Ok(())
    }

    fn reader(&self) -> Reader<'_> {
        Reader::new(self.frames.bytes(), HEADROOM, self.frames.head().1)
    }

    fn create_channel(&mut self) {
        self.id = self.id.wrapping_add(1);
        let (id, name) = (self.id, self.options.name.clone());
        self.send(CREATE_CHANNEL, |out| {
            out.u16(1).u32(id).text(&name);
        });
        self.phase = Phase::Channel;
    }

    fn channel_created(&mut self) -> Result<(), DetectorError> {
        let mut reader = self.reader();
        let (id, server_id, status) = (reader.u32()?, reader.u32()?, reader.status()?);
        if id != self.id {
            return Ok(());
        }
        if status.is_failure && self.image_type.is_some() {
            // It was there before: the server may still be starting.
            self.closed();
            return Ok(());
        }
        if status.is_failure {
            return refused(format!("the server has no such PV: {}", status.text));
        }
        let queue = self.options.queue;
        self.send(MONITOR, |out| {
            out.u32(server_id).u32(id).u8(INIT | PIPELINE);
            put_request(out, queue);
            out.u32(queue);
        });
        (self.phase, self.is_first, self.unacknowledged) = (Phase::Init { server_id }, true, 0);
        Ok(())
    }

    fn monitor_created(&mut self, server_id: u32) -> Result<(), DetectorError> {
        let bytes = self.frames.bytes();
        let mut reader = Reader::new(bytes, HEADROOM, self.frames.head().1);
        let (id, subcommand) = (reader.u32()?, reader.u8()?);
        if id != self.id || subcommand & INIT == 0 {
            return Ok(());
        }
        let status = reader.status()?;
        if status.is_failure {
            return refused(format!("the server refuses the monitor: {}", status.text));
        }
        let found = self.types.read(&mut reader)?;
        let found = found.ok_or_else(|| DetectorError::PvAccess("the PV has no type".into()))?;
        check_type(&found).map_err(DetectorError::PvAccess)?;
        self.image_type = Some(found);
        self.send(MONITOR, |out| {
            out.u32(server_id).u32(id).u8(START);
        });
        self.phase = Phase::Running { server_id };
        Ok(())
    }

    /// Notes that the channel is closed, and creates it again later.
    fn closed(&mut self) {
        self.counts.closed += 1;
        self.was_closed |= self.numbers.last.is_some();
        self.phase = Phase::Waiting { at_ns: None };
    }

    fn update(&mut self, server_id: u32) -> Result<(), DetectorError> {
        let mut reader = Reader::new(self.frames.bytes(), HEADROOM, self.frames.head().1);
        let (id, subcommand) = (reader.u32()?, reader.u8()?);
        if id != self.id || subcommand & INIT != 0 {
            return Ok(());
        }
        let is_end = subcommand & DESTROY != 0;
        if is_end && (reader.status()?.is_failure || reader.is_at_end()) {
            self.end(server_id);
            return Ok(());
        }
        let Some(image_type) = self.image_type.clone() else { return Ok(()) };
        let bits = reader.bits()?;
        let mut values = Values { reader, types: &mut self.types };
        let array = self.fields.update(&mut values, &image_type, bits)?;
        let is_overrun = !values.reader.bits()?.is_empty();
        self.counts.overruns += u64::from(is_overrun && !self.is_first);
        match array {
            Some(array) => self.image(&array)?,
            None => self.counts.empty += u64::from(!self.is_first),
        }
        self.is_first = false;
        self.unacknowledged += u32::from(self.pending.is_none());
        if is_end {
            self.end(server_id);
        }
        Ok(())
    }

    /// Notes that the server has ended the monitor.
    fn end(&mut self, server_id: u32) {
        let id = self.id;
        self.send(DESTROY_CHANNEL, |out| {
            out.u32(server_id).u32(id);
        });
        self.closed();
    }

    /// Takes the pixels of an update.
    fn image(&mut self, array: &Array) -> Result<(), DetectorError> {
        let id = self.fields.unique_id;
        // The server repeats the image that it had before the recording, or before the reconnection.
        let is_old = self.is_first && self.numbers.last.is_none_or(|last| last == id);
        if is_old {
            return Ok(());
        }
        let Some(layout) = self.fields.layout(array)? else {
            self.counts.empty += 1;
            return Ok(());
        };
        if let Some(first) = self.layout.as_ref().filter(|first| **first != layout) {
            if self.is_first {
                // An image from before the reconnection; the next one shows whether the size has changed.
                return Ok(());
            }
            let (found, expected) = (layout.text(), first.text());
            return Err(DetectorError::Series(format!(
                "image {id} is {found}; the images before are {expected}"
            )));
        }
        let Some(header) = layout.chunk_header(array.bytes.len()) else {
            self.counts.unreadable += 1;
            return Ok(());
        };
        if self.layout.is_none() {
            self.declare(layout);
        }
        let is_big_endian = self.frames.head().1;
        let message = self.frames.bytes_mut();
        let size = array.element.bytes() as usize;
        if is_big_endian && size > 1 {
            message[array.bytes.clone()].chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        // Everything in front of the pixels was decoded: the header takes its place.
        let start = array.bytes.start - header.len();
        message[start..array.bytes.start].copy_from_slice(&header);
        let (sequence, numbers) = self.numbers.with(id);
        let timestamp_ns = self.fields.time_ns().unwrap_or(self.received_ns);
        self.pending = Some(Pending { payload: start..array.bytes.end, sequence, timestamp_ns, numbers });
        Ok(())
    }

    /// Declares the stream of the first image.
    fn declare(&mut self, layout: Layout) {
        self.fields.wants_attributes = false;
        let mut metadata = std::mem::take(&mut self.fields.attributes);
        // Our own entries come first if there are too many.
        while metadata.len() + 3 > METADATA_MAX {
            metadata.pop_last();
        }
        metadata.insert("pv".to_owned(), self.options.name.clone());
        metadata.insert("first_unique_id".to_owned(), self.fields.unique_id.to_string());
        if !layout.codec.is_empty() {
            metadata.insert("codec".to_owned(), layout.text());
        }
        self.metadata = metadata;
        let (element, shape) = match layout.element {
            Some(element) if !layout.is_opaque() => (element, layout.shape.clone()),
            _ => (ElementType::U8, Vec::new()),
        };
        let (name, compression) = (self.options.name.clone(), layout.compression());
        self.streams = vec![StreamInfo { id: 0, name, element, shape, compression }];
        self.layout = Some(layout);
    }

    /// Acknowledges the updates that were taken. It does not wait for more of them: some servers have a
    /// shorter queue than they were asked for, and send nothing before they can reuse an entry.
    fn acknowledge(&mut self) {
        let (id, count) = (self.id, std::mem::take(&mut self.unacknowledged));
        if let Phase::Running { server_id } = self.phase
            && count > 0
        {
            self.send(MONITOR, |out| {
                out.u32(server_id).u32(id).u8(PIPELINE).u32(count);
            });
        }
    }
}

impl Decoder for PvAccess {
    fn input(&mut self) -> Input<'_> {
        Input::Bytes(self.frames.space())
    }

    fn received(&mut self, count: usize, unix_ns: u64) {
        self.received_ns = unix_ns;
        self.frames.received(count);
    }

    fn item(&mut self) -> Result<Option<Item<'_>>, DetectorError> {
        while self.pending.is_none() {
            self.frames.take();
            if !self.frames.has_message()? {
                return Ok(None);
            }
            self.decode()?;
        }
        if !self.is_declared {
            return Ok(Some(Item::Streams(&self.streams)));
        }
        Ok(self.pending.as_ref().map(|pending| {
            Item::Event(Event {
                stream: 0,
                sequence: pending.sequence,
                timestamp_ns: pending.timestamp_ns,
                missing: self.was_closed.then_some(LossCause::ConnectionLost),
                payload: &self.frames.bytes()[pending.payload.clone()],
            })
        }))
    }

    fn take(&mut self) {
        if !std::mem::replace(&mut self.is_declared, true) {
            return;
        }
        if let Some(pending) = self.pending.take() {
            (self.numbers, self.was_closed) = (pending.numbers, false);
            self.unacknowledged = self.unacknowledged.saturating_add(1);
        }
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    fn remarks(&mut self) -> Vec<String> {
        if !self.is_finishing {
            return Vec::new();
        }
        let Counts { empty, overruns, unreadable, closed } = std::mem::take(&mut self.counts);
        let Numbers { restarts, repeats, .. } = self.numbers;
        (self.numbers.restarts, self.numbers.repeats) = (0, 0);
        let remarks = [
            (closed, "times that the server closed the PV or did not have it again yet"),
            (overruns, "updates that the server combined because its queue was full"),
            (empty, "updates without an image"),
            (unreadable, "images not recorded: HDF5's LZ4 filter could not read them"),
            (repeats, "images with the uniqueId of the image before; missing images cannot be detected"),
            (restarts, "restarts of uniqueId; losses at a restart are unknown"),
        ];
        let remarks = remarks.into_iter().filter(|(count, _)| *count > 0);
        remarks.map(|(count, what)| format!("{what}: {count}")).collect()
    }

    fn outgoing(&mut self) -> Vec<u8> {
        self.acknowledge();
        std::mem::take(&mut self.outgoing)
    }

    fn bytes_due(&self) -> usize {
        self.frames.bytes_due()
    }

    fn is_within_message(&self) -> bool {
        let is_shaking_hands = matches!(self.phase, Phase::Greeting | Phase::Validation | Phase::Channel);
        is_shaking_hands || self.frames.is_within_message()
    }

    fn tick(&mut self, now_ns: u64) {
        if let Phase::Waiting { at_ns } = &mut self.phase
            && now_ns >= *at_ns.get_or_insert(now_ns.saturating_add(RETRY_NS))
        {
            self.create_channel();
        }
        let is_connected = !matches!(self.phase, Phase::Greeting | Phase::Validation);
        if is_connected && now_ns >= *self.echo_at_ns.get_or_insert(now_ns.saturating_add(ECHO_NS)) {
            self.send(ECHO, |_| {});
            self.echo_at_ns = None;
        }
    }

    fn reconnect(&mut self) {
        self.frames.reconnect();
        self.types = Types::default();
        (self.phase, self.pending, self.is_declared) = (Phase::Greeting, None, false);
        (self.echo_at_ns, self.unacknowledged) = (None, 0);
        self.outgoing.clear();
    }

    fn finish(&mut self, _drops: u32) {
        self.is_finishing = true;
    }
}

/// The type and value of the request: all fields, and the options of the record as texts, which every server
/// understands.
fn put_request(out: &mut Output<'_>, queue: u32) {
    out.structure("", 2);
    out.text("field").structure("", 0);
    out.text("record").structure("", 1);
    out.text("_options").structure("", 2);
    out.text("pipeline").u8(code::TEXT).text("queueSize").u8(code::TEXT);
    out.text("true").text(&queue.to_string());
}

fn refused<T>(what: String) -> Result<T, DetectorError> {
    Err(DetectorError::PvAccess(what))
}

#[cfg(test)]
#[path = "pvaccess_tests.rs"]
mod tests;

//! pvAccess monitor of an EPICS PV with images (NTNDArray), as areaDetector's NDPluginPva serves them.
//!
//! The PV is one stream, each image an event of it; its `uniqueId` numbers the events. The monitor is
//! pipelined: the server sends no more updates than were acknowledged, and an image is acknowledged when it
//! was taken or is held until its predecessors arrive. An image that cannot be recorded is rejected, and the
//! stream goes on. Invariant: an image becomes an item only if its size, type and codec are those of the
//! stream.
mod arrival;
mod frames;
mod image;
mod order;
mod types;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use keepup_stream::ledger::LossCause;
use keepup_stream::pvaccess::command::{
    CONNECTION_VALIDATED, CONNECTION_VALIDATION, CREATE_CHANNEL, DESTROY_CHANNEL, ECHO, MONITOR,
};
use keepup_stream::pvaccess::monitor::{DESTROY, INIT, PIPELINE, START};
use keepup_stream::pvaccess::{Output, Reader, code};
use keepup_stream::rejected::RejectReason::Incomplete;
use keepup_stream::rejected::{RejectUnit, Rejection};
use keepup_stream::wire::StreamInfo;

use self::arrival::{Image, Pending};
use self::frames::{Frames, HEADROOM};
use self::image::{Fields, Layout, check_type};
use self::order::Order;
use self::types::{Type, Types};
use self::values::Values;
use crate::error::DetectorError;
use crate::rejects::Rejects;
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

/// What is not recorded, for the report.
#[derive(Debug, Default)]
struct Counts {
    /// Updates without pixels.
    empty: u64,
    /// Updates that the server combined because its queue was full.
    overruns: u64,
    /// Images that were recorded already, with the same content.
    repeated: u64,
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
    order: Order<(Image, Vec<u8>)>,
    /// Checksum of the item that is taken next, if it was recorded.
    crc: Option<u32>,
    rejects: Rejects,
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
            order: Order::new(),
            crc: None,
            rejects: Rejects::default(),
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
        self.was_closed |= self.order.last_id().is_some();
        self.order.after_loss();
        self.note_refused();
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
            Some(array) => self.image(&array),
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

    /// Keeps the whole images that have not been taken, and forgets what has arrived in part.
    fn disconnect(&mut self) {
        self.hold_again();
        while matches!(self.phase, Phase::Running { .. }) {
            self.frames.take();
            // An error makes no difference any more: the rest of what has arrived is lost.
            if !self.frames.has_message().unwrap_or(false) || self.decode().is_err() {
                break;
            }
            self.hold_again();
        }
        if matches!(self.phase, Phase::Running { .. }) && self.frames.has_part() {
            self.rejects.add(Incomplete, RejectUnit::Message, "the connection was lost within a message");
        }
        self.order.after_loss();
        self.note_refused();
        self.frames.reconnect();
        self.types = Types::default();
        self.phase = Phase::Greeting;
        (self.echo_at_ns, self.unacknowledged) = (None, 0);
        self.outgoing.clear();
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
        while self.pending.is_none() && !self.hand_out_due() {
            self.frames.take();
            if !self.frames.has_message()? {
                return Ok(None);
            }
            self.decode()?;
        }
        if !self.is_declared {
            return Ok(Some(Item::Streams(&self.streams)));
        }
        Ok(self.pending.as_ref().map(|Pending { sequence, image, message }| {
            let message = message.as_deref().unwrap_or(self.frames.bytes());
            Item::Event(Event {
                stream: 0,
                sequence: *sequence,
                timestamp_ns: image.timestamp_ns,
                missing: image.is_after_closing.then_some(LossCause::ConnectionLost),
                payload: &message[image.payload.clone()],
            })
        }))
    }

    fn take(&mut self) {
        if !std::mem::replace(&mut self.is_declared, true) {
            return;
        }
        let crc = self.crc.take();
        if let Some(Pending { sequence, image, message }) = self.pending.take() {
            let digest = image.digest(message.as_deref().unwrap_or(self.frames.bytes()), crc);
            self.order.handed_out(sequence, digest);
            // One that has waited was acknowledged then.
            self.unacknowledged = self.unacknowledged.saturating_add(message.is_none().into());
        }
    }

    fn completed(&mut self, crc: u32) {
        self.crc = Some(crc);
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    fn remarks(&mut self) -> Vec<String> {
        if !self.is_finishing {
            return Vec::new();
        }
        let Counts { empty, overruns, repeated, closed } = std::mem::take(&mut self.counts);
        let restarts = std::mem::take(&mut self.order.restarts);
        let repeats = std::mem::take(&mut self.order.repeats);
        let remarks = [
            (closed, "times that the server closed the PV or did not have it again yet"),
            (overruns, "updates that the server combined because its queue was full"),
            (empty, "updates without an image"),
            (repeated, "repeated images, identical to those that are recorded"),
            (repeats, "images with the uniqueId of the image before; missing images cannot be detected"),
            (restarts, "restarts of uniqueId; losses at a restart are unknown"),
        ];
        let remarks = remarks.into_iter().filter(|(count, _)| *count > 0);
        remarks.map(|(count, what)| format!("{what}: {count}")).collect()
    }

    fn rejected(&mut self) -> Vec<Rejection> {
        self.rejects.take()
    }

    fn outgoing(&mut self) -> Vec<u8> {
        self.acknowledge();
        std::mem::take(&mut self.outgoing)
    }

    fn has_due(&self) -> bool {
        self.order.images.has_due()
    }

    fn bytes_due(&self) -> usize {
        self.frames.bytes_due()
    }

    fn is_within_message(&self) -> bool {
        let is_shaking_hands = matches!(self.phase, Phase::Greeting | Phase::Validation | Phase::Channel);
        is_shaking_hands || self.frames.is_within_message()
    }

    fn tick(&mut self, now_ns: u64) {
        self.order.tick(now_ns);
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
        self.disconnect();
        self.is_declared = false;
    }

    fn disconnected(&mut self) {
        self.disconnect();
    }

    fn finish(&mut self, _drops: u32) {
        self.order.end();
        self.note_refused();
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

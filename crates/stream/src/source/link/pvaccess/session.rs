//! Server side of a pvAccess connection: bytes of a client become answers. Pure.
//!
//! Invariants: messages and answers have a bounded length; a client has a bounded number of channels and one
//! monitor.
use std::collections::BTreeSet;

use super::super::super::PV_NAME;
use crate::pvaccess::command::{
    CONNECTION_VALIDATED, CONNECTION_VALIDATION, CREATE_CHANNEL, DESTROY_CHANNEL, DESTROY_REQUEST, ECHO, GET,
    GET_FIELD, MONITOR, PUT, PUT_GET, RPC, SEARCH, SEARCH_RESPONSE,
};
use crate::pvaccess::monitor::{DESTROY, INIT, PIPELINE, START, STOP};
use crate::pvaccess::{
    FLAG_CONTROL, FLAG_SEGMENTS, FLAG_SERVER, HEADER_BYTES, Head, Malformed, Output, Reader, SET_BYTE_ORDER,
    code,
};

/// Longest message of a client.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Most answers that wait for the client to read them.
const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Most channels of a client.
const CHANNELS_MAX: usize = 16;
/// Number of the first channel.
const FIRST_CHANNEL: u32 = 1;

/// Progress of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It has not started a monitor.
    Waiting,
    /// It has started a monitor.
    Running,
    /// It has ended its monitor.
    Ended,
}

/// A client's monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Monitor {
    channel: u32,
    /// Number that the client gave it.
    pub(super) request: u32,
    is_running: bool,
    /// Size of the client's queue; `None`: it does not acknowledge updates.
    queue: Option<u64>,
    sent: u64,
    acknowledged: u64,
}

impl Monitor {
    fn credit(&self) -> u64 {
        match self.queue {
            _ if !self.is_running => 0,
            Some(queue) => queue.saturating_sub(self.sent.saturating_sub(self.acknowledged)),
            None => u64::MAX,
        }
    }
}

/// State of a client's connection.
pub(super) struct Session {
    /// Description of the PV's type.
    type_text: Vec<u8>,
    port: u16,
    input: Vec<u8>,
    output: Vec<u8>,
    next_channel: u32,
    channels: BTreeSet<u32>,
    monitor: Option<Monitor>,
    has_ended: bool,
}

impl Session {
    /// A connection that has just been made to a server at `port`.
    pub(super) fn new(type_text: Vec<u8>, port: u16) -> Self {
        let mut session = Self {
            type_text,
            port,
            input: Vec::new(),
            output: Vec::new(),
            next_channel: FIRST_CHANNEL,
            channels: BTreeSet::new(),
            monitor: None,
            has_ended: false,
        };
        Output::new(&mut session.output, false).head(FLAG_SERVER | FLAG_CONTROL, SET_BYTE_ORDER, 0);
        session.answer(CONNECTION_VALIDATION, |out| {
            // Sizes that no client uses, then the ways to authenticate.
            out.u32(0x1_0000).u16(0x7FFF).size(1).text("anonymous");
        });
        session
    }

    /// Progress of the client.
    pub(super) fn status(&self) -> Status {
        match self.monitor {
            _ if self.has_ended => Status::Ended,
            Some(Monitor { is_running: true, .. }) => Status::Running,
            _ => Status::Waiting,
        }
    }

    /// The client's monitor.
    pub(super) fn monitor(&self) -> Option<Monitor> {
        self.monitor
    }

    /// Number of updates that the client takes now.
    pub(super) fn credit(&self) -> u64 {
        self.monitor.map_or(0, |monitor| monitor.credit())
    }

    /// Notes that `updates` are sent.
    pub(super) fn spend(&mut self, updates: u64) {
        if let Some(monitor) = &mut self.monitor {
            monitor.sent = monitor.sent.saturating_add(updates);
        }
    }

    /// Number of updates that the client has not acknowledged; `None` if it does not acknowledge any.
    pub(super) fn unacknowledged(&self) -> Option<u64> {
        let monitor = self.monitor.filter(|monitor| monitor.queue.is_some())?;
        Some(monitor.sent.saturating_sub(monitor.acknowledged))
    }

    /// Sends an update of the monitor.
    pub(super) fn push_update(&mut self, update: &[u8]) {
        self.output.extend_from_slice(update);
        self.spend(1);
    }

    /// Answers that were not sent.
    pub(super) fn output(&self) -> &[u8] {
        &self.output
    }

    /// The first `count` bytes of the answers were sent.
    pub(super) fn sent(&mut self, count: usize) {
        self.output.drain(..count.min(self.output.len()));
    }

    /// These bytes of the answers were not sent after all.
    pub(super) fn put_back(&mut self, bytes: Vec<u8>) {
        self.output.splice(0..0, bytes);
    }

    /// Takes what the client has sent.
    ///
    /// # Errors
    /// It violates the protocol, or does not read the answers.
    pub(super) fn received(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.input.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(head) = Head::read(&self.input[at..])? {
            let is_control = head.flags & FLAG_CONTROL != 0;
            if head.flags & FLAG_SERVER != 0 || (!is_control && head.flags & FLAG_SEGMENTS != 0) {
                return malformed(format!("a client's message has the flags {:#04x}", head.flags));
            }
            let length = if is_control { 0 } else { head.length as usize };
            if length > MESSAGE_BYTES_MAX {
                return malformed(format!("a client's message has {length} bytes"));
            }
            let start = at + HEADER_BYTES;
            let Some(body) = self.input.get(start..start + length) else { break };
            at = start + length;
            if !is_control {
                let body = body.to_vec();
                self.handle(head, &body)?;
            }
            if self.output.len() > OUTPUT_BYTES_MAX {
                return malformed("the client does not read the answers".to_owned());
            }
        }
        self.input.drain(..at);
        Ok(())
    }

    fn answer(&mut self, command: u8, put: impl FnOnce(&mut Output<'_>)) {
        Output::new(&mut self.output, false).message(FLAG_SERVER, command, put);
    }

    fn handle(&mut self, head: Head, body: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(body, 0, head.is_big_endian());
        match head.command {
            // The choice does not matter: everyone may read.
            CONNECTION_VALIDATION => self.answer(CONNECTION_VALIDATED, |out| {
                out.status(None);
            }),
            ECHO => self.answer(ECHO, |out| {
                out.raw(body);
            }),
            SEARCH => self.search(&mut reader)?,
            CREATE_CHANNEL => self.create_channel(&mut reader)?,
            DESTROY_CHANNEL => {
                let (channel, id) = (reader.u32()?, reader.u32()?);
                if self.channels.remove(&channel) {
                    self.end(|monitor| monitor.channel == channel);
                    self.answer(DESTROY_CHANNEL, |out| {
                        out.u32(channel).u32(id);
                    });
                }
            }
            GET_FIELD => {
                let (channel, request) = (reader.u32()?, reader.u32()?);
                let type_text = self.known(channel).then(|| self.type_text.clone());
                self.answer(GET_FIELD, |out| {
                    out.u32(request);
                    put_type(out, type_text.as_deref(), "the channel is not known");
                });
            }
            command @ (GET | PUT | PUT_GET | RPC) => {
                let (_, request, subcommand) = (reader.u32()?, reader.u32()?, reader.u8()?);
                self.answer(command, |out| {
                    out.u32(request).u8(subcommand).status(Some("the simulated IOC has monitors only"));
                });
            }
            MONITOR => {
                // The size of the queue is at the end, behind a request of any type.
                let queue = Reader::new(body, body.len().saturating_sub(4), head.is_big_endian()).u32()?;
                self.monitor_request(&mut reader, queue)?;
            }
            DESTROY_REQUEST => {
                let (_, request) = (reader.u32()?, reader.u32()?);
                self.end(|monitor| monitor.request == request);
            }
            // Log messages, and requests to cancel others.
            _ => {}
        }
        Ok(())
    }

    fn known(&self, channel: u32) -> bool {
        self.channels.contains(&channel)
    }

    /// Ends the monitor if it is `that`.
    fn end(&mut self, that: impl Fn(&Monitor) -> bool) {
        if let Some(monitor) = self.monitor.take_if(|monitor| that(monitor)) {
            self.has_ended |= monitor.is_running || monitor.sent > 0;
        }
    }

    /// Answers a search for PVs, which clients with the address of a name server send over TCP.
    fn search(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        const REPLY_REQUIRED: u8 = 1;
        let (sequence, flags) = (reader.u32()?, reader.u8()?);
        // Reserved bytes, and the address and port for the answer, which goes back over this connection.
        reader.range(3 + 16 + 2, 1)?;
        for _ in 0..reader.count()? {
            reader.text()?;
        }
        let mut found = Vec::new();
        for _ in 0..reader.u16()? {
            let (id, name) = (reader.u32()?, reader.text()?);
            if name == PV_NAME {
                found.push(id);
            }
        }
        if found.is_empty() && flags & REPLY_REQUIRED == 0 {
            return Ok(());
        }
        let port = self.port;
        self.answer(SEARCH_RESPONSE, |out| {
            // A server without restarts needs no identity. An address of zeros is that of the connection.
            out.raw(b"keepup ioc\0\0").u32(sequence).raw(&[0; 16]).u16(port).text("tcp");
            out.u8(u8::from(!found.is_empty())).u16(found.len() as u16);
            found.iter().for_each(|id| {
                out.u32(*id);
            });
        });
        Ok(())
    }

    fn create_channel(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        for _ in 0..reader.u16()? {
            let (id, name) = (reader.u32()?, reader.text()?);
            let failure = if name != PV_NAME {
                Some(format!("the only PV is {PV_NAME}"))
            } else if self.channels.len() >= CHANNELS_MAX {
                Some("too many channels".to_owned())
            } else {
                None
            };
            let channel = self.next_channel;
            if failure.is_none() {
                self.channels.insert(channel);
                self.next_channel = channel.wrapping_add(1);
            }
            self.answer(CREATE_CHANNEL, |out| {
                out.u32(id).u32(channel).status(failure.as_deref());
            });
        }
        Ok(())
    }

    fn monitor_request(&mut self, reader: &mut Reader<'_>, queue: u32) -> Result<(), Malformed> {
        let (channel, request, subcommand) = (reader.u32()?, reader.u32()?, reader.u8()?);
        if subcommand & INIT != 0 {
            let failure = if !self.known(channel) {
                Some("the channel is not known")
            } else if self.monitor.is_some() || self.has_ended {
                Some("the simulated IOC serves one monitor")
            } else {
                // The request itself is not read: a monitor has all fields of the PV.
                let queue = (subcommand & PIPELINE != 0).then(|| u64::from(queue.max(1)));
                self.monitor =
                    Some(Monitor { channel, request, is_running: false, queue, sent: 0, acknowledged: 0 });
                None
            };
            let type_text = failure.is_none().then(|| self.type_text.clone());
            self.answer(MONITOR, |out| {
                out.u32(request).u8(INIT);
                put_type(out, type_text.as_deref(), failure.unwrap_or_default());
            });
            return Ok(());
        }
        let Some(monitor) = self.monitor.as_mut().filter(|monitor| monitor.request == request) else {
            return Ok(());
        };
        if subcommand & PIPELINE != 0 {
            let count = u64::from(reader.u32()?);
            monitor.acknowledged = monitor.acknowledged.saturating_add(count).min(monitor.sent);
        }
        if subcommand & STOP != 0 {
            monitor.is_running = subcommand & START == START;
        }
        if subcommand & DESTROY != 0 {
            self.end(|monitor| monitor.request == request);
        }
        Ok(())
    }
}

/// Appends the outcome of a request, and the type of the PV if it succeeded.
fn put_type(out: &mut Output<'_>, type_text: Option<&[u8]>, failure: &str) {
    match type_text {
        Some(type_text) => out.status(None).raw(type_text),
        None => out.status(Some(failure)),
    };
}

fn malformed<T>(why: String) -> Result<T, Malformed> {
    Err(Malformed(why))
}

/// Everything that a client sends to monitor a simulated IOC without acknowledgements. It does not have to
/// wait for the answers.
#[must_use]
pub fn subscription() -> Vec<u8> {
    const REQUEST: u32 = 1;
    let mut bytes = Vec::new();
    let mut out = Output::new(&mut bytes, false);
    out.message(0, CONNECTION_VALIDATION, |out| {
        out.u32(0x1_0000).u16(0x7FFF).u16(0).text("anonymous").u8(code::NULL);
    });
    out.message(0, CREATE_CHANNEL, |out| {
        out.u16(1).u32(1).text(PV_NAME);
    });
    out.message(0, MONITOR, |out| {
        out.u32(FIRST_CHANNEL).u32(REQUEST).u8(INIT).structure("", 0);
    });
    out.message(0, MONITOR, |out| {
        out.u32(FIRST_CHANNEL).u32(REQUEST).u8(START);
    });
    bytes
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;

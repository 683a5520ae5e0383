//! What a recorder has answered on a connection.
use std::net::{SocketAddr, TcpStream};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::ClientError;
use super::inbox::{Frame, Inbox};
use crate::wire::{Bye, FrameKind, Located, StreamIndex, StreamInfo, Welcome, WireError};

/// The recorder's progress on one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acked {
    /// First sequence number that is not yet durable.
    pub durable_next: u64,
    /// Sequence number that the recorder expects next.
    pub received_next: u64,
    /// Events below `durable_next` that reached the recorder and are not stored, over all connections.
    pub lost_events: u64,
}

/// Answers of a recorder.
#[derive(Debug)]
pub(super) struct Answers {
    inbox: Inbox,
    index: StreamIndex,
    pub(super) acks: Vec<Acked>,
    /// Losses of each stream before this connection, from the welcome.
    pub(super) lost_before: Vec<u64>,
    pub(super) welcome: Option<Welcome>,
    pub(super) bye: Option<Bye>,
    pub(super) located: Option<Located>,
}

impl Answers {
    pub(super) fn new(streams: &[StreamInfo]) -> Self {
        Self {
            inbox: Inbox::default(),
            index: StreamIndex::new(streams),
            acks: vec![Acked::default(); streams.len()],
            lost_before: vec![0; streams.len()],
            welcome: None,
            bye: None,
            located: None,
        }
    }

    /// Reads what has arrived at `socket`, without waiting.
    pub(super) fn read(&mut self, socket: &TcpStream, addr: SocketAddr) -> Result<(), ClientError> {
        let mut buffer = [0u8; 4096];
        loop {
            match recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(ClientError::Closed { action: "read from", addr }),
                Ok((count, _)) => {
                    self.inbox.push(&buffer[..count]);
                    while let Some(frame) = self.inbox.next_frame()? {
                        self.take_frame(frame)?;
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(ClientError::of_socket("read from", addr, errno)),
            }
        }
    }

    fn take_frame(&mut self, frame: Frame) -> Result<(), ClientError> {
        match frame {
            Frame::Ack(ack) => {
                let at = self.index.get(ack.stream).ok_or(WireError::Unexpected {
                    kind: FrameKind::Ack,
                    why: "it names a stream that hello did not declare",
                })?;
                let acked = &mut self.acks[at];
                acked.durable_next = acked.durable_next.max(ack.durable_next);
                acked.received_next = acked.received_next.max(ack.received_next);
                acked.lost_events = acked.lost_events.max(ack.lost_events);
            }
            Frame::Welcome(welcome) => self.welcome = Some(welcome),
            Frame::Bye(bye) => self.bye = Some(bye),
            Frame::Located(located) => self.located = Some(located),
            Frame::Error(reply) => {
                return Err(ClientError::Refused { error: reply.error, hint: reply.hint });
            }
        }
        Ok(())
    }

    /// Checks that the welcome has the next sequence number of every declared stream.
    pub(super) fn enter_welcome(
        &mut self,
        welcome: &Welcome,
        streams: &[StreamInfo],
    ) -> Result<(), ClientError> {
        let known = welcome.streams.iter().filter(|s| self.index.get(s.id).is_some()).count();
        if known != streams.len() || welcome.streams.len() != streams.len() {
            let what = format!("{} streams declared, {known} of them answered", streams.len());
            return Err(WireError::Invalid { kind: FrameKind::Welcome, what: what.into() }.into());
        }
        for stream in &welcome.streams {
            if let Some(at) = self.index.get(stream.id) {
                self.acks[at] = Acked {
                    durable_next: stream.durable_next,
                    received_next: stream.next_sequence,
                    lost_events: stream.lost_events,
                };
                self.lost_before[at] = stream.lost_events;
            }
        }
        Ok(())
    }
}

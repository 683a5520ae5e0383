//! Documents that the owner of a recording adds to it, such as the configuration of a detector.
//!
//! Each document is the only event of a stream of bytes. It is sent in keepup's own protocol over a socket
//! pair, so it takes the path of all events. The stream is declared with the document, which fixes its shape.
use std::io::ErrorKind::UnexpectedEof;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use keepup_recording::crc::Crc32;
use keepup_stream::wire::{
    ControlMessage, ElementType, End, EndStream, ErrorReply, FrameKind, HEADER_BYTES, Header, Hello,
    MAX_CONTROL_BYTES, STREAM_ID_END, StreamInfo,
};

use crate::RecorderError;

/// Limit on each wait for the recorder, which may wait for memory.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sender of one document.
#[derive(Debug)]
pub struct DocumentSender {
    id: u32,
    name: String,
    socket: UnixStream,
}

/// Senders of documents with these names, and the recorder's ends of their sockets.
pub(crate) fn pairs(names: &[String]) -> Result<(Vec<DocumentSender>, Vec<OwnedFd>), RecorderError> {
    let pair = |(id, name): (u32, &String)| {
        let (socket, recorder) = UnixStream::pair()?;
        recorder.set_nonblocking(true)?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok((DocumentSender { id, name: name.clone(), socket }, OwnedFd::from(recorder)))
    };
    // Ids from the top: those of detectors begin at 0, those of their maps above the middle.
    let pairs: std::io::Result<Vec<_>> = (0..STREAM_ID_END).rev().zip(names).map(pair).collect();
    let fail =
        |e: std::io::Error| RecorderError::Config { what: format!("cannot add a document: {e}").into() };
    Ok(pairs.map_err(fail)?.into_iter().unzip())
}

impl DocumentSender {
    /// Sends the document, with its time in ns since the Unix epoch, and waits until it is durable.
    ///
    /// # Errors
    /// The recorder does not take it, for example because it has ended or because the document is too large.
    pub fn send(mut self, timestamp_ns: u64, document: &[u8]) -> std::io::Result<()> {
        let bytes = document.len() as u64;
        let (element, shape, compression) = (ElementType::U8, vec![bytes], None);
        let info = StreamInfo { id: self.id, name: self.name.clone(), element, shape, compression };
        let mut crc = Crc32::new();
        crc.update(document);
        let header = Header {
            kind: FrameKind::Event,
            stream: self.id,
            sequence: 0,
            timestamp_ns,
            length: bytes,
            crc: crc.value(),
            a: 0,
            b: 0,
        };
        let last =
            EndStream { id: self.id, events: 1, bytes, lost_events: 0, lost_bytes: 0, next_sequence: 1 };
        let hello = Hello::new(&self.name, vec![info]).to_frame().map_err(other)?;
        let end = End { streams: vec![last] }.to_frame().map_err(other)?;
        let parts = [&hello[..], &header.encode(), document, &end];
        let sent = parts.iter().try_for_each(|part| self.socket.write_all(part));
        // A recorder that refuses says why, and reads no further.
        self.await_bye().map_err(|why| sent.err().filter(|_| why.kind() == UnexpectedEof).unwrap_or(why))
    }

    /// Waits for the recorder's last message.
    fn await_bye(&mut self) -> std::io::Result<()> {
        loop {
            let mut header = [0; HEADER_BYTES];
            self.socket.read_exact(&mut header)?;
            let header = Header::decode(&header).map_err(other)?;
            let mut payload = vec![0; header.length.min(MAX_CONTROL_BYTES) as usize];
            self.socket.read_exact(&mut payload)?;
            match header.kind {
                FrameKind::Bye => return Ok(()),
                FrameKind::Error => {
                    return Err(std::io::Error::other(
                        ErrorReply::from_payload(&payload).map_err(other)?.error,
                    ));
                }
                _ => {}
            }
        }
    }
}

fn other(error: impl std::fmt::Display) -> std::io::Error {
    std::io::Error::other(error.to_string())
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;

//! What a client may send, through the receiver's state machine, cut into reads at arbitrary places.
//!
//! The first byte says how long a read is and whether header and control checksums are made right, so that
//! what lies behind them is reached too. The outcome must not depend on where the reads were cut.
#![no_main]

use keepup_stream::wire::{Control, HEADER_BYTES, Limits, Next, Session, crc32};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { max_event_bytes: 1 << 16, max_control_bytes: 1 << 16, max_streams: 64 };

fuzz_target!(|data: &[u8]| {
    let Some((&mode, bytes)) = data.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if mode & 0x80 != 0 {
        correct(&mut bytes);
    }
    let piece = usize::from(mode & 0x7f) + 1;
    let whole = converse(&bytes, bytes.len().max(1));
    assert_eq!(whole, converse(&bytes, piece), "the outcome depends on how the bytes were cut");
});

/// Makes the checksums of a chain of frames right, as far as its lengths lead.
fn correct(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(frame) = bytes.get_mut(at..).filter(|rest| rest.len() >= HEADER_BYTES) {
        let (header, rest) = frame.split_at_mut(HEADER_BYTES);
        let mut word = [0; 8];
        word.copy_from_slice(&header[32..40]);
        let length = u64::from_le_bytes(word).min(rest.len() as u64) as usize;
        header[12..16].copy_from_slice(&crc32(&rest[..length]).to_le_bytes());
        let crc = crc32(&header[..60]);
        header[60..64].copy_from_slice(&crc.to_le_bytes());
        at += HEADER_BYTES + length;
    }
}

/// Runs the conversation over reads of `piece` bytes; says what happened, step by step.
fn converse(bytes: &[u8], piece: usize) -> Vec<String> {
    let mut session = Session::new(LIMITS);
    let (mut held, mut told) = (Vec::new(), Vec::new());
    let mut wanted = Wanted::Header;
    for read in bytes.chunks(piece) {
        held.extend_from_slice(read);
        while let Some(frame) = take(&mut held, wanted.bytes()) {
            match wanted.step(&mut session, &frame) {
                Ok((next, what)) => {
                    told.push(what);
                    wanted = next;
                }
                Err(what) => {
                    told.push(what);
                    return told;
                }
            }
        }
    }
    told
}

enum Wanted {
    Header,
    Control(usize),
    Event(usize),
}

impl Wanted {
    fn bytes(&self) -> usize {
        match *self {
            Self::Header => HEADER_BYTES,
            Self::Control(bytes) | Self::Event(bytes) => bytes,
        }
    }

    fn step(&self, session: &mut Session, frame: &[u8]) -> Result<(Self, String), String> {
        match self {
            Self::Event(_) => Ok((Self::Header, "payload".to_owned())),
            Self::Control(_) => {
                let control = session.control(frame).map_err(|e| e.to_string())?;
                let streams = session.streams().len();
                assert!(streams <= LIMITS.max_streams);
                assert_eq!(session.is_ended(), matches!(control, Control::End(_)));
                Ok((Self::Header, format!("{control:?}")))
            }
            Self::Header => {
                let mut header = [0; HEADER_BYTES];
                header.copy_from_slice(frame);
                let next = session.header(&header).map_err(|e| e.to_string())?;
                let wanted = match next {
                    Next::Control { length } => {
                        assert!(length as u64 <= LIMITS.max_control_bytes);
                        Self::Control(length)
                    }
                    Next::Event(head) => {
                        assert!(head.length <= LIMITS.max_event_bytes);
                        assert_eq!(session.streams()[head.index].id, head.stream);
                        Self::Event(head.length as usize)
                    }
                };
                Ok((wanted, format!("{next:?}")))
            }
        }
    }
}

/// The first `bytes` of what is held, once there are so many.
fn take(held: &mut Vec<u8>, bytes: usize) -> Option<Vec<u8>> {
    (held.len() >= bytes).then(|| held.drain(..bytes).collect())
}

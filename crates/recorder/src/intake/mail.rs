//! Mail between intakes: connections and streams that move.
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use keepup_error::Cause;
use keepup_stream::wire::{Hello, StreamInfo};
use keepup_sys::waker::Waker;

use super::connection::Connection;
use super::store::Moved;

/// What one intake sends to another.
pub(super) enum Mail {
    /// A connection that is served there.
    Connection(Box<(Connection, Hello)>),
    /// A connection declares streams that are there.
    Wanted(Box<Wanted>),
    /// Streams for a connection that waits there.
    Streams { ticket: u64, streams: Vec<Moved> },
    /// The streams that the connection waits for cannot be taken.
    Refused { ticket: u64, why: Cause },
}

/// Streams that a connection at another intake declares.
pub(super) struct Wanted {
    /// The intake where it waits.
    pub(super) intake: usize,
    pub(super) ticket: u64,
    pub(super) streams: Vec<StreamInfo>,
    pub(super) resume: Option<String>,
    pub(super) peer: String,
}

/// Mailboxes of all intakes, to send to.
#[derive(Clone)]
pub(crate) struct Post(Arc<Vec<(Sender<Mail>, Waker)>>);

/// Where an intake takes its mail from.
pub(crate) struct Inbox(Receiver<Mail>);

impl Post {
    /// A mailbox for each intake, with the waker that wakes it.
    pub(crate) fn new(wakers: &[Waker]) -> (Self, Vec<Inbox>) {
        let boxes = wakers.iter().map(|waker| {
            let (sender, receiver) = channel();
            ((sender, waker.clone()), Inbox(receiver))
        });
        let (senders, inboxes) = boxes.unzip();
        (Self(Arc::new(senders)), inboxes)
    }

    /// Sends mail to an intake and wakes it.
    pub(super) fn send(&self, intake: usize, mail: Mail) {
        let (sender, waker) = &self.0[intake];
        // An intake takes its mail until all have ended; one that panicked ends the recording.
        let _ = sender.send(mail);
        waker.wake();
    }
}

impl Inbox {
    /// The next mail, if any.
    pub(super) fn next(&self) -> Option<Mail> {
        self.0.try_recv().ok()
    }
}

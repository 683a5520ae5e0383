//! What blocks, in threads of its own: questions to recorders, opening connections, and the wait for the
//! final counts. A recorder that does not answer therefore delays nothing else.
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use keepup_peer::Endpoint;

use super::places::Attempt;
use crate::client::{Client, ClientError};
use crate::wire::{Bye, End, Hello, Locate, Located, Welcome};

/// Timeout of each step of a question.
const ASK_TIMEOUT: Duration = Duration::from_millis(500);
/// Timeout of each step of opening a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for the final counts. Everything is acknowledged before: a recorder that takes longer hangs, and
/// its streams end at the one that takes them.
const BYE_TIMEOUT: Duration = Duration::from_secs(5);

/// An errand that is done.
pub(super) enum Done {
    /// An answer to a question, or the error of the last recorder that was asked.
    Located(Result<Located, ClientError>),
    /// A connection was opened, or failed.
    Connected(Attempt, Box<Result<(Client, Welcome), ClientError>>),
    /// The streams of these slots have ended.
    Ended(Vec<usize>, Result<Bye, ClientError>),
}

/// Errands of a connection group. They end by themselves; after it, their results are dropped.
pub(super) struct Errands {
    sender: Sender<Done>,
    receiver: Receiver<Done>,
    running: usize,
}

impl Errands {
    pub(super) fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver, running: 0 }
    }

    /// Whether any is running.
    pub(super) fn is_running(&self) -> bool {
        self.running > 0
    }

    /// The next one that is done.
    pub(super) fn next(&mut self) -> Option<Done> {
        let done = self.receiver.try_recv().ok()?;
        self.running -= 1;
        Some(done)
    }

    /// Asks the recorders in order until one answers.
    ///
    /// # Errors
    /// No thread.
    pub(super) fn ask(&mut self, recorders: Vec<Endpoint>, question: Locate) -> io::Result<()> {
        self.start(move || Done::Located(ask(&recorders, &question)))
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// No thread.
    pub(super) fn connect(&mut self, attempt: Attempt, hello: Hello) -> io::Result<()> {
        self.start(move || {
            let result = Client::connect(attempt.address, &hello, CONNECT_TIMEOUT);
            Done::Connected(attempt, Box::new(result))
        })
    }

    /// Ends a connection.
    ///
    /// # Errors
    /// No thread; the connection is closed.
    pub(super) fn end(&mut self, client: Client, slots: Vec<usize>, end: End) -> io::Result<()> {
        self.start(move || Done::Ended(slots, client.finish(&end, BYE_TIMEOUT)))
    }

    fn start(&mut self, errand: impl FnOnce() -> Done + Send + 'static) -> io::Result<()> {
        let sender = self.sender.clone();
        let body = move || {
            // Fails when the connection group has ended.
            let _ = sender.send(errand());
        };
        thread::Builder::new().name("ku-errand".to_owned()).spawn(body)?;
        self.running += 1;
        Ok(())
    }
}

/// Asks the recorders in order until one answers. If none does, prefers a timeout, which is retried, over
/// other errors.
pub(super) fn ask(recorders: &[Endpoint], question: &Locate) -> Result<Located, ClientError> {
    let mut last = ClientError::Stopped;
    for recorder in recorders {
        match Client::locate(recorder, question, ASK_TIMEOUT) {
            Ok(located) => return Ok(located),
            Err(_) if matches!(last, ClientError::TimedOut { .. }) => {}
            Err(error) => last = error,
        }
    }
    Err(match last {
        ClientError::NotListening { addr } => ClientError::NoFleet { recorders: recorders.len(), addr },
        other => other,
    })
}

#[cfg(test)]
#[path = "errands_tests.rs"]
mod tests;

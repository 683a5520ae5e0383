//! Commands on their way to whoever controls the run, and the answers on their way back.
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use keepup_results::live::{RunOrder, RunRefusal, RunStatus};
use tokio::sync::oneshot;

/// Commands that may wait at a time; more are turned away.
const WAITING_MAX: usize = 16;

/// A command that somebody gave, who waits for the answer.
#[derive(Debug)]
pub struct Asked {
    /// The command.
    pub order: RunOrder,
    reply: oneshot::Sender<Result<RunStatus, RunRefusal>>,
}

impl Asked {
    /// Answers with what run control says of itself afterwards, or with why it did not obey. Whoever asked
    /// may have gone meanwhile.
    pub fn answer(self, answer: Result<RunStatus, RunRefusal>) {
        let _ = self.reply.send(answer);
    }
}

/// The end at which commands arrive.
#[derive(Debug)]
pub struct Orders(Mutex<mpsc::Receiver<Asked>>);

impl Orders {
    /// The next command, waiting for it no longer than `timeout`.
    pub fn next(&self, timeout: Duration) -> Option<Asked> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(timeout) {
            Ok(asked) => Some(asked),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            // Nobody can ask any more, but the caller counts on the pause.
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                std::thread::sleep(timeout);
                None
            }
        }
    }
}

/// The end at which they are given.
#[derive(Clone, Debug)]
pub(crate) struct OrderDesk(mpsc::SyncSender<Asked>);

/// Why a command got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// Too many wait already.
    Busy,
    /// Whoever controls the run is gone, or did not answer in time.
    Gone,
}

impl OrderDesk {
    pub(crate) fn new() -> (Self, Orders) {
        let (sender, receiver) = mpsc::sync_channel(WAITING_MAX);
        (Self(sender), Orders(Mutex::new(receiver)))
    }

    /// Gives a command and waits for the answer.
    pub(crate) async fn give(
        &self,
        order: RunOrder,
        patience: Duration,
    ) -> Result<Result<RunStatus, RunRefusal>, Unanswered> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(Asked { order, reply }).map_err(|e| match e {
            mpsc::TrySendError::Full(_) => Unanswered::Busy,
            mpsc::TrySendError::Disconnected(_) => Unanswered::Gone,
        })?;
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => Err(Unanswered::Gone),
        }
    }
}

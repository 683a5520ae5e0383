//! Command queue from HTTP clients to the owner of run control, with replies.
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use keepup_results::live::{RunOrder, RunRefusal, RunStatus};
use tokio::sync::oneshot;

/// Most waiting commands; more are refused.
const WAITING_MAX: usize = 16;

/// A command from a client that waits for the answer.
#[derive(Debug)]
pub struct PendingCommand {
    /// The command.
    pub order: RunOrder,
    reply: oneshot::Sender<Result<RunStatus, RunRefusal>>,
}

impl PendingCommand {
    /// Sends the status after the command, or the refusal. The client may have disconnected.
    pub fn answer(self, answer: Result<RunStatus, RunRefusal>) {
        let _ = self.reply.send(answer);
    }
}

/// Receiving end of the command queue.
#[derive(Debug)]
pub struct CommandQueue(Mutex<mpsc::Receiver<PendingCommand>>);

impl CommandQueue {
    /// Next command, waiting at most `timeout`.
    pub fn next(&self, timeout: Duration) -> Option<PendingCommand> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(timeout) {
            Ok(asked) => Some(asked),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            // No sender is left, but the caller relies on the pause.
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                std::thread::sleep(timeout);
                None
            }
        }
    }
}

/// Sending end of the command queue.
#[derive(Clone, Debug)]
pub(crate) struct CommandSender(mpsc::SyncSender<PendingCommand>);

/// Why a command got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// Too many commands are waiting.
    Busy,
    /// The owner of run control has ended, or did not answer in time.
    Gone,
}

impl CommandSender {
    pub(crate) fn new() -> (Self, CommandQueue) {
        let (sender, receiver) = mpsc::sync_channel(WAITING_MAX);
        (Self(sender), CommandQueue(Mutex::new(receiver)))
    }

    /// Sends a command and waits for the answer.
    pub(crate) async fn send(
        &self,
        order: RunOrder,
        timeout: Duration,
    ) -> Result<Result<RunStatus, RunRefusal>, Unanswered> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(PendingCommand { order, reply }).map_err(|e| match e {
            mpsc::TrySendError::Full(_) => Unanswered::Busy,
            mpsc::TrySendError::Disconnected(_) => Unanswered::Gone,
        })?;
        match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => Err(Unanswered::Gone),
        }
    }
}

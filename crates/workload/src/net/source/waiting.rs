//! A source on another machine that waits for its recorder.
//!
//! Invariant: the server has the port open as long as this exists, and closes it soon afterwards: the control
//! connection is kept alive from the open port until the recorder has ended.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_stream::source::SourcePlan;

use super::client::{ANSWER_MAX, Conversation, RemoteOrder, RemoteRun, RemoteSource};
use crate::WorkloadError;
use crate::error::{NetError, system};
use crate::net::wire::source::{SourceAnswer, SourceRequest};

/// Interval at which the thread of an idle control connection checks whether it is needed.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// A source that waits for its recorder, or has ended.
pub(crate) struct RemoteWaiting {
    address: SocketAddr,
    idle: IdleConversation,
}

impl RemoteSource {
    /// Has the source of `plan` wait for its recorder, at a port of the address that [`Self::there`] returns.
    ///
    /// # Errors
    /// The server cannot be reached or refuses, or its port cannot be opened.
    pub(crate) fn wait(
        &self,
        plan: &SourcePlan,
        clock: &Arc<dyn Clock>,
    ) -> Result<RemoteWaiting, WorkloadError> {
        let mut talk = self.open(clock)?;
        talk.ask(SourceRequest::Open { plan: plan.clone() })?;
        let port = talk.answer(ANSWER_MAX, |answer| match answer {
            SourceAnswer::Waiting { port } if port > 0 => Ok(port),
            other => Err(other),
        })?;
        let address = SocketAddr::new(self.there(), port);
        Ok(RemoteWaiting { address, idle: IdleConversation::start(talk)? })
    }
}

impl RemoteWaiting {
    /// Where the recorder connects.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs the source and returns its report.
    ///
    /// # Errors
    /// No recorder connected to the source; the server disconnects, falls silent, or does not end in time.
    pub(crate) fn run(&mut self, order: &RemoteOrder<'_>) -> Result<RemoteRun, WorkloadError> {
        let mut talk = self.idle.end()?;
        talk.ask(SourceRequest::Run)?;
        let run = talk.follow(order)?;
        self.idle = IdleConversation::start(talk)?;
        Ok(run)
    }
}

/// Control connection with nothing to say, kept alive by a thread.
struct IdleConversation {
    thread: Option<JoinHandle<Result<Conversation, NetError>>>,
    is_over: Arc<AtomicBool>,
}

impl IdleConversation {
    fn start(mut talk: Conversation) -> Result<Self, WorkloadError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let keep_alive = move || {
            while !over.load(Ordering::Acquire) {
                if let Some(answer) = talk.receive(CHECK_EVERY)? {
                    return Err(talk.unexpected(answer));
                }
            }
            Ok(talk)
        };
        let thread = std::thread::Builder::new()
            .name("ku-net-idle".into())
            .spawn(keep_alive)
            .map_err(system("start a thread for the control connection"))?;
        Ok(Self { thread: Some(thread), is_over })
    }

    /// Takes the connection back.
    ///
    /// # Errors
    /// The server has disconnected, refused, or fallen silent meanwhile.
    fn end(&mut self) -> Result<Conversation, WorkloadError> {
        self.is_over.store(true, Ordering::Release);
        let lost = WorkloadError::Thread { name: "control connection" };
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(talk)) => Ok(talk?),
            Some(Err(_)) | None => Err(lost),
        }
    }
}

impl Drop for IdleConversation {
    fn drop(&mut self) {
        // The connection closes with its conversation.
        drop(self.end());
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;

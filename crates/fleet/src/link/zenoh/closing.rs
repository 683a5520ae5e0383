//! A session that does not delay the end of its program.
use std::sync::mpsc;
use std::time::Duration;

use ::zenoh::Session;
use ::zenoh::liveliness::LivelinessToken;

/// Longest wait for a session to close. Zenoh waits up to 10 s for a peer that cannot be reached; the exit of
/// the program closes the connections anyway.
const CLOSE_TIME: Duration = Duration::from_millis(500);

/// A session with its liveliness token and its TLS connections, closed in this order when dropped.
pub(super) struct ClosedOnDrop<T: Send + 'static>(Option<(LivelinessToken, Session, Option<T>)>);

impl<T: Send + 'static> ClosedOnDrop<T> {
    pub(super) fn new(session: Session, alive: LivelinessToken, tls: Option<T>) -> Self {
        Self(Some((alive, session, tls)))
    }

    /// The session; none once it is being dropped.
    pub(super) fn get(&self) -> Option<&Session> {
        self.0.as_ref().map(|(_, session, _)| session)
    }
}

impl<T: Send + 'static> Drop for ClosedOnDrop<T> {
    fn drop(&mut self) {
        let open = self.0.take();
        let (done, is_done) = mpsc::channel();
        let close = move || {
            drop(open);
            // Nobody waits any more if it took too long.
            let _ = done.send(());
        };
        if std::thread::Builder::new().name("ku-fleet-close".into()).spawn(close).is_ok() {
            let _ = is_done.recv_timeout(CLOSE_TIME);
        }
    }
}

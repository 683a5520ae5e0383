//! Event copies for the live page, from the recorder's tap.
use std::sync::Arc;
use std::task::{Context, Poll};

use keepup_catalog::event_card;
use keepup_live::{EventCopy, TapSource};
use keepup_recorder::tap::Tap;
use keepup_results::live::TapFilter;

/// Memory for copies of events, in bytes.
const TAP_BYTES: usize = 64 << 20;

/// Creates a tap for the live page.
pub(super) fn new_tap() -> Arc<Tap> {
    Arc::new(Tap::new(TAP_BYTES))
}

/// Tap of a recorder as the event source of the page.
pub(super) struct RecorderTap(pub(super) Arc<Tap>);

impl TapSource for RecorderTap {
    fn subscribe(&self, filter: &TapFilter) -> Result<usize, String> {
        self.0.subscribe(filter.clone()).map_err(|e| e.to_string())
    }

    fn unsubscribe(&self, subscriber: usize) {
        self.0.unsubscribe(subscriber);
    }

    fn missed(&self, subscriber: usize) -> u64 {
        self.0.missed(subscriber)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn poll_next(&self, context: &mut Context<'_>) -> Poll<(u64, EventCopy)> {
        self.0.poll_next(context).map(|event| {
            let card = event_card(&event.stream.info, event.sequence, event.timestamp_ns);
            (event.subscribers, EventCopy::new(card, event.payload))
        })
    }
}

//! Configured reductions, and the rings to the reducer threads.
//!
//! Invariant: all blocks of a stream go to one thread, which keeps their order.
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keepup_error::Cause;
use keepup_plan::reduction::{Reduction, Samples, Step, Streams, reduction_of};
use keepup_recording::layout::BlockHeader;
use keepup_stream::detector_map::is_map;
use keepup_stream::wire::StreamInfo;
use keepup_sys::pool::Block;

use crate::counters::{Counters, add};
use crate::reduce::worker::{Destination, Done, Job, Recipe, ReducerLink};
use crate::reduce::{bytes_max, samples};

/// Reduction of one stream.
#[derive(Debug)]
pub(super) struct Reducing {
    pub(super) recipe: Arc<Recipe>,
    pub(super) to: Arc<Destination>,
    /// Bytes of every event.
    pub(super) event_bytes: u64,
    /// Largest size of a reduced event, in bytes.
    pub(super) reduced_bytes_max: usize,
    /// Memory for the reduced form of the open block; lent together with it.
    pub(super) target: Option<Block>,
}

/// A block handed to a reducer, for the case that it does not come back.
#[derive(Debug)]
pub(super) struct Owed {
    pub(super) raw_slot: usize,
    pub(super) to: Arc<Destination>,
    pub(super) header: BlockHeader,
}

struct Lane {
    link: ReducerLink,
    owed: VecDeque<Owed>,
}

/// Configured reductions and the reducer threads.
pub(super) struct Reductions {
    asked: Vec<Reduction>,
    recipes: Vec<Arc<Recipe>>,
    lanes: Vec<Lane>,
    counters: Arc<Counters>,
    event_bytes_max: u64,
    /// Flush the volumes once no block is with a reducer.
    pub(super) flush_after: bool,
}

impl Reductions {
    pub(super) fn new(
        asked: Vec<Reduction>,
        links: Vec<ReducerLink>,
        event_bytes_max: u64,
        counters: Arc<Counters>,
    ) -> Self {
        let lanes = links.into_iter().map(|link| Lane { link, owed: VecDeque::new() }).collect();
        Self { asked, recipes: Vec::new(), lanes, counters, event_bytes_max, flush_after: false }
    }

    /// Whether no block is with a reducer.
    pub(super) fn is_idle(&self) -> bool {
        self.lanes.iter().all(|lane| lane.owed.is_empty())
    }

    /// Whether no result waits to be handled.
    pub(super) fn is_silent(&self) -> bool {
        self.lanes.iter().all(|lane| lane.link.done.is_empty())
    }

    /// Lets the reducers end after their last block.
    pub(super) fn close(&self) {
        for lane in &self.lanes {
            lane.link.close.store(true, Ordering::Release);
            lane.link.waker.wake();
        }
    }

    /// Reduction that applies to the stream `info`, if any, and its result.
    pub(super) fn plan(&self, info: &StreamInfo) -> Result<Option<(&Reduction, Samples)>, Cause> {
        let Some(reduction) = reduction_of(&self.asked, info.id) else { return Ok(None) };
        // "All streams" are those with data.
        if reduction.streams == Streams::All && is_map(&info.name) {
            return Ok(None);
        }
        let input = samples(info);
        let output = reduction.output(&input).map_err(|e| {
            Cause::new(format!("cannot reduce stream {} by \"{reduction}\": {e}", info.id))
                .with_hint("streams=LIST says which streams a reduction is for")
        })?;
        let bytes = bytes_max(&output) as u64;
        if bytes > self.event_bytes_max {
            let what = format!(
                "cannot reduce stream {} by \"{reduction}\": an event can become {bytes} bytes, more than \
                 the {} that can be recorded",
                info.id, self.event_bytes_max
            );
            return Err(Cause::new(what).with_hint("a larger --pool or --segment"));
        }
        Ok(Some((reduction, output)))
    }

    /// Recipe of these steps; shared by all streams with events of one kind.
    pub(super) fn recipe(&mut self, steps: Vec<Step>, input: Samples) -> Arc<Recipe> {
        let known = self.recipes.iter().find(|recipe| recipe.input == input && recipe.steps == steps);
        if let Some(recipe) = known {
            return Arc::clone(recipe);
        }
        let recipe = Arc::new(Recipe { index: self.recipes.len(), steps, input });
        self.recipes.push(Arc::clone(&recipe));
        recipe
    }

    #[expect(clippy::result_large_err, reason = "the blocks go back to their owner; boxing would allocate")]
    pub(super) fn hand_over(&mut self, job: Job) -> Result<(), Job> {
        let index = job.raw.meta.slot % self.lanes.len().max(1);
        let Some(lane) = self.lanes.get_mut(index) else { return Err(job) };
        if lane.link.jobs.is_abandoned() {
            return Err(job);
        }
        let header = job.raw.meta.header;
        let owed = Owed { raw_slot: job.raw.meta.slot, to: Arc::clone(&job.to), header };
        // The ring has as many slots as the pool can have blocks.
        lane.link.jobs.push(job)?;
        lane.owed.push_back(owed);
        add(&self.counters.reducers[lane.link.index].handed_bytes, header.payload_bytes);
        lane.link.waker.nudge();
        Ok(())
    }

    /// Next finished block.
    pub(super) fn next_done(&mut self) -> Option<Done> {
        self.lanes.iter_mut().find_map(|lane| {
            let done = lane.link.done.pop()?;
            lane.owed.pop_front();
            Some(done)
        })
    }

    /// Next block that was lost with a reducer that ended.
    pub(super) fn next_abandoned(&mut self) -> Option<Owed> {
        let gone = |lane: &&mut Lane| lane.link.done.is_abandoned() && lane.link.done.is_empty();
        self.lanes.iter_mut().filter(gone).find_map(|lane| lane.owed.pop_front())
    }
}

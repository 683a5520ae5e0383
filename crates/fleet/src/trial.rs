//! A trial on several hosts: each recorder records its share of a detector from one of the sources.
//!
//! The streams of the detector are distributed evenly over the recorders, and the recorders over the sources.
//! On a recorder the trial is that of `keepup trial --source --as keepup`; all start their sources at one
//! time.
mod deadline;
mod end;
mod plan;
mod recorder;
mod setting;
mod source;
mod total;
mod worker;

pub use deadline::Deadline;
pub use end::{EndedPart, Missing, TrialEnd};
pub(crate) use plan::endpoint;
pub use plan::{
    HostPlan, Pair, ReadBack, RecorderDrain, RecorderPlan, SourcePlan, TrialRate, TrialRequest, pairs, plans,
};
pub use total::{FleetTrial, HostResult, Outcome};
pub use worker::TrialWorker;

#[cfg(test)]
pub(crate) mod sample;

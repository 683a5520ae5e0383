//! What a recorder does while it does it: the state of its run control, and the figures of a moment.
//!
//! These are what passes between a recorder and whoever looks at it or commands it; nothing here is stored.

mod moment;
mod run;
mod search;
mod tap;

pub use moment::{CoreNow, Drained, Flow, Margin, Moment, PoolNow, ReductionNow, StreamNow, VolumeNow};
pub use run::{
    METADATA_BYTES_MAX, METADATA_KEY_BYTES_MAX, METADATA_KEYS_MAX, RefusalKind, RunCommand, RunOrder,
    RunOutcome, RunRefusal, RunSettings, RunState, RunStatus, RunVolume, StopAfter,
};
pub use search::{Search, SearchCeiling, SearchTrial};
pub use tap::TapFilter;

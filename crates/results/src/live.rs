//! Live state of a recorder: run control and current figures.
//!
//! Messages between a recorder and its observers and controllers; nothing here is stored.

mod fleet;
mod moment;
mod run;
mod search;
mod tap;

pub use fleet::{FleetFlow, FleetHost, FleetHostState, FleetMove, FleetNow, FleetPool, FleetVolume};
pub use moment::{
    CoreNow, Drained, Flow, Margin, Moment, PoolNow, ReductionNow, RejectedNow, StreamNow, VolumeNow,
};
pub use run::{
    METADATA_BYTES_MAX, METADATA_KEY_BYTES_MAX, METADATA_KEYS_MAX, RefusalKind, RunCommand, RunOrder,
    RunOutcome, RunRefusal, RunSettings, RunState, RunStatus, RunVolume, StopAfter,
};
pub use search::{Search, SearchCeiling, SearchTrial};
pub use tap::TapFilter;

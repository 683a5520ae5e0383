//! Campaigns: configurations against tests, run in turns, resumed after a crash, compared with a baseline.
//!
//! A cell of a campaign is a command of keepup that leaves a result of its own, so that every setting of
//! every test can be an axis without anything here knowing the tests. [`parse`] makes a [`Campaign`] of a
//! file, [`Campaign::cells`] its commands, [`State`] says which run comes next, and [`drive`] has them run by
//! a [`Runner`]. [`compare`] puts results beside each other. Names of papers and published figures are handed
//! in.
//!
//! `file.rs` reads a campaign's file, `cells.rs` expands it, `state.rs` orders and counts runs,
//! `directory.rs` keeps the directory and its lock, `drive.rs` has the loop, `summary.rs` the result,
//! `forecast.rs` what a command would write, and `compare/` the comparison.
//!
//! Invariants: the file, the cells, their order and the state are pure; a run is counted when its event is
//! written down, and not before; a directory of a run that was cut off is kept aside, never overwritten.

mod cells;
mod compare;
mod directory;
mod drive;
mod error;
mod file;
mod forecast;
mod plan;
mod state;
mod summary;

pub use cells::{Cell, quoted};
pub use compare::{Candidate, CompareError, CompareOptions, Published, compare, workload_of};
pub use directory::{CampaignDirectory, Found};
pub use drive::{Ending, News, RunReport, Runner, drive};
pub use error::CampaignError;
pub use file::{load, parse};
pub use forecast::{Forecast, Forecasts};
pub use plan::{Axis, AxisValue, Campaign, CampaignOrder, PaperSettings, RUNS_MAX, Settings, Skip, Stop};
pub use state::{Action, Progress, RunDone, State};
pub use summary::summarise;

//! Campaigns: alternating runs of tests with several configurations, resumed after a crash and compared with
//! a baseline.
//!
//! A cell of a campaign is a command of keepup with its own result, so that any setting of any test can be an
//! axis. [`parse`] reads a [`Campaign`], [`Campaign::cells`] expands it to commands, [`State`] selects the
//! next run, and [`drive`] runs them with a [`Runner`]. [`compare`] compares results. The caller passes the
//! names of papers and the published figures.
//!
//! `file.rs` parses campaign files, `cells.rs` expands them, `state.rs` orders and counts runs,
//! `directory.rs` has the directory and its lock, `drive.rs` the loop, `command.rs` the process of a
//! command, `summary.rs` the result, `forecast.rs` the expected writes of a command, and `compare/` the
//! comparison.
//!
//! Invariants: file, cells, order and state are pure; a run counts once its event is logged; the directory of
//! an interrupted run is renamed, never overwritten.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may sum"))]

mod cells;
mod command;
mod compare;
mod directory;
mod drive;
mod error;
mod file;
mod forecast;
mod plan;
mod state;
mod summary;

pub use cells::Cell;
pub use command::{STDERR, STDOUT, run_command};
pub use compare::{Candidate, CompareError, CompareOptions, Published, compare, workload_of};
pub use directory::{CampaignDirectory, StoredCampaign};
pub use drive::{CampaignEvent, DriveOutcome, RunReport, Runner, drive};
pub use error::CampaignError;
pub use file::{load, parse};
pub use forecast::{Forecast, Forecasts};
pub use plan::{Axis, AxisValue, Campaign, CampaignOrder, PaperSettings, RUNS_MAX, Settings, Skip, Stop};
pub use state::{Action, Progress, RunDone, State};
pub use summary::summarise;

//! Event and result types, result directories, schema.
//!
//! A result directory contains `events.jsonl`, the append-only primary record, and its summary
//! `result.json`. Reports are generated from these two files alone. `SHA256SUMS`, written last, covers both.
//!
//! Invariants: an unmeasured figure is null, never 0 or invented; this crate can read what it
//! writes; time is passed in.

mod campaign;
mod check;
mod checksum;
mod compare;
mod counter;
mod directory;
mod disk;
mod doctor;
mod entries;
mod error;
mod event;
#[cfg(test)]
#[path = "example_tests.rs"]
mod example;
mod figure;
mod file_names;
mod fleet_doctor;
mod fleet_qualify;
pub mod format;
mod head;
mod latency;
pub mod live;
mod load;
mod log;
mod net;
mod paper;
mod predict;
pub mod printable;
mod record;
mod register;
mod replay;
#[cfg(test)]
#[path = "schema_tests.rs"]
mod schema;
pub mod shell;
mod soak;
mod stored;
mod summary;
mod test;
mod time;
mod version;

pub use campaign::{CampaignAxis, CampaignCell, CampaignRatio, CampaignRun, CampaignSummary, CampaignTotals};
pub use checksum::{Document, renewed};
pub use compare::{
    COMPARE_SCHEMA_VERSION, Change, CompareSummary, ComparedCell, ComparedDifference, ComparedIndex,
    ComparedInterval, ComparedLimit, ComparedRatio, ComparedRow, ComparedRuns, ComparedSystem,
    IntervalPosition,
};
pub use counter::{CounterPair, CounterRate, CounterTrial, ExpectedEffect};
pub use directory::{ResultDirectory, default_name};
pub use disk::{
    CacheFinding, CacheMemory, CacheStep, DiskFinding, DiskPart, DiskPhase, DiskRun, DiskSkipped,
    DiskSummary, ScaleFinding, SteadyCause, SteadyCauseKind, SteadyChange, SteadyConditions, SteadyFile,
    SteadyFinding, SteadyLap, SteadyRounds, SteadySample,
};
pub use doctor::{
    DOCTOR_SCHEMA_VERSION, DoctorCounts, DoctorFinding, DoctorNeeds, DoctorSeverity, DoctorSummary,
};
pub use entries::{Entries, RecordingEntry, RecordingState, Unreadable};
pub use error::ResultsError;
pub use event::Event;
pub use figure::{Better, EVIDENCE_SECONDS_MIN, Figure, Figures, Quantity};
pub use fleet_doctor::{
    ClockFacts, FLEET_DOCTOR_SCHEMA_VERSION, FleetDoctorSummary, FleetFinding, HostCheck, HostFacts,
    InterfaceFacts, PathFacts, VolumeFacts,
};
pub use fleet_qualify::{
    ClockOffset, ControlTraffic, FleetBottleneck, FleetQualifySummary, FleetTrialPart, FleetTrialResult,
    LostHost, QualifiedHost,
};
pub use head::{Head, Headed, Kind, machine_name};
pub use latency::LatencyFigures;
pub use load::{LoadKind, LoadReading, LoadResult, LoadUnit, SessionLoad};
pub use log::{EventLog, EventReader};
pub use net::{
    NetEnd, NetFlow, NetInterface, NetLatency, NetLayer, NetLedger, NetLoss, NetMoved, NetRateFinding,
    NetRun, NetSummary, NetTransport,
};
pub use paper::{
    PaperAnswer, PaperCell, PaperClaim, PaperColumn, PaperCurve, PaperExperiment, PaperPage, PaperRow,
    PaperSeries, PaperTable,
};
pub use predict::{
    Assumption, ContradictedClaim, Enough, MoreOf, OpenCell, Origin, PredictSummary, PredictedBuffer,
    PredictedCell, PredictedMachine, PredictedPapers, PredictedPart, Prediction, Skill, SkillWithout,
};
pub use record::{RecordFirst, RecordMoment, RecordPlacement, RecordReadBack, RecordRun, RecordSummary};
pub use register::{
    RegisterBreakEven, RegisterCost, RegisterDevice, RegisterFit, RegisterKnee, RegisterMethod,
    RegisterPoint, RegisterRun, RegisterSummary, RegisterVerdict,
};
pub use replay::{
    ReplayCheck, ReplayDevice, ReplayFidelity, ReplayIndex, ReplayMap, ReplayMetric, ReplayPass, ReplayPlace,
    ReplayRatio, ReplaySummary, ReplayTimes, ReplayTrace,
};
pub use soak::{
    SoakCounter, SoakDamage, SoakFile, SoakInterval, SoakKind, SoakMismatch, SoakOrigin, SoakPart, SoakPlace,
    SoakRange, SoakRate, SoakSummary, SoakTotals,
};
pub use stored::{Stored, StoredResult};
pub use summary::{
    Bottleneck, Ceilings, Count, CpuCost, DiskWear, Endurance, Engine, FailedRate, IoEngine, KneeInterval,
    LedgerSummary, NextLimit, ResultSummary, SCHEMA_VERSION, Soak, SourceHost, SteadyState, StorageCost,
    ThreadCpu, TrialResult, Verdict, VolumeCeiling,
};
pub use test::{Begun, Ended, TestSummary};
pub use time::{rfc3339, unix_ns};

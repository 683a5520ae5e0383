//! What the capacity model says of a machine that may not exist, or of those that papers tell of.
//!
//! `None` means "not known" or "there is none" and is written as null. All rates are of payload.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::{Collected, Figure, Figures, Quantity};
use crate::summary::Kind;
use crate::test::test_summary;

test_summary! {
    /// A prediction, and all that it rests on.
    pub struct PredictSummary: Kind::Predict, version 1 {
        /// The machine; its name is empty where papers were predicted.
        pub machine: PredictedMachine,
        /// Mean rate that the profile requires, bytes per second; null for "as fast as it goes".
        pub required_bytes_per_second: Option<f64>,
        /// Rate over required rate that the profile asks for.
        pub headroom_wanted: f64,
        /// What was varied, as in "disks"; null when nothing was.
        pub sweep: Option<String>,
        /// One for each point of the sweep, one alone without a sweep.
        pub points: Vec<Prediction>,
        /// Every number that it rests on, with its source.
        pub assumptions: Vec<Assumption>,
        /// Published figures beside what the model says of them; null for a machine.
        pub papers: Option<PredictedPapers>,
        /// What the model leaves out, one sentence each.
        pub limits: Vec<String>,
    }
}

/// The machine that was asked about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedMachine {
    /// Name in the catalogue, or of its file.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Name of the path that was asked about, as in "record".
    pub path: String,
    /// Payload of one operation, bytes.
    pub operation_bytes: f64,
    /// Operations under way at a time; null for a stream, whose stages all work at the same time.
    pub operations_under_way: Option<u32>,
    /// Settings that were changed, as they were given.
    pub with: Vec<String>,
    /// Such machines side by side.
    pub hosts: u32,
}

/// What the model says of one configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// Point of the sweep, as in "4"; empty without one.
    pub label: String,
    /// Rate of all hosts together with every number at its best known value.
    pub bytes_per_second: f64,
    /// Of draws from the ranges of all numbers, 2.5 % come out lower; null where no number has a range.
    pub lower_bytes_per_second: Option<f64>,
    /// And 2.5 % higher.
    pub upper_bytes_per_second: Option<f64>,
    /// Events or operations each second.
    pub operations_per_second: f64,
    /// Rate over the required rate; null when none is required.
    pub headroom: Option<f64>,
    /// Cores of one host that are busy at its rate; null when the machine says nothing of its processors.
    pub cores_busy: Option<f64>,
    /// Cores of one host that are busy at the required rate, as far as it is reached.
    pub cores_busy_at_required: Option<f64>,
    /// What limits it, the bottleneck first, then the runner-up and all others.
    pub parts: Vec<PredictedPart>,
    /// What it takes to reach the required rate; null when none is required.
    pub enough: Option<Enough>,
    /// What its stalls ask of memory; empty when the machine says nothing of stalls.
    pub buffers: Vec<PredictedBuffer>,
}

/// One resource of a machine on the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedPart {
    /// What the machine calls it.
    pub name: String,
    /// Part of the catalogue.
    pub part: String,
    /// How many of it there are.
    pub count: u32,
    /// Whether its limit is that a master waits for answers, not that there is no more of it.
    pub is_waiting: bool,
    /// Rate of all hosts together if it were the only limit.
    pub bytes_per_second: f64,
    /// Share of it in use at the predicted rate, 0 to 1.
    pub utilisation: f64,
    /// Growth of the rate when there is a tenth more of it, as a share; null for a second limit of the same.
    pub gain_of_a_tenth: Option<f64>,
}

/// What would reach the required rate with its head-room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Enough {
    /// Rate to be reached, bytes per second: the required one with its head-room.
    pub bytes_per_second: f64,
    /// Machines of this kind; null where not even thousands would do.
    pub hosts: Option<u32>,
    /// For each resource that is too little for it in one machine: how many of it there would have to be.
    pub more: Vec<MoreOf>,
}

/// A resource of which there is too little.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoreOf {
    /// What the machine calls it.
    pub name: String,
    /// How many there are.
    pub count: u32,
    /// How many there would have to be; null where more of it does not help: its master waits for answers.
    pub needed: Option<u32>,
}

/// What a stall asks of memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedBuffer {
    /// Rate that comes in meanwhile, bytes per second.
    pub bytes_per_second: f64,
    /// The stall, seconds.
    pub stall_seconds: f64,
    /// Memory in which everything that comes meanwhile has room, bytes.
    pub bytes: f64,
    /// From the end of the stall until the memory is empty again, seconds; null when it never is.
    pub recovery_seconds: Option<f64>,
    /// From the end of one stall to the next, seconds; null for a single one.
    pub every_seconds: Option<f64>,
    /// Memory that loses nothing when it stalls that often, simulated; null for a single stall, and where no
    /// memory would do.
    pub repeated_bytes: Option<f64>,
    /// Memory that there is, bytes; null when nothing was said of it.
    pub given_bytes: Option<f64>,
    /// Share of the data that finds no room there, simulated; null without memory that is given.
    pub lost_share: Option<f64>,
}

/// A number that a prediction rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    /// What it belongs to and its name, as in "loop.baud".
    pub name: String,
    /// Its best known value, with its unit.
    pub value: String,
    /// Its range, with units; null where none is known.
    pub range: Option<String>,
    /// What kind of source: datasheet, paper, standard, measured, fitted, guessed.
    pub source: String,
    /// The source.
    pub from: String,
    /// Share of the prediction's scatter that its range makes, 0 to 1; null without a range.
    pub share: Option<f64>,
}

/// Published figures and the model's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedPapers {
    /// Every figure that the model says something of.
    pub cells: Vec<PredictedCell>,
    /// What it says nothing of, and why.
    pub open: Vec<OpenCell>,
    /// Claims that do not follow from their papers' own numbers.
    pub contradicted: Vec<ContradictedClaim>,
    /// How many constants were fitted.
    pub fitted_constants: u32,
    /// How well it does.
    pub skill: Vec<Skill>,
}

/// How a cell came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Follows from protocols and counts alone.
    Derived,
    /// Predicted with constants that were fitted to other cells.
    Predicted,
    /// A constant was fitted to this very cell: it proves nothing.
    Fitted,
}

/// One published figure beside the model's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedCell {
    /// Name of the paper.
    pub paper: String,
    /// Id of the figure in the list of published numbers.
    pub id: String,
    /// The system that was measured.
    pub system: String,
    /// Under which condition.
    pub condition: String,
    /// What was measured.
    pub quantity: String,
    /// Unit of both values.
    pub unit: String,
    /// The paper's value.
    pub published: f64,
    /// The model's.
    pub predicted: f64,
    /// Bounds of the model's value, from the ranges of its numbers; null where none has a range.
    pub lower: Option<f64>,
    /// The upper one.
    pub upper: Option<f64>,
    /// The model's over the paper's, less 1.
    pub error: f64,
    /// What "nothing changes" would say; null where there is nothing it could start from.
    pub unchanged: Option<f64>,
    /// How the model's value came about.
    pub origin: Origin,
    /// Error up to which the cell counts as met, as a share.
    pub target: f64,
    /// What limits it there, or how it was worked out.
    pub because: String,
}

/// A published figure, or several, of which the model says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenCell {
    /// Name of the paper.
    pub paper: String,
    /// Id of the figure.
    pub id: String,
    /// What it is.
    pub what: String,
    /// Why nothing can be said.
    pub why: String,
}

/// A claim that does not follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContradictedClaim {
    /// Name of the paper.
    pub paper: String,
    /// Where it stands there.
    pub place: String,
    /// What the paper says, in other words.
    pub says: String,
    /// What follows from its own numbers.
    pub arithmetic: String,
}

/// How well the model does over cells of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Which cells.
    pub of: String,
    /// How many.
    pub cells: u32,
    /// How many are within their target.
    pub met: u32,
    /// Median of the errors without their signs, as a share.
    pub median_error: f64,
    /// The largest of them.
    pub worst_error: f64,
    /// 1 - (mean squared error of the model / that of "nothing changes"), over cells that have both: above 0
    /// it is better than that; null without such cells.
    pub over_unchanged: Option<f64>,
}

impl Figures for PredictSummary {
    fn figures(&self) -> Vec<Figure> {
        let mut figures = Collected::default();
        for point in &self.points {
            let what = match &self.sweep {
                Some(axis) => format!("{axis} {}", point.label),
                None => self.machine.path.clone(),
            };
            let place = &self.machine.name;
            figures.add(place, &what, Quantity::BytesPerSecond, Some(point.bytes_per_second));
            figures.add(place, &what, Quantity::CoresBusy, point.cores_busy);
        }
        figures.done()
    }
}

//! Predictions of the capacity model for a machine, or for the systems in papers.
//!
//! `None` means "not known" or "not applicable" and is written as null. All rates are payload
//! rates.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::{Collected, Figure, Figures, Quantity};
use crate::head::Kind;
use crate::test::test_summary;

test_summary! {
    /// A prediction and its inputs.
    pub struct PredictSummary: Kind::Predict, version 1 {
        /// Machine; its name is empty for predictions of papers.
        pub machine: PredictedMachine,
        /// Required mean rate of the profile, bytes per second; null: unlimited.
        pub required_bytes_per_second: Option<f64>,
        /// Required headroom of the profile.
        pub headroom_wanted: f64,
        /// Varied quantity, as in "disks"; null without a sweep.
        pub sweep: Option<String>,
        /// One prediction per point of the sweep, or a single one.
        pub points: Vec<Prediction>,
        /// All input numbers with their sources.
        pub assumptions: Vec<Assumption>,
        /// Comparison with published figures; null for a machine.
        pub papers: Option<PredictedPapers>,
        /// Effects that the model does not include, one sentence each.
        pub limits: Vec<String>,
    }
}

/// The predicted machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedMachine {
    /// Name in the catalog, or of its file.
    pub name: String,
    /// Description.
    pub title: String,
    /// Name of the path, as in "record".
    pub path: String,
    /// Payload per operation, bytes.
    pub operation_bytes: f64,
    /// Mean payload of the detector's event, bytes; null in results of earlier versions.
    #[serde(default)]
    pub event_bytes: Option<f64>,
    /// Concurrent operations; null for a stream, in which all stages work concurrently.
    pub operations_under_way: Option<u32>,
    /// Changed settings, as given.
    pub with: Vec<String>,
    /// Number of machines in parallel.
    pub hosts: u32,
}

/// Prediction for one configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// Point of the sweep, as in "4"; empty without one.
    pub label: String,
    /// Rate of all hosts together at the best known values.
    pub bytes_per_second: f64,
    /// 2.5 % quantile of the rate over the ranges of all numbers; null without ranges.
    pub lower_bytes_per_second: Option<f64>,
    /// 97.5 % quantile.
    pub upper_bytes_per_second: Option<f64>,
    /// Events of the detector per second; null in results of earlier versions.
    #[serde(default)]
    pub events_per_second: Option<f64>,
    /// Operations of the path per second, each of `operation_bytes`.
    pub operations_per_second: f64,
    /// Rate over required rate; null without a required rate.
    pub headroom: Option<f64>,
    /// Busy cores of one host at the predicted rate; null if CPU costs are not modelled.
    pub cores_busy: Option<f64>,
    /// Busy cores of one host at the required rate, as far as it is reached.
    pub cores_busy_at_required: Option<f64>,
    /// Limits, the bottleneck first, then the runner-up and all others.
    pub parts: Vec<PredictedPart>,
    /// Resources needed for the required rate; null without one.
    pub enough: Option<Enough>,
    /// Memory needed for stalls; empty if stalls are not modelled.
    pub buffers: Vec<PredictedBuffer>,
}

/// One resource on the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedPart {
    /// Name in the machine.
    pub name: String,
    /// Part of the catalog.
    pub part: String,
    /// Count.
    pub count: u32,
    /// Whether it limits by a master waiting for answers, so that more of it would not help.
    pub is_waiting: bool,
    /// Rate of all hosts together if it were the only limit.
    pub bytes_per_second: f64,
    /// Utilization at the predicted rate, 0 to 1.
    pub utilisation: f64,
    /// Demand at the required rate over capacity, above 1 if insufficient; null without a required rate, and
    /// in results of earlier versions.
    #[serde(default)]
    pub utilisation_at_required: Option<f64>,
    /// Relative growth of the rate with 10 % more of it; null for a second limit of the same
    /// resource.
    pub gain_of_a_tenth: Option<f64>,
}

/// Resources needed for the required rate with headroom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Enough {
    /// Rate to reach, bytes per second: required rate with headroom.
    pub bytes_per_second: f64,
    /// Number of such machines; null if even thousands would not suffice.
    pub hosts: Option<u32>,
    /// Resources that are insufficient in one machine, with the counts needed.
    pub more: Vec<MoreOf>,
}

/// An insufficient resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoreOf {
    /// Name in the machine.
    pub name: String,
    /// Present count.
    pub count: u32,
    /// Needed count; null if more of it does not help because its master waits for answers.
    pub needed: Option<u32>,
}

/// Memory needed for a stall.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedBuffer {
    /// Incoming rate, bytes per second.
    pub bytes_per_second: f64,
    /// Length of the stall, seconds.
    pub stall_seconds: f64,
    /// Memory for the data that arrives during the stall, bytes.
    pub bytes: f64,
    /// Time from the end of the stall until the memory is empty, seconds; null if never.
    pub recovery_seconds: Option<f64>,
    /// Time from the end of one stall to the next, seconds; null for a single one.
    pub every_seconds: Option<f64>,
    /// Memory without loss at that stall frequency, simulated; null for a single stall, and if no
    /// memory suffices.
    pub repeated_bytes: Option<f64>,
    /// Available memory, bytes; null if not given.
    pub given_bytes: Option<f64>,
    /// Lost share of the data with that memory, simulated; null if not given.
    pub lost_share: Option<f64>,
}

/// An input number of a prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    /// Part and name, as in "loop.baud".
    pub name: String,
    /// Best known value with unit.
    pub value: String,
    /// Range with units; null if unknown.
    pub range: Option<String>,
    /// Kind of source: datasheet, paper, standard, measured, fitted, guessed.
    pub source: String,
    /// Source.
    pub from: String,
    /// Share of the prediction's scatter caused by its range, 0 to 1; null without a range.
    pub share: Option<f64>,
}

/// Comparison of published and predicted figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedPapers {
    /// Figures that the model predicts.
    pub cells: Vec<PredictedCell>,
    /// Figures that it does not predict, with reasons.
    pub open: Vec<OpenCell>,
    /// Claims that contradict their papers' own numbers.
    pub contradicted: Vec<ContradictedClaim>,
    /// Number of fitted constants.
    pub fitted_constants: u32,
    /// Accuracy of the model.
    pub skill: Vec<Skill>,
}

/// Origin of a predicted value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Derived from protocols and counts alone.
    Derived,
    /// Predicted with constants fitted to other cells.
    Predicted,
    /// A constant was fitted to this cell, or to figures that it follows from, so it proves nothing.
    Fitted,
    /// Rests on a constant that the paper does not state and that was chosen with this figure in view, so it
    /// proves nothing.
    Assumed,
}

impl Origin {
    /// Whether the published figure tests the model.
    #[must_use]
    pub fn is_test(self) -> bool {
        matches!(self, Self::Derived | Self::Predicted)
    }

    /// Name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Derived => "derived",
            Self::Predicted => "predicted",
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
        }
    }
}

/// One published figure and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PredictedCell {
    /// Name of the paper.
    pub paper: String,
    /// Id of the figure in the list of published numbers.
    pub id: String,
    /// Measured system.
    pub system: String,
    /// Machine of the catalog that predicts it; empty for figures of a formula, and in results of earlier
    /// versions.
    #[serde(default)]
    pub machine: String,
    /// Condition.
    pub condition: String,
    /// Quantity.
    pub quantity: String,
    /// Unit of both values.
    pub unit: String,
    /// Published value.
    pub published: f64,
    /// Predicted value.
    pub predicted: f64,
    /// Lower bound of the prediction, from the ranges of its numbers; null without ranges.
    pub lower: Option<f64>,
    /// Upper bound.
    pub upper: Option<f64>,
    /// Relative error of the prediction.
    pub error: f64,
    /// Value of the "no change" baseline model; null where it has no reference.
    pub unchanged: Option<f64>,
    /// Origin of the predicted value.
    pub origin: Origin,
    /// Maximum relative error for the cell to count as met.
    pub target: f64,
    /// Limiting resource, or derivation.
    pub because: String,
}

/// Published figures that the model does not predict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenCell {
    /// Name of the paper.
    pub paper: String,
    /// Id of the figure.
    pub id: String,
    /// Description.
    pub what: String,
    /// Reason.
    pub why: String,
}

/// A contradicted claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContradictedClaim {
    /// Name of the paper.
    pub paper: String,
    /// Place in the paper.
    pub place: String,
    /// Claim, paraphrased.
    pub says: String,
    /// Result from the paper's own numbers.
    pub arithmetic: String,
}

/// Accuracy of the model for one kind of cells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Kind of cells.
    pub of: String,
    /// Number of cells.
    pub cells: u32,
    /// Number of cells within their target.
    pub met: u32,
    /// Median absolute relative error.
    pub median_error: f64,
    /// Maximum absolute relative error.
    pub worst_error: f64,
    /// Median absolute relative error of the "no change" model; null without such cells.
    #[serde(default)]
    pub median_error_unchanged: Option<f64>,
    /// Median absolute relative error of the median of the other machines: the "no change" value times the
    /// median change of the same quantity on all machines but the cell's own; null without other machines.
    #[serde(default)]
    pub median_error_of_others: Option<f64>,
    /// Skill: 1 - (mean squared error of the model / that of the "no change" model), over cells
    /// with both: above 0 it is better; null without such cells.
    pub over_unchanged: Option<f64>,
    /// The same figures with the cells of one machine left out, one entry for each machine; empty with fewer
    /// than three machines.
    #[serde(default)]
    pub left_out: Vec<SkillWithout>,
}

/// Accuracy without the cells of one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillWithout {
    /// Machine whose cells are left out.
    pub machine: String,
    /// Number of remaining cells with a "no change" value.
    pub cells: u32,
    /// Median absolute relative error of the model.
    pub median_error: f64,
    /// Median absolute relative error of the "no change" model.
    pub median_error_unchanged: f64,
    /// Median absolute relative error of the median of the other machines; null without other machines.
    pub median_error_of_others: Option<f64>,
    /// Skill over the "no change" model; null if that model has no error.
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

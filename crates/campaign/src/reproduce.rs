//! The five papers as campaigns: what each one measured, as commands of today, and its own tables with this
//! machine beside the published systems.
//!
//! A reproduction is a campaign like any other, with a `[paper]` table that says whose page is made of its
//! results. Invariants: every published figure comes from `papers/*.toml`; a figure of this machine comes
//! from a result; arithmetic is computed, not typed.
mod cdf;
mod cern;
mod esrf;
mod found;
mod published;
mod romanis;
mod tweakers;

use std::path::PathBuf;

use keepup_results::{CampaignSummary, PaperPage};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub use self::found::Reproduced;
use crate::error::CampaignError;

/// Papers that can be repeated.
const ALL: [&dyn Reproduction; 5] =
    [&esrf::Esrf, &cdf::Cdf, &cern::Cern, &tweakers::Tweakers, &romanis::Romanis];

/// What a campaign's file says of the paper that it repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperTable {
    /// Name of the paper.
    pub name: String,
    /// Part of the paper's amounts of data that is moved.
    pub scale: f64,
    /// Results that were measured elsewhere and belong into the same tables.
    #[serde(default)]
    pub with: Vec<PathBuf>,
}

/// What is known when a reproduction begins.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperRequest {
    /// Directories on the disks that are measured.
    pub volumes: Vec<PathBuf>,
    /// Part of the paper's amounts of data that is moved.
    pub scale: f64,
    /// Runs of each cell; the paper's own number unless given.
    pub repetitions: Option<u32>,
    /// A directory on a RAID 0 of the same disks, where one was made.
    pub raid: Option<PathBuf>,
    /// Register targets, as `keepup register read` takes them.
    pub targets: Vec<String>,
    /// Results that were measured elsewhere.
    pub with: Vec<PathBuf>,
    /// Directory with the traces that [`Reproduction::traces`] asks for.
    pub traces: PathBuf,
}

/// A trace to be made up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceWanted {
    /// Folder below [`PaperRequest::traces`]: what is replayed together.
    pub folder: &'static str,
    /// Whose it is, as `keepup trace make` takes it.
    pub personality: &'static str,
    /// How long it lasts, as in "60 s".
    pub time: String,
}

/// A paper that can be repeated.
pub trait Reproduction: Sync {
    /// Its name, as `keepup reproduce` takes it.
    fn name(&self) -> &'static str;

    /// Traces that it replays. They are made up before it begins.
    fn traces(&self, _scale: f64) -> Vec<TraceWanted> {
        Vec::new()
    }

    /// What it measures: tables `run`, `axes` and `baseline` of a campaign's file.
    ///
    /// # Errors
    /// The request lacks something that it needs.
    fn campaign(&self, request: &PaperRequest) -> Result<Table, CampaignError>;

    /// Its tables, figures and findings.
    fn page(&self, found: &Reproduced<'_>) -> PaperPage;
}

/// Names of all papers.
#[must_use]
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|paper| paper.name()).collect()
}

/// A paper by its name.
#[must_use]
pub fn reproduction(name: &str) -> Option<&'static dyn Reproduction> {
    ALL.iter().copied().find(|paper| paper.name() == name)
}

/// The text of the campaign that repeats a paper.
///
/// # Errors
/// The request lacks something that it needs.
pub fn campaign_text(paper: &dyn Reproduction, request: &PaperRequest) -> Result<String, CampaignError> {
    let mut file = paper.campaign(request)?;
    file.insert("name".into(), paper.name().into());
    if let Some(repetitions) = request.repetitions {
        file.insert("repetitions".into(), i64::from(repetitions).into());
    }
    let with = request.with.iter().map(|path| path.display().to_string().into()).collect();
    let mut table = Table::new();
    table.insert("name".into(), paper.name().into());
    table.insert("scale".into(), request.scale.into());
    table.insert("with".into(), Value::Array(with));
    file.insert("paper".into(), Value::Table(table));
    toml::to_string(&file).map_err(|why| CampaignError::Paper {
        name: paper.name().to_owned(),
        why: format!("its campaign cannot be written: {why}"),
    })
}

/// The page of the paper that a campaign repeats; `None` when it repeats none.
#[must_use]
pub fn page(
    table: Option<&PaperTable>,
    campaign: &CampaignSummary,
    directory: &std::path::Path,
) -> Option<PaperPage> {
    let table = table?;
    let found = Reproduced::read(table, campaign, directory);
    reproduction(&table.name).map(|paper| paper.page(&found))
}

/// The file of a paper's campaign: what all cells share, and what varies.
fn file<const N: usize>(title: &str, repetitions: i64, run: Table, axes: [(&str, Vec<Value>); N]) -> Table {
    let axes = axes.map(|(name, values)| (name.to_owned(), Value::Array(values)));
    Table::from_iter([
        ("title".to_owned(), title.into()),
        ("repetitions".to_owned(), repetitions.into()),
        ("run".to_owned(), Value::Table(run)),
        ("axes".to_owned(), Value::Table(Table::from_iter(axes))),
    ])
}

/// One value of an axis: its label and what it sets.
fn labelled(label: &str, settings: &[(&str, Value)]) -> Value {
    let mut table = Table::new();
    table.insert("label".into(), label.into());
    table.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Value::Table(table)
}

/// A size in bytes for a flag, a part of what the paper moved: a multiple of `step`, and at least one.
fn scaled(bytes: u64, scale: f64, step: u64) -> Value {
    let steps = (bytes as f64 * scale / step as f64).round().max(1.0) as u64;
    format!("{} B", steps * step).into()
}

/// Volumes as values of an axis.
fn volumes(request: &PaperRequest) -> Result<Vec<Value>, CampaignError> {
    if request.volumes.is_empty() {
        return Err(CampaignError::Paper {
            name: "reproduce".into(),
            why: "no volume was given\nhint: --volume DIR, once for each disk".into(),
        });
    }
    Ok(request.volumes.iter().map(|volume| volume.display().to_string().into()).collect())
}

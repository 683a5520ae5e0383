//! Five papers repeated: a campaign for each one's measurements, and the paper's own tables with this machine
//! beside the published systems.
//!
//! A reproduction is a campaign with a `[paper]` table, which names the paper whose page is made of its
//! results. [`reproduction`] finds a paper by name, [`campaign_text`] writes its campaign, [`page`] makes its
//! page from the campaign's result, and [`published_systems`] gives its figures to `keepup compare`.
//!
//! One file per paper: `esrf.rs`, `cdf.rs` (tables and findings in `cdf/`), `cern.rs`, `tweakers.rs`,
//! `romanis.rs`. `found.rs` reads what was measured, `published.rs` and `systems.rs` what was printed.
//!
//! Invariants: every published figure comes from `papers/*.toml`; a figure of this machine comes from a
//! result; arithmetic is computed, not typed.
mod cdf;
mod cern;
mod error;
mod esrf;
mod found;
mod published;
mod romanis;
mod systems;
mod tweakers;

use std::path::PathBuf;

use keepup_campaign::PaperSettings;
use keepup_error::Cause;
use keepup_results::{CampaignSummary, PaperPage};
use toml::{Table, Value};

pub use self::error::ReproduceError;
pub use self::found::Reproduced;
pub use self::systems::published_systems;

/// Papers that can be repeated.
const ALL: [&dyn Reproduction; 5] =
    [&esrf::Esrf, &cdf::Cdf, &cern::Cern, &tweakers::Tweakers, &romanis::Romanis];

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
    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError>;

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
pub fn campaign_text(paper: &dyn Reproduction, request: &PaperRequest) -> Result<String, ReproduceError> {
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
    toml::to_string(&file).map_err(|why| ReproduceError::Paper {
        name: paper.name().to_owned(),
        why: format!("its campaign cannot be written: {why}").into(),
    })
}

/// The page of the paper that a campaign repeats; `None` when it repeats none.
#[must_use]
pub fn page(
    paper: Option<&PaperSettings>,
    campaign: &CampaignSummary,
    directory: &std::path::Path,
) -> Option<PaperPage> {
    let paper = paper?;
    let found = Reproduced::read(paper, campaign, directory);
    reproduction(&paper.name).map(|paper| paper.page(&found))
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
fn volumes(request: &PaperRequest) -> Result<Vec<Value>, ReproduceError> {
    if request.volumes.is_empty() {
        return Err(ReproduceError::Paper {
            name: "reproduce".into(),
            why: Cause::new("no volume was given").with_hint("--volume DIR, once for each disk"),
        });
    }
    Ok(request.volumes.iter().map(|volume| volume.display().to_string().into()).collect())
}

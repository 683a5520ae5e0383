//! Reproductions of five papers: a campaign with the paper's measurements, and the paper's tables with this
//! machine added to the published systems.
//!
//! A reproduction is a campaign with a `[paper]` table that names the paper. [`reproduction`] finds a paper
//! by name, [`campaign_text`] writes its campaign, [`page`] builds its page from the results, and
//! [`published_systems`] returns its figures for `keepup compare`.
//!
//! One file per paper: `esrf.rs`, `cdf.rs` (tables and findings in `cdf/`), `cern.rs`, `tweakers.rs`,
//! `romanis.rs`. `fleet.rs` has the question how many hosts a detector needs, for two of them. `measured.rs`
//! reads the results, `published.rs` and `systems.rs` the published figures, `experiments.rs` the experiments
//! and their cells, `with.rs` the results of other machines.
//!
//! Invariants: every published figure comes from `papers/*.toml`; every figure of this machine comes from a
//! result; derived values are computed, not typed.
mod cdf;
mod cern;
mod error;
mod esrf;
mod experiments;
mod fleet;
mod measured;
mod model;
mod published;
mod romanis;
mod systems;
#[cfg(test)]
mod testing;
mod tweakers;
mod with;

use std::path::PathBuf;

use keepup_campaign::PaperSettings;
use keepup_error::Cause;
use keepup_results::{CampaignSummary, PaperPage, StoredResult};
use toml::{Table, Value};

pub use self::error::ReproduceError;
pub use self::measured::Reproduced;
pub use self::systems::published_systems;
pub use self::with::check_result_of_other;

/// Papers that can be reproduced.
const ALL: [&dyn Reproduction; 5] =
    [&esrf::Esrf, &cdf::Cdf, &cern::Cern, &tweakers::Tweakers, &romanis::Romanis];

/// Answer without results.
const NOT_MEASURED: &str = "not measured";

/// Settings of a reproduction.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperRequest {
    /// Directories on the disks to measure.
    pub volumes: Vec<NamedVolume>,
    /// Fraction of the paper's amounts of data.
    pub scale: f64,
    /// Runs per cell. Default: as in the paper.
    pub repetitions: Option<u32>,
    /// Directory on a RAID 0 of the same disks, if any.
    pub raid: Option<PathBuf>,
    /// Register targets, as `keepup register read` takes them.
    pub targets: Vec<String>,
    /// Simulated devices that are read unless targets are given, each with its register profile, if any.
    pub simulated: Vec<(String, Option<String>)>,
    /// Address of a `keepup net serve` on another host. Default: loopback.
    pub host: Option<String>,
    /// Whether to include tests that take days at full scale.
    pub is_long: bool,
    /// Logical cores of this machine.
    pub cores: u32,
    /// Fleet that is measured in place of this machine.
    pub fleet: Option<FleetRequest>,
    /// Results from other machines.
    pub with: Vec<PathBuf>,
    /// Unique part of the names of files that belong to this reproduction.
    pub id: String,
    /// Directory with the traces that [`Reproduction::traces`] asks for.
    pub traces: PathBuf,
}

/// Option of a request that not all papers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOption {
    /// [`PaperRequest::volumes`].
    Volume,
    /// [`PaperRequest::raid`].
    Raid,
    /// [`PaperRequest::targets`].
    Target,
    /// [`PaperRequest::host`].
    Host,
    /// [`PaperRequest::is_long`].
    Long,
    /// [`PaperRequest::fleet`].
    Fleet,
}

/// Fleet to measure with 1 to all of its recorders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetRequest {
    /// Fleet file.
    pub file: PathBuf,
    /// Number of recorders in it.
    pub recorders: u32,
    /// Whether to measure every recorder alone, too, beside all of them.
    pub each: bool,
}

/// Directory on a disk to measure, with its name in tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedVolume {
    /// Name, such as "raid5". Default: the directory.
    pub name: String,
    /// Directory.
    pub path: PathBuf,
}

/// Synthetic trace that a reproduction needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredTrace {
    /// Folder below [`PaperRequest::traces`]. Traces of a folder are replayed together.
    pub folder: &'static str,
    /// Personality, as in `keepup trace make`.
    pub personality: &'static str,
    /// Duration, such as "60 s".
    pub time: String,
}

/// Paper that can be reproduced.
pub trait Reproduction: Sync {
    /// Name, as in `keepup reproduce`.
    fn name(&self) -> &'static str;

    /// Whether it uses an option of the request. All use scale, repetitions and results of other machines.
    fn uses(&self, option: RequestOption) -> bool;

    /// Whether its own tables show a result of another machine.
    fn shows(&self, _result: &StoredResult) -> bool {
        false
    }

    /// Traces to generate before the campaign.
    fn traces(&self, _scale: f64) -> Vec<RequiredTrace> {
        Vec::new()
    }

    /// Tables `run`, `axes` and `baseline` of the campaign file.
    ///
    /// # Errors
    /// The request lacks a required setting.
    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError>;

    /// Builds its tables, figures and findings.
    fn page(&self, found: &Reproduced<'_>) -> PaperPage;
}

/// Names of all papers.
#[must_use]
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|paper| paper.name()).collect()
}

/// Relative standard deviation of the ESRF paper's repeated figures.
#[must_use]
pub fn esrf_repeatability() -> f64 {
    esrf::repeatability(&published::PublishedPaper::of(esrf::NAME))
}

/// Names of the papers that use an option.
#[must_use]
pub fn users_of(option: RequestOption) -> Vec<&'static str> {
    ALL.iter().filter(|paper| paper.uses(option)).map(|paper| paper.name()).collect()
}

/// Finds a paper by name.
#[must_use]
pub fn reproduction(name: &str) -> Option<&'static dyn Reproduction> {
    ALL.iter().copied().find(|paper| paper.name() == name)
}

/// Text of the campaign file that reproduces a paper.
///
/// # Errors
/// The request lacks a required setting.
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
        why: format!("cannot encode its campaign: {why}").into(),
    })
}

/// Page of the paper that a campaign reproduces, `None` for other campaigns.
#[must_use]
pub fn page(
    paper: Option<&PaperSettings>,
    campaign: &CampaignSummary,
    directory: &std::path::Path,
) -> Option<PaperPage> {
    let paper = paper?;
    let found = Reproduced::read(paper, campaign, directory);
    let mut page = reproduction(&paper.name)?.page(&found);
    // The experiments of the papers are those of one machine.
    if page.fleet.is_none() {
        page.experiments =
            published::PublishedPaper::of(&paper.name).experiments(&campaign.cells, !found.with().is_empty());
    }
    with::add_rows(&mut page, found.with());
    if found.scale() < 1.0 {
        let answers = page.answers.iter_mut().filter(|answer| answer.here != NOT_MEASURED);
        answers.for_each(|answer| answer.here.push_str(&format!(" [scale {}]", found.scale())));
    }
    Some(page)
}

/// Campaign file with common settings and axes.
fn file<const N: usize>(title: &str, repetitions: i64, run: Table, axes: [(&str, Vec<Value>); N]) -> Table {
    let axes = axes.map(|(name, values)| (name.to_owned(), Value::Array(values)));
    Table::from_iter([
        ("title".to_owned(), title.into()),
        ("repetitions".to_owned(), repetitions.into()),
        ("run".to_owned(), Value::Table(run)),
        ("axes".to_owned(), Value::Table(Table::from_iter(axes))),
    ])
}

/// Axis value with its label and settings.
fn labelled(label: &str, settings: &[(&str, Value)]) -> Value {
    let mut table = Table::new();
    table.insert("label".into(), label.into());
    table.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Value::Table(table)
}

/// Scales an amount of data to a multiple of `step`, at least one.
fn scaled(bytes: u64, scale: f64, step: u64) -> Value {
    let steps = (bytes as f64 * scale / step as f64).round().max(1.0) as u64;
    format!("{} B", steps * step).into()
}

/// Label of a test of a kind in a place.
fn label(kind: &str, place: &str) -> String {
    format!("{kind}, {place}")
}

/// Target of the network tests.
fn network_target(request: &PaperRequest) -> Value {
    request.host.as_deref().unwrap_or("self").into()
}

impl NamedVolume {
    /// Directory as a setting.
    fn value(&self) -> Value {
        self.path.display().to_string().into()
    }
}

/// Directories as one setting.
fn values(volumes: &[NamedVolume]) -> Value {
    Value::Array(volumes.iter().map(NamedVolume::value).collect())
}

/// Volumes of the request.
fn volumes(request: &PaperRequest) -> Result<&[NamedVolume], ReproduceError> {
    if request.volumes.is_empty() {
        return Err(ReproduceError::Paper {
            name: "reproduce".into(),
            why: Cause::new("no volume given").with_hint("use --volume DIR once for each disk"),
        });
    }
    Ok(&request.volumes)
}

//! Results of a reproduction.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use keepup_results::{
    CampaignCell, CampaignSummary, Figure, Headed, PaperCell, PaperPage, Quantity, Stored, StoredResult,
};
use serde_json::Value;

use crate::NOT_MEASURED;
use crate::published::PublishedPaper;
use keepup_campaign::PaperSettings;

/// All results of a reproduction.
#[derive(Debug)]
pub struct Reproduced<'a> {
    table: &'a PaperSettings,
    campaign: &'a CampaignSummary,
    cells: Vec<CellResults<'a>>,
    with: Vec<StoredResult>,
}

/// Campaign cell with the results of its runs.
#[derive(Debug)]
pub(crate) struct CellResults<'a> {
    pub(crate) cell: &'a CampaignCell,
    pub(crate) results: Vec<StoredResult>,
}

impl<'a> Reproduced<'a> {
    /// Reads the results of all cells. Skips unreadable ones.
    pub(crate) fn read(table: &'a PaperSettings, campaign: &'a CampaignSummary, directory: &Path) -> Self {
        let open = |path: &str| StoredResult::open(&directory.join(path)).ok();
        let of_cell = |cell: &'a CampaignCell| {
            let paths = cell.runs.iter().filter_map(|run| run.directory.as_deref());
            CellResults { cell, results: paths.filter_map(open).collect() }
        };
        Self {
            table,
            campaign,
            cells: campaign.cells.iter().map(of_cell).collect(),
            with: table.with.iter().filter_map(|path| StoredResult::open(path).ok()).collect(),
        }
    }

    /// Fraction of the paper's amounts of data.
    pub(crate) fn scale(&self) -> f64 {
        self.table.scale
    }

    /// Labels of an axis, in order.
    pub(crate) fn labels(&self, axis: &str) -> &'a [String] {
        let found = self.campaign.axes.iter().find(|known| known.name == axis);
        found.map_or(&[], |axis| &axis.labels)
    }

    /// Cells with these labels.
    pub(crate) fn cells(&self, labels: &[(&str, &str)]) -> impl Iterator<Item = &CellResults<'a>> {
        let has = |cell: &CampaignCell| {
            labels.iter().all(|(axis, label)| cell.coordinates.get(*axis).is_some_and(|l| l == label))
        };
        self.cells.iter().filter(move |found| has(found.cell))
    }

    /// All values of a figure in the cells with these labels.
    pub(crate) fn values(&self, labels: &[(&str, &str)], what: &str, quantity: Quantity) -> Vec<f64> {
        let figures = self.cells(labels).flat_map(|found| &found.cell.figures);
        values_of(figures, what, quantity)
    }

    /// Table cell of a figure, in `unit`.
    pub(crate) fn figure(
        &self,
        labels: &[(&str, &str)],
        what: &str,
        quantity: Quantity,
        unit: f64,
    ) -> PaperCell {
        let values: Vec<f64> = self.values(labels, what, quantity).iter().map(|v| v / unit).collect();
        match values.is_empty() {
            false => PaperCell::measured(&values),
            true => PaperCell::words(self.missing_reason(labels)),
        }
    }

    /// Cells of a kind of test with their places. Labels of the axis "test" are a kind, or a kind and a
    /// place: "sweep, /data/a". The place may be empty.
    pub(crate) fn cells_of_kind(&self, kind: &str) -> Vec<(&'a str, &CellResults<'a>)> {
        let place = |label: &'a String| match label.strip_prefix(kind)? {
            "" => Some((label, "")),
            rest => Some((label, rest.strip_prefix(", ")?)),
        };
        let places = self.labels("test").iter().filter_map(place);
        let of_place = |(label, place): (&'a String, &'a str)| {
            self.cells(&[("test", label)]).map(|cell| (place, cell)).collect::<Vec<_>>()
        };
        places.flat_map(of_place).collect()
    }

    /// Reason for a missing figure.
    fn missing_reason(&self, labels: &[(&str, &str)]) -> String {
        let runs = self.cells(labels).flat_map(|found| &found.cell.runs);
        let why = runs.filter_map(|run| run.why.as_deref()).next();
        match why {
            Some(why) => format!("not measured: {}", why.lines().next().unwrap_or_default()),
            None => NOT_MEASURED.to_owned(),
        }
    }

    /// Logical cores of this machine.
    pub(crate) fn cores(&self) -> Option<u64> {
        self.campaign.environment.pointer("/cpu/logical_cores/value").and_then(Value::as_u64)
    }

    /// Results from other machines.
    pub(crate) fn with(&self) -> &[StoredResult] {
        &self.with
    }

    /// Creates a page with the common parts.
    pub(crate) fn new_page(&self, edition: &PublishedPaper) -> PaperPage {
        let failed = self.campaign.totals.failed;
        let mut limits = Vec::new();
        if failed > 0 {
            limits.push(format!(
                "{failed} of {} runs failed; see the table of runs",
                self.campaign.totals.runs
            ));
        }
        if self.campaign.totals.left > 0 {
            limits.push(format!("{} runs were not done", self.campaign.totals.left));
        }
        PaperPage {
            name: self.table.name.clone(),
            title: edition.title(),
            source: edition.source(),
            claims: edition.claims(),
            machine: machine(&self.campaign.environment),
            scale: self.table.scale,
            limits,
            ..PaperPage::default()
        }
    }
}

impl CellResults<'_> {
    /// Disk results.
    pub(crate) fn disks(&self) -> impl Iterator<Item = &keepup_results::DiskSummary> {
        self.results.iter().filter_map(|result| match &result.summary {
            Stored::Disk(summary) => Some(&**summary),
            _ => None,
        })
    }

    /// Network results.
    pub(crate) fn nets(&self) -> impl Iterator<Item = &keepup_results::NetSummary> {
        self.results.iter().filter_map(|result| match &result.summary {
            Stored::Net(summary) => Some(&**summary),
            _ => None,
        })
    }

    /// Record results.
    pub(crate) fn records(&self) -> impl Iterator<Item = &keepup_results::RecordSummary> {
        self.results.iter().filter_map(|result| match &result.summary {
            Stored::Record(summary) => Some(&**summary),
            _ => None,
        })
    }

    /// Replay results.
    pub(crate) fn replays(&self) -> impl Iterator<Item = &keepup_results::ReplaySummary> {
        self.results.iter().filter_map(|result| match &result.summary {
            Stored::Replay(summary) => Some(&**summary),
            _ => None,
        })
    }

    /// Soak results.
    pub(crate) fn soaks(&self) -> impl Iterator<Item = &keepup_results::SoakSummary> {
        self.results.iter().filter_map(|result| match &result.summary {
            Stored::Soak(summary) => Some(&**summary),
            _ => None,
        })
    }
}

/// Cell of measured values, or "not measured".
pub(crate) fn measured(values: &[f64]) -> PaperCell {
    if values.is_empty() { PaperCell::words(NOT_MEASURED) } else { PaperCell::measured(values) }
}

/// Volumes of the environment records of all results.
pub(crate) fn environment_volumes<'f>(found: &'f Reproduced<'_>) -> impl Iterator<Item = &'f Value> {
    let results = found.cells(&[]).flat_map(|cell| &cell.results);
    let volumes = results.filter_map(|result| result.summary.head().environment.get("volumes")?.as_array());
    volumes.flatten()
}

/// Disk with more than one volume, from the environment records of the results.
pub(crate) fn shared_disk(found: &Reproduced<'_>) -> Option<String> {
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for volume in environment_volumes(found) {
        let path = volume.get("path").and_then(Value::as_str).unwrap_or_default();
        for disk in volume.get("disks").and_then(Value::as_object).into_iter().flat_map(|disks| disks.keys())
        {
            places.entry(disk).or_default().insert(path);
        }
    }
    places.into_iter().find(|(_, paths)| paths.len() > 1).map(|(disk, _)| disk.to_owned())
}

/// All values of a figure.
pub(crate) fn values_of<'f>(
    figures: impl Iterator<Item = &'f Figure>,
    what: &str,
    quantity: Quantity,
) -> Vec<f64> {
    let same = figures.filter(|figure| figure.what == what && figure.quantity == quantity);
    same.flat_map(|figure| figure.values.iter().copied()).collect()
}

/// One-line description of a machine, from its environment record.
fn machine(environment: &Value) -> String {
    let read = |pointer: &str| environment.pointer(pointer).filter(|value| !value.is_null());
    let text = |pointer: &str| read(pointer).and_then(Value::as_str).map(str::to_owned);
    let number = |pointer: &str| read(pointer).and_then(Value::as_u64);
    let parts = [
        text("/cpu/model/value"),
        number("/cpu/logical_cores/value").map(|cores| format!("{cores} cores")),
        number("/memory/total_bytes/value").map(|bytes| format!("{:.1} GB memory", bytes as f64 / 1e9)),
        text("/kernel/release/value").map(|release| format!("Linux {release}")),
        read("/machine/virtualised/value")
            .and_then(Value::as_bool)
            .filter(|yes| *yes)
            .map(|_| "virtual machine".into()),
    ];
    let known: Vec<String> = parts.into_iter().flatten().collect();
    if known.is_empty() { "unknown".to_owned() } else { known.join(", ") }
}

/// Display name of a result from another machine.
pub(crate) fn display_name(result: &StoredResult) -> String {
    let head = result.summary.head();
    let path = result.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    format!("{path} ({})", machine(head.environment))
}

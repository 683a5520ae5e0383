//! Experiments of a paper: which cells of a campaign repeat them.
use keepup_model::papers::{Experiment, ExperimentStatus, Paper};
use keepup_results::{CampaignCell, PaperExperiment};

/// Experiments of a paper with the cells that repeat them, and whether results of other machines were given.
pub(crate) fn of_campaign(paper: &Paper, cells: &[CampaignCell], has_others: bool) -> Vec<PaperExperiment> {
    paper.experiments.iter().map(|experiment| repeated(experiment, cells, has_others)).collect()
}

/// Option that adds results of other machines. An experiment that needs it is not repeated by this machine
/// alone.
const WITH: &str = "--with";

fn repeated(experiment: &Experiment, cells: &[CampaignCell], has_others: bool) -> PaperExperiment {
    let selected = cells.iter().filter(|cell| experiment.selects(&cell.coordinates));
    let (skipped, planned): (Vec<_>, Vec<_>) = selected.partition(|cell| cell.skipped.is_some());
    let has_result = |cell: &&CampaignCell| cell.runs.iter().any(|run| run.directory.is_some());
    let done: Vec<u32> = planned.iter().copied().filter(has_result).map(|cell| cell.number).collect();
    let is_half = !has_others && experiment.needs.as_deref() == Some(WITH);
    let status = match (&experiment.needs, skipped.first()) {
        _ if is_half => format!("this machine only: needs {WITH}"),
        _ if experiment.status == ExperimentStatus::Model || !done.is_empty() => {
            experiment.status.word().to_owned()
        }
        _ if !planned.is_empty() => "not done".to_owned(),
        (_, Some(cell)) => format!("skipped: {}", cell.skipped.as_deref().unwrap_or_default()),
        (Some(needs), None) => format!("not run: needs {needs}"),
        (None, None) => "not run".to_owned(),
    };
    PaperExperiment {
        id: experiment.id.clone(),
        stands: experiment.place.clone(),
        measures: experiment.measures.clone(),
        status,
        cells: done,
        difference: experiment.difference.clone(),
    }
}

#[cfg(test)]
#[path = "experiments_tests.rs"]
mod tests;

//! Experiments of a paper: which cells of a campaign repeat them, and the table of all papers.
use keepup_campaign::parse;
use keepup_model::papers::{Experiment, ExperimentStatus, Paper, paper};
use keepup_results::{CampaignCell, PaperExperiment};

use crate::error::ReproduceError;
use crate::{NamedVolume, PaperRequest, Reproduction, campaign_text, names, reproduction};

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

/// A request with every option, on directories named after their use.
pub(crate) fn full_request() -> PaperRequest {
    let volume = |name: &str| NamedVolume { name: name.to_owned(), path: name.into() };
    PaperRequest {
        volumes: vec![volume("DIR"), volume("DIR2")],
        scale: 1.0,
        repetitions: None,
        raid: Some("RAID".into()),
        targets: Vec::new(),
        host: None,
        is_long: true,
        cores: 2,
        with: Vec::new(),
        traces: "TRACES".into(),
    }
}

/// Rows of the table of experiments in `docs/papers.md`: paper, id and place, experiment, commands, status,
/// difference. The commands are those of a campaign with all options at full scale on two volumes, the first
/// of each kind.
///
/// # Errors
/// A campaign cannot be made.
pub fn experiment_rows() -> Result<Vec<[String; 6]>, ReproduceError> {
    let mut rows = Vec::new();
    for reproduction in names().into_iter().filter_map(reproduction) {
        rows.extend(rows_of(reproduction)?);
    }
    Ok(rows)
}

fn rows_of(reproduction: &dyn Reproduction) -> Result<Vec<[String; 6]>, ReproduceError> {
    let name = reproduction.name();
    let bad = |why: String| ReproduceError::Paper { name: name.to_owned(), why: why.into() };
    let text = campaign_text(reproduction, &full_request())?;
    let campaign = parse(&text, name, &names()).map_err(|error| bad(error.to_string()))?;
    let cells = campaign.cells();
    let paper = paper(name).map_err(|error| bad(error.to_string()))?;
    let row = |experiment: &Experiment| {
        let mut commands: Vec<String> = Vec::new();
        for selector in &experiment.cells {
            let alone = Experiment { cells: vec![selector.clone()], ..experiment.clone() };
            let first = cells
                .iter()
                .find(|cell| alone.selects(&campaign.coordinates(cell)) && cell.skipped.is_none());
            let command = first.map(|cell| format!("`{}`", cell.command()));
            commands.extend(command.filter(|command| !commands.contains(command)));
        }
        commands.extend(experiment.predict.iter().map(|predict| format!("`keepup predict {predict}`")));
        let needs = experiment.needs.iter().map(|needs| format!("needs {needs}"));
        let difference = experiment.difference.iter().cloned().chain(needs).collect::<Vec<_>>();
        [
            format!("`{name}`"),
            format!("{}, {}", experiment.id, experiment.place),
            experiment.measures.clone(),
            commands.join("<br>"),
            experiment.status.word().to_owned(),
            if difference.is_empty() { "-".to_owned() } else { difference.join("; ") },
        ]
    };
    Ok(paper.experiments.iter().map(row).collect())
}

#[cfg(test)]
#[path = "experiments_tests.rs"]
mod tests;

//! Every experiment of the papers has its cells, its table and its row in `docs/papers.md`.
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use keepup_campaign::{Forecasts, PaperSettings, State, parse, summarise};
use keepup_model::papers::paper;
use keepup_results::{CampaignSummary, Ended};

use super::*;
use crate::testing::{begun, full_request};
use crate::{PaperRequest, Reproduction, campaign_text, names, reproduction};

/// Every experiment that the five papers describe. One that is missing in `papers/*.toml` fails the test.
const EXPERIMENTS: [(&str, u32, char); 5] = [
    ("esrf-2007", 11, 'E'),
    ("cdf-csl", 13, 'K'),
    ("cern-vme", 7, 'C'),
    ("tweakers-pci", 8, 'T'),
    ("romanis", 6, 'R'),
];

fn all() -> Vec<(&'static dyn Reproduction, Paper)> {
    names().into_iter().map(|name| (reproduction(name).unwrap(), paper(name).unwrap())).collect()
}

/// The campaign of a paper with all options, without results.
fn campaign_of(reproduction: &dyn Reproduction, request: &PaperRequest) -> CampaignSummary {
    let text = campaign_text(reproduction, request).unwrap();
    let campaign = parse(&text, "test", &names()).unwrap();
    summarise(&State::new(campaign, Forecasts::default()), &begun(), None, Ended::default())
}

#[test]
fn every_experiment_of_the_list_is_there() {
    for (name, count, letter) in EXPERIMENTS {
        let paper = paper(name).unwrap();
        let found: BTreeSet<String> = paper.experiments.iter().map(|e| e.id.clone()).collect();
        let expected: BTreeSet<String> = (1..=count).map(|n| format!("{letter}{n}")).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn every_experiment_has_a_cell_and_every_cell_an_experiment() {
    for (reproduction, paper) in all() {
        let campaign = campaign_of(reproduction, &full_request());
        for experiment in &paper.experiments {
            let is_model = experiment.status == ExperimentStatus::Model;
            for selector in &experiment.cells {
                let alone = Experiment { cells: vec![selector.clone()], ..experiment.clone() };
                let is_run =
                    |cell: &&CampaignCell| alone.selects(&cell.coordinates) && cell.skipped.is_none();
                assert!(
                    campaign.cells.iter().any(|cell| is_run(&cell)),
                    "{} {}: no cell for {selector:?}",
                    paper.name,
                    experiment.id
                );
            }
            assert_eq!(is_model, experiment.cells.is_empty(), "{} {}", paper.name, experiment.id);
        }
        for cell in campaign.cells.iter().filter(|cell| cell.skipped.is_none()) {
            let is_of_one = paper.experiments.iter().any(|e| e.selects(&cell.coordinates));
            let is_extra = EXTRA.iter().any(|kind| cell.coordinates["test"].starts_with(kind));
            assert!(is_of_one || is_extra, "{}: {:?} is of no experiment", paper.name, cell.coordinates);
        }
    }
}

/// Cells beyond the papers: unthrottled volumes at once.
const EXTRA: [&str; 1] = ["volumes at once"];

#[test]
fn every_experiment_is_shown() {
    for (reproduction, paper) in all() {
        let campaign = campaign_of(reproduction, &full_request());
        let settings = PaperSettings { name: paper.name.clone(), scale: 1.0, with: Vec::new() };
        let page = crate::page(Some(&settings), &campaign, Path::new("/nowhere")).unwrap();
        for experiment in &paper.experiments {
            for title in &experiment.shows {
                let curves = page.curves.iter().map(|curve| &curve.title);
                let titles: Vec<&String> =
                    page.tables.iter().map(|table| &table.title).chain(curves).collect();
                assert!(
                    titles.iter().any(|known| known.starts_with(title.as_str())),
                    "{} {}: no table or chart {title:?} in {titles:#?}",
                    paper.name,
                    experiment.id
                );
            }
        }
        assert_eq!(page.experiments.len(), paper.experiments.len());
        let is_done = |e: &PaperExperiment| e.status == "same" || e.status == "nearest";
        assert!(!page.experiments.iter().any(is_done), "nothing was run: {:#?}", page.experiments);
    }
}

#[test]
fn an_experiment_without_its_option_says_what_it_needs() {
    let mut request = full_request();
    request.volumes.truncate(1);
    let campaign = campaign_of(reproduction("cdf-csl").unwrap(), &request);
    let experiments = of_campaign(&paper("cdf-csl").unwrap(), &campaign.cells, false);
    let both = experiments.iter().find(|experiment| experiment.id == "K5").unwrap();
    assert_eq!((both.status.as_str(), both.cells.len()), ("not run: needs --volume twice", 0));
    let campaign = campaign_of(reproduction("esrf-2007").unwrap(), &full_request());
    let status = |has_others| {
        let experiments = of_campaign(&paper("esrf-2007").unwrap(), &campaign.cells, has_others);
        experiments.into_iter().find(|experiment| experiment.id == "E9").unwrap().status
    };
    assert_eq!(status(false), "this machine only: needs --with");
    assert_eq!(status(true), "not done", "the campaign has no results");
}

#[test]
fn a_selector_takes_the_kind_and_any_place_but_no_other_kind() {
    let experiment = |kind: &str| Experiment {
        cells: vec![[("test".to_owned(), kind.to_owned())].into()],
        ..paper("romanis").unwrap().experiments[0].clone()
    };
    let labels = |label: &str| [("test".to_owned(), label.to_owned())].into();
    assert!(experiment("scaling").selects(&labels("scaling")));
    assert!(experiment("scaling").selects(&labels("scaling, /data/a")));
    assert!(!experiment("scaling").selects(&labels("scaling by plain calls")));
    assert!(!experiment("scaling").selects(&[("other".to_owned(), "scaling".to_owned())].into()));
}

/// Rows of the table of experiments in `docs/papers.md`: paper, id and place, experiment, commands, status,
/// difference. The commands are those of a campaign with all options at full scale on two volumes, the first
/// of each kind.
fn experiment_rows() -> Vec<[String; 6]> {
    all().into_iter().flat_map(|(reproduction, paper)| rows_of(reproduction, &paper)).collect()
}

fn rows_of(reproduction: &dyn Reproduction, paper: &Paper) -> Vec<[String; 6]> {
    let name = reproduction.name();
    let text = campaign_text(reproduction, &full_request()).unwrap();
    let campaign = parse(&text, name, &names()).unwrap();
    let cells = campaign.cells();
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
    paper.experiments.iter().map(row).collect()
}

#[test]
fn the_page_lists_every_experiment_as_it_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/papers.md");
    let page = fs::read_to_string(path).unwrap();
    let rows = experiment_rows();
    let rows: Vec<String> = rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
    let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    if std::env::var_os("KEEPUP_BLESS").is_some() {
        let (head, _) = page.split_once("|---|---|---|---|---|---|\n").unwrap();
        let text = format!("{head}|---|---|---|---|---|---|\n{}\n", rows.join("\n"));
        fs::write(path, text).unwrap();
        return;
    }
    assert_eq!(listed, rows, "KEEPUP_BLESS=1 cargo test -p keepup-reproduce writes the table");
    let count = |word: &str| rows.iter().filter(|row| row.contains(&format!("| {word} |"))).count();
    let sentence = format!("{} of them run as published", count("same"));
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    assert!(readme.contains(&sentence), "README should say: {sentence}");
    let sentence = format!("{} as the nearest test that can be run", count("nearest"));
    assert!(readme.contains(&sentence), "README should say: {sentence}");
}

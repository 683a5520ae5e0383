//! Coverage and accuracy of published figures.
use keepup_results::PredictedCell;

use super::*;
use crate::papers::{Published, paper_names};

fn all() -> PredictedPapers {
    predicted_papers(&[], 100, 7).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_figure_is_a_cell_or_is_open_with_a_reason() {
    for (name, text) in EMBEDDED {
        let cells = parse(text, name).unwrap();
        assert_eq!(&cells.paper, name);
        let paper = paper(name).unwrap();
        for figure in &paper.figures {
            let is_cell = cells.cells.iter().any(|cell| cell.of.is_it(figure));
            let is_open = cells.open.iter().any(|open| open.of.is_it(figure));
            assert!(is_cell || is_open, "{name}: nothing is said of {figure:#?}");
        }
        for open in &cells.open {
            assert!(paper.figures.iter().any(|figure| open.of.is_it(figure)), "{name}: {open:?}");
        }
    }
    assert_eq!(paper_names().count(), EMBEDDED.len());
}

#[test]
fn what_is_derived_is_within_two_per_cent() {
    let derived: Vec<_> = all().cells.into_iter().filter(|cell| cell.origin == Origin::Derived).collect();
    assert!(derived.len() >= 6);
    for cell in derived {
        assert!(cell.error.abs() <= 0.02 && cell.target <= 0.02, "{cell:#?}");
    }
}

#[test]
fn what_is_fitted_fits_and_what_is_missed_is_known() {
    let mut missed = Vec::new();
    for cell in all().cells {
        assert!(cell.target <= 0.1, "{cell:#?}");
        if cell.error.abs() > cell.target {
            assert_ne!(cell.origin, Origin::Fitted, "{cell:#?}");
            missed.push(format!("{} {}: {:+.3}", cell.id, cell.condition, cell.error));
        }
    }
    let known = [
        "K2 3 files at once: +0.125",
        "K2 4 files at once: +0.135",
        "K7 all 20000 events: -0.200",
        "E1 gigabit Ethernet incoming: -0.111",
        "E3 gigabit Ethernet incoming: +0.162",
        "T4 the same, with other devices on the bus: +0.120",
    ];
    assert_eq!(missed, known, "{missed:#?}");
}

#[test]
fn the_network_beside_the_disks_is_told_better_than_by_nothing_changes() {
    let found = all();
    let skill = |of: &str| found.skill.iter().find(|skill| skill.of.contains(of)).unwrap();
    assert!(skill("with network traffic").over_unchanged.unwrap() > 0.0, "{:#?}", found.skill);
    let loaded = |id: &str| {
        let cells = found.cells.iter().filter(|cell| cell.id == id && cell.condition.contains("incoming"));
        cells.map(|cell| (cell.predicted, cell.unchanged.unwrap())).collect::<Vec<_>>()
    };
    // Writes are slowed down only where they share a bus.
    assert!(loaded("E2")[..3].iter().all(|(with, without)| with < &(0.8 * without)), "{:?}", loaded("E2"));
    for id in ["E1", "E3", "E4", "E5", "E6", "E7"] {
        assert!(loaded(id).iter().all(|(with, without)| with > &(0.97 * without)), "{id}: {:?}", loaded(id));
    }
}

#[test]
fn figures_that_are_the_input_of_their_own_constant_are_not_called_predicted() {
    let found = all();
    let origin = |id: &str, words: &str| {
        let is_it = |cell: &&PredictedCell| {
            cell.id == id
                && [&cell.system, &cell.condition, &cell.quantity].iter().any(|text| text.contains(words))
        };
        let origins: Vec<Origin> = found.cells.iter().filter(is_it).map(|cell| cell.origin).collect();
        assert!(!origins.is_empty(), "{id} {words}");
        origins
    };
    // Ratios of times to which constants were fitted.
    for words in ["DMA over single", "L865", "PPC4"] {
        assert!(origin("C6", words).iter().all(|origin| *origin == Origin::Fitted), "C6 {words}");
    }
    // The cycles of the TL follow from a busy processor at 80 MB/s, those of the ISP from its equal rate.
    assert_eq!(origin("F4", "CPU"), [Origin::Fitted]);
    assert_eq!((origin("F4", "gain"), origin("F4", "rate")), (vec![Origin::Assumed], vec![Origin::Assumed]));
    // 24 KiB are the size that gives 4 MB/s.
    assert_eq!(origin("T1", "random"), [Origin::Assumed]);
}

#[test]
fn the_skill_on_disks_with_traffic_rests_on_the_one_shared_bus() {
    let found = all();
    let skill = found.skill.iter().find(|skill| skill.of.contains("with network traffic")).unwrap();
    assert_eq!(skill.left_out.len(), 7, "E1 to E7: {skill:#?}");
    for one in &skill.left_out {
        let over = one.over_unchanged.unwrap();
        assert_eq!(over < 0.1, one.machine == "papers/esrf-e2", "{one:#?}");
    }
    assert!(skill.median_error_unchanged.is_some() && skill.median_error_of_others.is_some(), "{skill:#?}");
}

#[test]
fn contradicted_claims_come_with_the_arithmetic() {
    let claims: Vec<String> = all().contradicted.into_iter().map(|claim| claim.arithmetic).collect();
    assert!(claims.iter().any(|text| text.contains("966 words, not 1800")), "{claims:#?}");
    assert!(claims.iter().any(|text| text.contains("not 8") || text.contains("lanes, not 4")), "{claims:#?}");
}

#[test]
fn one_paper_can_be_selected_and_unknown_names_are_refused() {
    let found = predicted_papers(&["romanis".to_owned()], 100, 7).unwrap();
    assert!(found.cells.iter().all(|cell| cell.paper == "romanis"));
    let why = predicted_papers(&["romanes".to_owned()], 100, 7).unwrap_err().to_string();
    assert!(why.contains("romanis"), "{why}");
}

#[test]
fn intervals_hold_the_value() {
    for cell in all().cells {
        let Some((lower, upper)) = cell.lower.zip(cell.upper) else { continue };
        assert!(lower <= upper, "{cell:#?}");
    }
    let published = paper("esrf-2007").unwrap();
    assert!(published.figures.iter().any(|figure| matches!(figure.published(), Some(Published::Value(_)))));
}

//! Skill of invented predictions, of which one machine makes all.
use super::*;

fn cell(machine: &str, quantity: &str, published: f64, predicted: f64, origin: Origin) -> PredictedCell {
    PredictedCell {
        paper: "esrf-2007".into(),
        id: machine.into(),
        system: String::new(),
        machine: machine.into(),
        condition: String::new(),
        quantity: quantity.into(),
        unit: "MiB/s".into(),
        published,
        predicted,
        lower: None,
        upper: None,
        error: predicted / published - 1.0,
        unchanged: Some(100.0),
        origin,
        target: 0.1,
        because: String::new(),
    }
}

/// Three machines on which nothing changes, and one whose loss of half is predicted.
fn four() -> Vec<PredictedCell> {
    let predicted = |machine, published, value| cell(machine, "write", published, value, Origin::Predicted);
    vec![
        predicted("a", 98.0, 100.0),
        predicted("b", 50.0, 51.0),
        predicted("c", 102.0, 100.0),
        predicted("d", 96.0, 100.0),
    ]
}

fn named<'a>(all: &'a [Skill], name: &str) -> &'a Skill {
    all.iter().find(|skill| skill.of.contains(name)).unwrap()
}

#[test]
fn skill_that_one_machine_makes_is_gone_without_it() {
    let all = of(&four());
    let skill = named(&all, "network traffic");
    assert!(skill.over_unchanged.unwrap() > 0.99, "{skill:#?}");
    assert_eq!(
        skill.left_out.iter().map(|one| one.machine.as_str()).collect::<Vec<_>>(),
        ["a", "b", "c", "d"]
    );
    for one in &skill.left_out {
        assert_eq!(one.cells, 3);
        let over = one.over_unchanged.unwrap();
        // Off machine b the model says that nothing changes, as the null model does.
        assert_eq!(over.abs() < 1e-12, one.machine == "b", "{one:#?}");
    }
}

#[test]
fn the_median_of_the_other_machines_excludes_the_own_one() {
    let all = of(&four());
    let skill = named(&all, "network traffic");
    // Changes of the others: a 0.96, b 0.98, c 0.96, d 0.98.
    let errors = [96.0 / 98.0, 98.0 / 50.0, 96.0 / 102.0, 98.0 / 96.0].map(|ratio: f64| (ratio - 1.0).abs());
    let wanted = median(&errors).unwrap();
    assert!((skill.median_error_of_others.unwrap() - wanted).abs() < 1e-12, "{skill:#?}");
    let unchanged = median(&[100.0 / 98.0 - 1.0, 1.0, 1.0 - 100.0 / 102.0, 100.0 / 96.0 - 1.0]).unwrap();
    assert!((skill.median_error_unchanged.unwrap() - unchanged).abs() < 1e-12, "{skill:#?}");
}

#[test]
fn fitted_and_assumed_cells_do_not_count_but_their_published_change_does() {
    let mut cells = four();
    let before = of(&cells);
    cells.push(cell("e", "write", 10.0, 10.0, Origin::Fitted));
    cells.push(cell("f", "write", 10.0, 10.0, Origin::Assumed));
    let after = of(&cells);
    let (before, after) = (named(&before, "all"), named(&after, "all"));
    assert_eq!(
        (before.cells, before.met, before.over_unchanged),
        (after.cells, after.met, after.over_unchanged)
    );
    assert_ne!(before.median_error_of_others, after.median_error_of_others);
}

#[test]
fn two_machines_are_too_few_to_leave_one_out() {
    let all = of(&four()[..2]);
    assert!(named(&all, "network traffic").left_out.is_empty());
    // Another quantity has no other machine.
    let alone = [cell("a", "read", 90.0, 91.0, Origin::Predicted)];
    assert_eq!(named(&of(&alone), "network traffic").median_error_of_others, None);
}

//! Expected time of a qualification.
use super::*;

fn seconds(each: bool, soak_s: u64, recorders: usize) -> f64 {
    let settings = QualifySettings {
        profile: keepup_plan::builtin("csl").unwrap(),
        quick: false,
        soak: Some(Duration::from_secs(soak_s)),
        write_bytes_max: 400_000_000_000,
        to_null: false,
        each,
        left_out: Vec::new(),
    };
    settings.seconds(recorders)
}

#[test]
fn recorders_are_searched_alone_without_a_soak() {
    let longer = |each| seconds(each, 300, 4) - seconds(each, 60, 4);
    assert!(longer(false) > 240.0, "{}", longer(false));
    assert!((longer(true) - longer(false)).abs() < 1e-6, "{} {}", longer(true), longer(false));
    // The time grows with the number of recorders, by a search for each.
    let (none, two, four) = (seconds(false, 60, 4), seconds(true, 60, 2), seconds(true, 60, 4));
    assert!(((four - none) - 2.0 * (two - none)).abs() < 1e-6 && four - two > 10.0, "{none} {two} {four}");
    assert_eq!(seconds(true, 60, 1), seconds(false, 60, 1));
}

//! Published figures find the tests that measure the same.
use super::{ALL, published_systems};
use keepup_model::papers::paper;

#[test]
fn every_figure_that_is_named_is_published() {
    for same in &ALL {
        let paper = paper(same.paper).unwrap();
        let found = paper.figures.iter().filter(|figure| same.matches(figure));
        assert!(
            found.filter(|figure| figure.in_base().is_some()).count() > 0,
            "{} {}",
            same.place,
            same.what
        );
    }
}

#[test]
fn rates_are_in_bytes_whatever_the_paper_printed() {
    let systems = published_systems("esrf-2007", "disk testdisk").unwrap();
    assert_eq!(systems.len(), 8, "the systems of table 1");
    let first = &systems[0];
    assert!(first.name.contains("4805") && first.year == Some(2007), "{first:?}");
    // 102 MiB/s.
    assert_eq!(first.figures[0].values, [102.0 * 1_048_576.0]);
    let systems = published_systems("cdf-csl", "disk concurrent").unwrap();
    assert_eq!(systems.iter().map(|system| system.figures.len()).collect::<Vec<_>>(), [8, 6]);
}

#[test]
fn what_a_paper_did_not_measure_is_said() {
    let error = published_systems("esrf-2007", "net tcp").unwrap_err().to_string();
    assert!(error.contains("disk testdisk and disk block"), "{error}");
    assert!(published_systems("cern-vme", "register-read").is_err());
    assert!(published_systems("esrf-2006", "disk block").unwrap_err().to_string().contains("esrf-2007"));
}

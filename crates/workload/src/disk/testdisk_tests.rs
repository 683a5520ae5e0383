//! The sequence matches the listing, and all files are removed.

use super::*;
use crate::disk::{OnVolumes, alternate};
use crate::testing::{context, no_loads, stopped};
use crate::{Workload, run};

const SMALL: [Series; 3] = [
    Series { files: 1, bytes: 33 << 20 },
    Series { files: 3, bytes: 1 << 20 },
    Series { files: 5, bytes: 8 << 10 },
];

const SMALL_TEST: Testdisk = Testdisk { sequence: SMALL, direct: false };

#[test]
fn creates_then_overwrites_and_counts_every_byte() {
    let directory = tempfile::tempdir().unwrap();
    let mut testdisk = OnVolumes::new(SMALL_TEST, vec![directory.path().into()], "scratch".into());
    let phases = run(&mut testdisk, &mut context()).unwrap().phases;
    let listed: Vec<_> = phases.iter().map(|p| (p.name.as_str(), p.files, p.bytes)).collect();
    let (large, middle, small) = (33 << 20, 3 << 20, 40 << 10);
    assert_eq!(
        listed,
        [
            ("create 1 x 33 MiB", 1, large),
            ("create 3 x 1 MiB", 3, middle),
            ("create 5 x 8 KiB", 5, small),
            ("overwrite 1 x 33 MiB", 1, large),
            ("overwrite 3 x 1 MiB", 3, middle),
            ("overwrite 5 x 8 KiB", 5, small),
        ]
    );
    assert!(phases.iter().all(|p| p.seconds > 0.0 && p.cpu_seconds > 0.0));
    assert_eq!(testdisk.plan().bytes_written[directory.path()], 2 * (large + middle + small));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "its files are gone");
}

#[test]
fn the_listing_is_the_papers() {
    let bytes: u64 = LISTING.iter().map(|series| u64::from(series.files) * series.bytes).sum();
    assert_eq!(bytes >> 20, 4096 + 4096 + 16);
}

#[test]
fn a_stop_keeps_what_was_finished_and_an_error_too() {
    let directory = tempfile::tempdir().unwrap();
    let volumes = [vec![directory.path().to_owned()]];
    let done = alternate(&SMALL_TEST, &volumes, 3, "scratch", &mut no_loads(), &mut stopped(), &mut |_| {});
    assert!(done.is_interrupted && done.failure.is_none());
    assert_eq!((done.runs.len(), done.runs[0].phases.len()), (1, 0));
    let gone = [vec![directory.path().join("gone")]];
    let done = alternate(&SMALL_TEST, &gone, 3, "scratch", &mut no_loads(), &mut context(), &mut |_| {});
    assert!(done.failure.is_some());
    assert_eq!(done.runs.len(), 1);
}

#[test]
fn volumes_take_turns() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let volumes = [vec![a.path().to_owned()], vec![b.path().to_owned()]];
    let mut listed = Vec::new();
    let tell = &mut |run: &keepup_results::DiskRun| listed.push((run.place(), run.repeat));
    let done = alternate(&SMALL_TEST, &volumes, 2, "scratch", &mut no_loads(), &mut context(), tell);
    let name = |path: &Path| path.display().to_string();
    let (a, b) = (name(a.path()), name(b.path()));
    assert_eq!(listed, [(a.clone(), 1), (b.clone(), 1), (a, 2), (b, 2)]);
    assert!(done.failure.is_none() && !done.is_interrupted);
}

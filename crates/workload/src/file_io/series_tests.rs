//! Order, completeness and overwriting of a file series.
use std::collections::BTreeSet;

use keepup_measure::clock::SystemClock;

use super::*;
use crate::file_io::mode::EngineChoice;

const FILE: u64 = 4 << 20;

/// Writes up to `end_bytes`; false without direct I/O.
fn write(series: &mut Series, end_bytes: u64) -> bool {
    let (clock, mut latency, before) = (SystemClock, Latency::new(), series.done_bytes());
    while series.done_bytes() < end_bytes {
        loop {
            match series.start(end_bytes, &clock) {
                Err(WorkloadError::Sys(keepup_sys::SysError::NotDirect { .. })) => return false,
                started => {
                    if !started.unwrap() {
                        break;
                    }
                }
            }
        }
        series.wait(Duration::from_secs(1), &clock, &mut latency).unwrap();
    }
    series.finish(&clock, &mut latency).unwrap();
    assert_eq!(latency.summary().count, (series.done_bytes() - before) / (256 << 10));
    true
}

/// The stamps of all pages of existing files.
fn stamps(paths: &[PathBuf]) -> BTreeSet<u64> {
    let files = paths.iter().filter_map(|path| std::fs::read(path).ok());
    files
        .flat_map(|bytes| {
            let pages = bytes.chunks(4096).map(|page| u64::from_le_bytes(page[..8].try_into().unwrap()));
            pages.collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn files_follow_each_other_and_are_written_over_in_turn() {
    for engine in [EngineChoice::Auto, EngineChoice::Plain] {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let paths: Vec<PathBuf> = (0..3).map(|n| directory.path().join(format!("{n}"))).collect();
        let mode = Mode { engine, ..Mode::default() };
        let point = Point { bytes: 256 << 10, depth: 4 };
        let mut series = Series::new(&mode, point, FILE, paths.clone()).unwrap();
        if !write(&mut series, 3 * FILE) {
            return;
        }
        let pages = FILE / 4096;
        assert_eq!(stamps(&paths), (1..=3 * pages).collect(), "every page once");
        assert!(!series.overwrites());
        assert_eq!(series.files_begun(), 3);
        let finished = series.take_finished();
        assert_eq!(finished.iter().map(|file| file.first).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(finished.iter().all(|file| file.bytes == FILE && file.seconds > 0.0 && !file.overwrites));
        // One and a half more files: overwrites the first and half of the second.
        assert!(write(&mut series, 4 * FILE + FILE / 2));
        assert!(series.overwrites());
        assert_eq!(stamps(&paths[..1]), (3 * pages + 1..=4 * pages).collect());
        assert_eq!(stamps(&paths[2..]), (2 * pages + 1..=3 * pages).collect(), "the third is as it was");
        let finished = series.take_finished();
        assert_eq!(
            finished.iter().map(|file| (file.first, file.bytes)).collect::<Vec<_>>(),
            [(3, FILE), (4, FILE / 2)]
        );
        assert!(finished.iter().all(|file| file.overwrites));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 3);
    }
}

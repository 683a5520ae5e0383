//! Files of a running recording that another program removes, replaces, cuts or hides.

use std::collections::BTreeMap;
use std::fs;

use super::*;
use crate::journal::{JOURNAL_FILE, JournalRecord};
use crate::manifest::Manifest;

struct Bench {
    _home: tempfile::TempDir,
    directory: PathBuf,
    presence: Presence,
    journal: Journal,
    segments: BTreeMap<u32, OwnedFd>,
}

impl Bench {
    fn new() -> Bench {
        let home = tempfile::tempdir().unwrap();
        let own = crate::fixture::manifest(vec![home.path().into()], 0);
        let manifest = Manifest { name: "run".to_owned(), ..own };
        let directory = manifest.create(home.path()).unwrap();
        let journal = Journal::create(&directory, &manifest).unwrap();
        let create = |index| OwnedFd::from(File::create(directory.join(segment_file_name(index))).unwrap());
        let segments = BTreeMap::from([(0, create(0)), (1, create(1))]);
        let presence = Presence::new(&directory).unwrap();
        Bench { _home: home, directory, presence, journal, segments }
    }

    fn check(&mut self) -> Result<(), String> {
        let segments = self.segments.iter().map(|(&index, file)| (index, file));
        self.presence.check(&mut self.journal, segments).map_err(|error| error.to_string())
    }
}

/// What another program does to a recording, and the file that the error names.
type Tampering = (&'static str, fn(&Path), &'static str);

const TAMPERINGS: [Tampering; 9] = [
    ("rm -rf", |run| fs::remove_dir_all(run).unwrap(), ""),
    ("mv", |run| fs::rename(run, run.with_extension("old")).unwrap(), ""),
    (
        "mv and replace",
        |run| {
            fs::rename(run, run.with_extension("old")).unwrap();
            fs::create_dir(run).unwrap();
        },
        "",
    ),
    ("rm manifest", |run| fs::remove_file(run.join(MANIFEST_FILE)).unwrap(), MANIFEST_FILE),
    ("rm journal", |run| fs::remove_file(run.join(JOURNAL_FILE)).unwrap(), JOURNAL_FILE),
    ("truncate journal", |run| _ = File::create(run.join(JOURNAL_FILE)).unwrap(), JOURNAL_FILE),
    (
        "append to journal",
        |run| {
            let bytes = fs::read(run.join(JOURNAL_FILE)).unwrap();
            fs::write(run.join(JOURNAL_FILE), [&bytes[..], b"\n"].concat()).unwrap();
        },
        JOURNAL_FILE,
    ),
    ("rm segment", |run| fs::remove_file(run.join("segment-000001.mcap")).unwrap(), "segment-000001.mcap"),
    (
        "replace segment by a copy",
        |run| {
            fs::copy(run.join("segment-000000.mcap"), run.join("copy")).unwrap();
            fs::rename(run.join("copy"), run.join("segment-000000.mcap")).unwrap();
        },
        "segment-000000.mcap",
    ),
];

#[test]
fn an_untouched_recording_is_present_also_after_more_lines_and_a_new_manifest() {
    let mut bench = Bench::new();
    assert_eq!(bench.check(), Ok(()));
    bench.journal.append(&JournalRecord::Recover { tool_version: "1".into() }).unwrap();
    let text = fs::read(bench.directory.join(MANIFEST_FILE)).unwrap();
    fs::write(bench.directory.join("new"), text).unwrap();
    fs::rename(bench.directory.join("new"), bench.directory.join(MANIFEST_FILE)).unwrap();
    assert_eq!(bench.check(), Ok(()));
}

#[test]
fn every_way_to_take_a_file_away_is_noticed_and_names_the_file() {
    for (what, tamper, file) in TAMPERINGS {
        let mut bench = Bench::new();
        tamper(&bench.directory);
        let error = bench.check().expect_err(what);
        let path = if file.is_empty() { bench.directory.clone() } else { bench.directory.join(file) };
        assert!(error.contains(&format!("{}:", path.display())), "{what}: {error}");
    }
}

#[test]
fn a_cut_journal_takes_no_more_lines() {
    let mut bench = Bench::new();
    File::create(bench.directory.join(JOURNAL_FILE)).unwrap();
    bench.check().unwrap_err();
    bench.journal.append(&JournalRecord::Recover { tool_version: "1".into() }).unwrap_err();
    assert_eq!(fs::read(bench.directory.join(JOURNAL_FILE)).unwrap(), b"", "no line stands behind a hole");
}

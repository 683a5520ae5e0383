//! The group of the campaign, and what its programs read.

use super::*;
use crate::peers::group::tests::assert_whole;

#[test]
fn claims_are_about_contestants_and_names_are_unique() {
    assert_whole(&groups(Path::new("keepup"), Path::new("."), (1024, 4), 1));
}

#[test]
fn all_files_of_the_recording_are_read_in_their_order() {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in [("segment-1.mcap", 5000), ("segment-0.mcap", 3000), ("journal.jsonl", 7)] {
        fs::write(directory.path().join(name), vec![7; bytes]).unwrap();
    }
    let cat =
        Reading { name: "cat", way: Way::Cat, keepup: PathBuf::new(), directory: directory.path().into() };
    let names: Vec<_> =
        cat.files().unwrap().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["segment-0.mcap", "segment-1.mcap"]);
    let limits = RunLimits { directory: directory.path(), bytes: 0, time: Duration::from_secs(60) };
    let run = cat.read(AGAIN, limits.time).unwrap();
    assert_eq!((run.phase.as_str(), run.bytes), (AGAIN, 8000));
    assert!(Figure::Cached.of(&run).is_some() && Figure::Cpu.of(&run).is_some());
    let fio = Reading { way: Way::Fio(256, 8), ..cat };
    let command = fio.program(&fio.files().unwrap());
    let last = command.get_args().last().unwrap().to_string_lossy().into_owned();
    assert!(last.starts_with("--filename=") && last.contains("segment-0.mcap:"), "{last}");
}

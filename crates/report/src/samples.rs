//! Sample results for tests: every kind and version.

use keepup_results::{Stored, StoredResult};

/// All samples with their paths.
pub(crate) fn samples() -> Vec<(String, Stored)> {
    let folders = ["../results/samples", "tests"];
    let files = folders.iter().flat_map(|folder| {
        let folder = format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
    });
    let json = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let mut all: Vec<(String, Stored)> =
        json.map(|path| (path.display().to_string(), StoredResult::open(&path).unwrap().summary)).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(all.len() > 10, "{}", all.len());
    all
}

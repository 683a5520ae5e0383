//! All phases run, count every byte and file, and remove their files.

use super::*;
use crate::disk::OnVolumes;
use crate::testing::{context, stopped};
use crate::{Workload, run};

const SIZE: u64 = 16 << 20;
const NAMES: [&str; 10] = [
    "write",
    "rewrite",
    "read",
    "seek",
    "create sequential",
    "stat sequential",
    "delete sequential",
    "create random",
    "stat random",
    "delete random",
];

fn test(through: CacheMode) -> BlockTest {
    let (chunk_bytes, seek_bytes) = (64 << 10, 8 << 10);
    BlockTest {
        size_bytes: SIZE,
        chunk_bytes,
        through,
        character_bytes: 0,
        seek_bytes,
        seeks: 101,
        files: 300,
    }
}

#[test]
fn every_phase_counts_its_bytes_and_files() {
    for through in [CacheMode::Cached, CacheMode::Buffered, CacheMode::Direct] {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut workload = OnVolumes::new(test(through), vec![directory.path().into()], "scratch".into());
        let phases = match run(&mut workload, &mut context()) {
            Err(WorkloadError::Sys(keepup_sys::SysError::NotDirect { .. })) => continue,
            outcome => outcome.unwrap().phases,
        };
        let suffix = if through == CacheMode::Cached { ", cached" } else { "" };
        let names: Vec<String> = NAMES.iter().map(|name| format!("{name}{suffix}")).collect();
        assert_eq!(phases.iter().map(|phase| phase.name.clone()).collect::<Vec<_>>(), names);
        let bytes: Vec<u64> = phases.iter().map(|phase| phase.bytes).collect();
        assert_eq!(bytes, [SIZE, SIZE, SIZE, 101 * (8 << 10), 0, 0, 0, 0, 0, 0]);
        for (phase, operations) in phases.iter().zip([256, 256, 256, 101, 300, 300, 300, 300, 300, 300]) {
            assert_eq!(phase.operations, Some(operations), "{phase:?}");
            let latency = phase.latency.unwrap();
            assert!(0 < latency.p50_ns && latency.p50_ns <= latency.max_ns, "{phase:?}");
            assert!(latency.max_ns as f64 / 1e9 <= phase.seconds * 1.002, "{phase:?}");
        }
        assert!(phases[4..].iter().all(|phase| phase.files == 300));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "its files are gone");
    }
}

#[test]
fn written_bytes_match_the_estimate() {
    let directory = tempfile::tempdir().unwrap();
    let workload = OnVolumes::new(test(CacheMode::Cached), vec![directory.path().into()], "scratch".into());
    let plan = workload.plan();
    assert_eq!(plan.space_bytes[directory.path()], SIZE);
    // Written, rewritten, and 11 of 101 seeks.
    assert_eq!(plan.bytes_written[directory.path()], 2 * SIZE + 11 * (8 << 10));
}

#[test]
fn parts_can_be_left_out_and_a_stop_ends_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let names = |test: BlockTest, mut context: Context| {
        let mut workload = OnVolumes::new(test, vec![directory.path().into()], "scratch".into());
        let phases = run(&mut workload, &mut context).unwrap().phases;
        phases.into_iter().map(|phase| phase.name).collect::<Vec<_>>()
    };
    let all = test(CacheMode::Buffered);
    assert_eq!(names(BlockTest { size_bytes: 0, ..all.clone() }, context()), NAMES[4..]);
    assert_eq!(names(BlockTest { seeks: 0, files: 0, ..all.clone() }, context()), NAMES[..3]);
    assert!(names(all, stopped()).is_empty());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn characters_are_written_and_read() {
    let directory = tempfile::tempdir().unwrap();
    let test =
        BlockTest { size_bytes: 0, files: 0, character_bytes: (1 << 20) + 7, ..test(CacheMode::Direct) };
    let mut workload = OnVolumes::new(test, vec![directory.path().into()], "scratch".into());
    assert_eq!(workload.plan().bytes_written[directory.path()], (1 << 20) + 7 + 11 * (8 << 10));
    let phases = run(&mut workload, &mut context()).unwrap().phases;
    let found: Vec<_> = phases.iter().map(|phase| (phase.name.as_str(), phase.bytes)).collect();
    assert_eq!(found, [("write by character", (1 << 20) + 7), ("read by character", (1 << 20) + 7)]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "its file is gone");
}

#[test]
fn a_file_that_fits_into_memory_is_refused_unless_that_is_meant() {
    let memory = SIZE / 2;
    assert_eq!(test(CacheMode::Buffered).objection(memory), None);
    let why = test(CacheMode::Buffered).objection(memory + 1).unwrap().to_text();
    assert!(why.contains("hint: --size") && why.contains("--direct") && why.contains("--cached"), "{why}");
    assert_eq!(test(CacheMode::Direct).objection(memory * 100), None);
    assert_eq!(test(CacheMode::Cached).objection(memory * 100), None);
}

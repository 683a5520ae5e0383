//! Consistency of finding and steps, and removal of all files. A known cache size (a memory cgroup)
//! is tested on the whole program.

use super::*;
use crate::disk::OnVolumes;
use crate::testing::{context, stopped};
use crate::{Workload, run};

const FILE: u64 = 8 << 20;

fn probe(files: u64) -> CacheProbe {
    CacheProbe { file_bytes: FILE, limit: Limit { bytes: files * FILE + 5, by: "the test".into() } }
}

fn finding(found: &DiskMeasured) -> CacheFinding {
    match &found.finding {
        Some(DiskFinding::Cache(finding)) => finding.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_finding_follows_from_its_steps() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let mut test = OnVolumes::new(probe(4), vec![directory.path().into()], "scratch".into());
    let found = run(&mut test, &mut context()).unwrap();
    let cache = finding(&found);
    assert_eq!(cache.limit_bytes, 4 * FILE);
    let references = found.phases.iter().filter(|phase| !phase.name.contains("first")).count();
    assert_eq!((references, found.phases.len()), (2 * REFERENCES, 2 * REFERENCES + cache.steps.len()));
    assert!(found.phases.iter().all(|phase| phase.bytes == FILE && phase.seconds > 0.0));
    if cache.steps.is_empty() {
        // Nothing can be evicted from tmpfs.
        assert!(cache.unanswered.unwrap().contains("take the same time"));
        return;
    }
    let cached = cache.steps.iter().filter(|step| step.is_cached() && !step.is_doubtful());
    assert!(cached.map(|step| step.total_bytes).max().unwrap_or(0) <= cache.cached_bytes, "{cache:#?}");
    assert_eq!(cache.unanswered.is_none(), cache.evicted_bytes.is_some(), "{cache:#?}");
    assert!(cache.evicted_bytes.is_none_or(|evicted| evicted > cache.cached_bytes), "{cache:#?}");
    for step in &cache.steps {
        assert_eq!(step.total_bytes, step.files * FILE);
        assert!(step.resident_share.is_none_or(|share| share == 1.0), "32 MiB fit into memory: {step:#?}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "its files are gone");
}

#[test]
fn it_stays_within_what_it_announced_and_a_stop_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut test = OnVolumes::new(probe(4), vec![directory.path().into()], "scratch".into());
    assert_eq!(test.plan().space_bytes[directory.path()], 4 * FILE);
    let found = run(&mut test, &mut stopped()).unwrap();
    assert!(finding(&found).unanswered.unwrap().contains("interrupted"));
    assert_eq!(found.phases.len(), 0);
}

#[test]
fn shares_follow_from_the_references() {
    let reference = Reference { cached: 0.1, cold: 0.5 };
    let shares = [0.05, 0.1, 0.2, 0.3, 0.5, 2.0].map(|seconds| reference.cached_share(seconds));
    for (share, wanted) in shares.into_iter().zip([1.0, 1.0, 0.75, 0.5, 0.0, 0.0]) {
        assert!((share - wanted).abs() < 1e-9, "{shares:?}");
    }
    assert!(reference.is_distinguishable());
    assert!(!Reference { cached: 0.1, cold: 0.12 }.is_distinguishable());
    assert!(!Reference { cached: 0.0, cold: 0.0 }.is_distinguishable());
}

#[test]
fn the_smallest_free_space_sets_the_limit() {
    let volume = |name: &str, usable_bytes| Checked { path: name.into(), usable_bytes, warnings: Vec::new() };
    let volumes = [volume("a", 700), volume("b", 300)];
    let limit = Limit::of(&volumes, 200);
    assert_eq!((limit.bytes, limit.by.as_str()), (300, "the free space on b"));
    let limit = Limit::of(&volumes, 100);
    assert_eq!((limit.bytes, limit.by.as_str()), (200, "twice the memory"));
}

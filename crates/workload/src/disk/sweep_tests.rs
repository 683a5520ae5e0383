//! All points are measured with whole requests, and all files are removed.

use keepup_sys::engine::EngineChoice;

use super::*;
use crate::disk::OnVolumes;
use crate::run;
use crate::testing::context;

fn sweep(engine: EngineChoice) -> Sweep {
    let points = [(4096, 1), (4096, 16), (1 << 20, 4), (64 << 20, 64), (128 << 20, 1)]
        .map(|(bytes, depth)| Point { bytes, depth });
    let time = Duration::from_millis(30);
    Sweep { points: points.into(), file_bytes: 64 << 20, time, mode: Mode { engine, ..Mode::default() } }
}

#[test]
fn every_point_is_measured_or_says_why_not() {
    for engine in [EngineChoice::Auto, EngineChoice::Plain] {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut sweep = OnVolumes::new(sweep(engine), vec![directory.path().into()], "scratch".into());
        let DiskMeasured { phases, skipped, .. } = match run(&mut sweep, &mut context()) {
            Err(WorkloadError::Sys(keepup_sys::SysError::NotDirect { .. })) => return,
            outcome => outcome.unwrap(),
        };
        assert_eq!((phases.len(), skipped.len()), (6, 4));
        for (phase, verb) in phases.iter().zip(["write"; 3].into_iter().chain(["read"; 3])) {
            assert!(phase.name.starts_with(verb), "{phase:?}");
            let size: u64 = phase.name.split(' ').nth(1).unwrap().parse().unwrap();
            assert_eq!(phase.bytes, phase.operations.unwrap() * size, "{phase:?}");
            let latency = phase.latency.unwrap();
            assert!(0 < latency.p50_ns && latency.p50_ns <= latency.p99_ns, "{phase:?}");
            assert!(latency.p99_ns <= latency.max_ns, "{phase:?}");
            assert!(phase.seconds >= 0.03 && phase.bytes > 0, "{phase:?}");
        }
        assert!(skipped[0].why.contains("memory") && skipped[1].why.contains("file"), "{skipped:#?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "its files are gone");
    }
}

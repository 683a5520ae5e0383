//! Address mapping policies.
use super::*;

const MIB: u64 = 1 << 20;

fn place(policy: Policy, target: u64, requests: &[(u64, u64)]) -> (Vec<Option<(u64, u64)>>, ReplayMap) {
    let mut mapper = Mapper::new(policy, 100 * MIB, target, 4096);
    let placed = requests.iter().map(|(offset, bytes)| mapper.place(*offset, *bytes)).collect();
    (placed, mapper.report())
}

#[test]
fn requests_become_whole_blocks() {
    let (placed, report) =
        place(Policy::Identity, 100 * MIB, &[(0, 4096), (512, 512), (4095, 2), (8192, 8192)]);
    assert_eq!(placed, [Some((0, 4096)), Some((0, 4096)), Some((0, 8192)), Some((8192, 8192))]);
    assert_eq!((report.aligned, report.aligned_bytes), (2, 4096 - 512 + 8192 - 2));
    assert_eq!((report.moved, report.left_out), (0, 0));
}

#[test]
fn what_lies_beyond_is_left_out_by_clip_and_comes_round_by_wrap() {
    let requests = [(0, 4096), (10 * MIB - 4096, 8192), (25 * MIB, 4096)];
    let (placed, report) = place(Policy::Clip, 10 * MIB, &requests);
    assert_eq!(placed, [Some((0, 4096)), None, None]);
    assert_eq!(report.left_out, 2);
    let (placed, report) = place(Policy::Wrap, 10 * MIB, &requests);
    assert_eq!(placed, [Some((0, 4096)), Some((10 * MIB - 8192, 8192)), Some((5 * MIB, 4096))]);
    assert_eq!((report.left_out, report.moved), (0, 2));
}

#[test]
fn scaling_keeps_neighbours_together() {
    let run: Vec<(u64, u64)> = (0..512).map(|n| (64 * MIB + n * 4096, 4096)).collect();
    let (placed, report) = place(Policy::Scale, 10 * MIB, &run);
    // Two extents, each with consecutive requests.
    assert_eq!(placed[0], Some((6 * MIB, 4096)));
    assert_eq!(placed[255], Some((7 * MIB - 4096, 4096)));
    assert_eq!(report.sequential_before, Some(1.0));
    assert!(report.sequential_after.unwrap() > 0.99, "{report:?}");
    assert_eq!(report.moved, 512);
    // A sufficiently large target leaves addresses unchanged.
    assert_eq!(place(Policy::Scale, 100 * MIB, &run).1.moved, 0);
}

#[test]
fn everything_lies_within_the_target() {
    let mut random = fastrand::Rng::with_seed(7);
    for policy in [Policy::Clip, Policy::Wrap, Policy::Scale] {
        let target = 4096 * random.u64(1..5000);
        let mut mapper = Mapper::new(policy, 100 * MIB, target, 4096);
        for _ in 0..20_000 {
            let (offset, bytes) = (random.u64(..100 * MIB), random.u64(1..=2 * MIB));
            if let Some((at, length)) = mapper.place(offset, bytes) {
                assert!(at + length <= target && at % 4096 == 0 && length % 4096 == 0 && length >= bytes);
            }
        }
    }
}

//! The timed file is transferred completely while the others stay active.

use super::*;
use crate::disk::OnVolumes;
use crate::file_io::mode::Access;
use crate::testing::context;
use crate::{Workload, run};

#[test]
fn the_first_file_is_timed_whole_and_the_others_are_beside_it() {
    for is_shared in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let test = Concurrent {
            kinds: vec![IoDirection::Write, IoDirection::Read],
            most: 3,
            point: Point { bytes: 64 << 10, depth: 2 },
            file_bytes: 4 << 20,
            is_shared,
            mode: Mode { access: Access::Buffered, ..Mode::default() },
        };
        let mut test = OnVolumes::new(test, vec![place.path().into()], "scratch".into());
        let space = test.plan().space_bytes[place.path()];
        assert_eq!(space, if is_shared { 3 * 2 } else { 1 + 2 * 2 } * (4 << 20));
        let phases = run(&mut test, &mut context()).unwrap().phases;
        let names: Vec<_> = phases.iter().map(|phase| phase.name.as_str()).collect();
        let expected = ["write", "read"].map(|verb| [1, 2, 3].map(|n| format!("{verb} {n} at once")));
        assert_eq!(names, expected.concat());
        for (phase, files) in phases.iter().zip([1, 2, 3, 1, 2, 3]) {
            assert_eq!((phase.parts.len(), phase.files), (files, files as u64));
            assert_eq!(phase.parts[0].bytes, 4 << 20);
            let normalised = phase.normalised_bytes_per_second().unwrap();
            let first = phase.parts[0].bytes as f64 / phase.parts[0].seconds;
            assert!((normalised / first - files as f64).abs() < 1e-9);
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "its files are gone");
    }
}

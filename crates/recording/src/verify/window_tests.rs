//! Every want is filled at every position, also across the boundaries of what was read.
use keepup_sys::read_ahead::PIECE_BYTES;
use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn wants_are_filled_across_boundaries(
        bytes in PIECE_BYTES - 100..3 * PIECE_BYTES,
        steps in prop::collection::vec((1usize..=FILL_BYTES_MAX, 1usize..200_000), 1..30),
    ) {
        let whole: Vec<u8> = (0..bytes).map(|at| (at / 4096 * 31 + at % 251) as u8).collect();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, &whole).unwrap();
        let mut window = Window::default();
        window.begin(keepup_sys::regular::open_direct(&path).unwrap(), bytes as u64).unwrap();
        let (mut at, mut steps) = (0, steps.into_iter().cycle());
        while at < bytes {
            let (want, step) = steps.next().unwrap();
            let found = window.fill(want).unwrap();
            prop_assert!(found.len() >= want.min(bytes - at));
            prop_assert!(found == &whole[at..at + found.len()]);
            let step = step.min(found.len());
            window.consume(step);
            at += step;
            prop_assert_eq!(window.offset(), at as u64);
        }
        prop_assert!(window.fill(1).unwrap().is_empty());
    }
}

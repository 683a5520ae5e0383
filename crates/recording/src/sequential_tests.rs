//! Whatever the offsets, the bytes are those of the file.
use keepup_sys::regular::open_direct;
use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_offsets_give_the_bytes_of_the_file(
        bytes in 1usize..6 << 20,
        steps in prop::collection::vec((-40_000i64..3_000_000, 1usize..400_000), 1..20),
    ) {
        let whole: Vec<u8> = (0..bytes).map(|at| (at / 4096 * 31 + at % 251) as u8).collect();
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, &whole).unwrap();
        let mut ahead = Sequential::new(open_direct(&path).unwrap(), bytes as u64).unwrap();
        let mut at = 0_i64;
        for (step, length) in steps {
            let mut buffer = vec![0; length];
            let expected = &whole[(at as usize).min(bytes)..(at as usize + length).min(bytes)];
            prop_assert_eq!(ahead.read_at(&mut buffer, at as u64).unwrap(), expected.len());
            prop_assert!(buffer[..expected.len()] == *expected);
            // Mostly on from the end of the part, or back a little.
            at = (at + length as i64 + if step < 400_000 { step } else { 0 }).max(0);
        }
    }
}

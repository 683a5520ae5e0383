//! What is handed out is the file, from any offset to any end, also where it is shorter or grows.
use proptest::prelude::*;

use super::*;
use crate::regular;

/// Bytes that differ from page to page.
fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / PAGE_BYTES * 31 + at % 251) as u8).collect()
}

/// All bytes that come, and the error behind them.
fn rest(reader: &mut ReadAhead) -> (Vec<u8>, Option<io::Error>) {
    let mut all = Vec::new();
    loop {
        match reader.advance() {
            Ok(true) => all.extend_from_slice(reader.bytes()),
            Ok(false) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

/// A file below the target directory, whose file system has direct I/O more often than `/tmp`.
fn file(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

#[test]
fn files_are_read_from_any_offset_to_any_end() {
    let mib = PIECE_BYTES;
    let whole = contents(19 * mib + 1234);
    let (_directory, path) = file(&whole);
    let mut reader = ReadAhead::new(|| 0).unwrap();
    let ends = [0, 1, PAGE_BYTES, mib, mib + 1, 3 * mib - 7, whole.len()];
    for end in ends {
        for from in [0, 1, 5000, mib, 2 * mib + 3] {
            reader.begin(regular::open_direct(&path).unwrap(), from as u64, end as u64).unwrap();
            let (found, error) = rest(&mut reader);
            assert!(found == whole[from.min(end)..end] && error.is_none(), "{from} to {end}: {error:?}");
        }
    }
    // Not read to the end.
    reader.begin(regular::open_direct(&path).unwrap(), 0, whole.len() as u64).unwrap();
    assert!(reader.advance().unwrap());
    reader.consume(5);
    assert_eq!(reader.bytes(), &whole[5..mib]);
    reader.consume(usize::MAX / 2);
    assert!(reader.bytes().is_empty());
    reader.stop().unwrap();
    assert!(!reader.advance().unwrap());
}

#[test]
fn a_file_that_is_shorter_than_expected_ends_early() {
    let whole = contents(2 * PIECE_BYTES + 5000);
    let (_directory, path) = file(&whole);
    let mut reader = ReadAhead::new(|| 0).unwrap();
    for end in [whole.len() + 1, 3 * PIECE_BYTES, 40 * PIECE_BYTES] {
        reader.begin(regular::open_direct(&path).unwrap(), 0, end as u64).unwrap();
        let (found, error) = rest(&mut reader);
        assert!(found == whole && error.is_none(), "{} of {end}: {error:?}", found.len());
    }
}

#[test]
fn a_file_that_grows_is_read_on() {
    let whole = contents(3 * PIECE_BYTES);
    let (_directory, path) = file(&whole);
    let mut reader = ReadAhead::new(|| 0).unwrap();
    reader.begin(regular::open_direct(&path).unwrap(), 0, 0).unwrap();
    let mut found = Vec::new();
    for end in [0, 100, 8192, 8192, PIECE_BYTES + 1, whole.len()] {
        reader.extend(end as u64).unwrap();
        found.extend(rest(&mut reader).0);
        assert!(found == whole[..end], "{} of {end}", found.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_steps_give_the_file(
        bytes in 1usize..3 * PIECE_BYTES,
        from in 0usize..2 * PIECE_BYTES,
        steps in prop::collection::vec(1usize..300_000, 1..40),
    ) {
        let whole = contents(bytes);
        let (_directory, path) = file(&whole);
        let mut reader = ReadAhead::new(|| 0).unwrap();
        reader.begin(regular::open_direct(&path).unwrap(), from as u64, bytes as u64).unwrap();
        let (mut at, mut steps) = (from.min(bytes), steps.into_iter().cycle());
        while reader.advance().unwrap() {
            while !reader.bytes().is_empty() {
                let step = steps.next().unwrap().min(reader.bytes().len());
                prop_assert!(reader.bytes()[..step] == whole[at..at + step]);
                reader.consume(step);
                at += step;
            }
        }
        prop_assert_eq!(at, bytes);
    }
}

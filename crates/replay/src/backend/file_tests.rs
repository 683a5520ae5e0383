//! A write with a flush before it is one request, and one with forced unit access goes to the durable file.
use std::os::unix::fs::FileExt;
use std::path::Path;

use keepup_sys::file::{Access, Durability, open_file};

use super::*;

const UNIT: usize = 4096;

fn record(flags: Flags, offset: u64) -> Record {
    let mut record = Record::new(0, Operation::Write, 0, offset, UNIT as u32);
    record.flags = flags;
    record
}

/// All requests that end within a few waits.
fn ended(target: &mut FileTarget, count: usize) -> Vec<usize> {
    let mut done = Vec::new();
    for _ in 0..100 {
        target.wait(Duration::from_millis(100), &mut done).unwrap();
        if done.len() >= count {
            break;
        }
    }
    done.into_iter().map(|Done { token, result }| result.map(|()| token).unwrap()).collect()
}

#[test]
fn flushes_before_writes_and_forced_unit_access_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("target");
    let open = |durability| Arc::new(open_file(&path, Access::Buffered, durability).unwrap());
    for choice in [EngineChoice::Auto, EngineChoice::Plain] {
        let file = open(Durability::Flushed);
        // A file of its own shows what went to it.
        let other = directory.path().join("durable");
        let durable = Some(Arc::new(open_file(&other, Access::Buffered, Durability::EachWrite).unwrap()));
        let file = TargetFile { begin: 0, file, path: path.clone(), durable };
        let mut target = FileTarget::open(vec![file], choice, (UNIT, UNIT), 4).unwrap();
        let both = Flags::PREFLUSH.with(Flags::FUA);
        for (token, flags) in [Flags::NONE, Flags::PREFLUSH, Flags::FUA, both].into_iter().enumerate() {
            let offset = (token * UNIT) as u64;
            assert!(target.start(&record(flags, offset), 0, token).unwrap());
        }
        assert_eq!(target.held.len(), 2, "two wait for their flush");
        let mut tokens = ended(&mut target, 4);
        tokens.sort_unstable();
        assert_eq!(tokens, [0, 1, 2, 3], "each request ends once");
        assert!(target.held.is_empty());
        let block_at = |path: &Path, number: usize| {
            let mut head = [0; 8];
            let file = std::fs::File::open(path).unwrap();
            file.read_at(&mut head, (number * UNIT) as u64).unwrap();
            u64::from_le_bytes(head)
        };
        assert_eq!((block_at(&path, 1), block_at(&other, 2), block_at(&other, 3)), (1, 2, 3), "{choice:?}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 2 * UNIT as u64, "the others went elsewhere");
        std::fs::remove_file(&other).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_discard_frees_its_range_and_is_filled_again() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = directory.path().join("target");
    let extent = crate::map::EXTENT_BYTES;
    for choice in [EngineChoice::Auto, EngineChoice::Plain, EngineChoice::Mapped] {
        let file = Arc::new(open_file(&path, Access::Buffered, Durability::Flushed).unwrap());
        set_length(&path, 2 * extent);
        let opened = TargetFile { begin: 0, file: Arc::clone(&file), path: path.clone(), durable: None };
        let mut target = FileTarget::open(vec![opened], choice, (extent as usize, UNIT), 4).unwrap();
        target.fill([(0, 2 * extent)].into_iter(), &|| false).unwrap();
        let is_zero = || std::fs::read(&path).unwrap()[..extent as usize].iter().all(|byte| *byte == 0);
        assert!(!is_zero());
        target.log_writes();
        let discard = Record::new(0, Operation::Discard, 0, 0, extent as u32);
        assert!(target.start(&discard, 0, 3).unwrap());
        assert_eq!(ended(&mut target, 1), [3]);
        assert!(is_zero(), "{choice:?}");
        assert_eq!(target.check().unwrap().unwrap().blocks, 0, "nothing was written since");
        target.refill(&[(0, extent)]).unwrap();
        assert!(!is_zero(), "{choice:?}");
        let checked = target.check().unwrap().unwrap();
        assert_eq!((checked.blocks, checked.wrong), (extent / UNIT as u64, 0), "{choice:?}");
        std::fs::remove_file(&path).unwrap();
    }
}

fn set_length(path: &Path, bytes: u64) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

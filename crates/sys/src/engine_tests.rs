//! Every engine writes correct data to the correct place, and returns every block.
use std::os::fd::OwnedFd;

use super::*;
use crate::pool::Pool;

fn run(engine: &mut dyn BlockEngine, pool: &mut Pool, file: &Arc<OwnedFd>) {
    let slot = engine.add_file(Arc::clone(file)).unwrap();
    let mut ended = Vec::new();
    for turn in 0..32u64 {
        let mut block = pool.take(64 << 10).unwrap();
        block.fill(turn as u8 + 1);
        engine.write(slot, turn * 8192, block, 8192, turn);
    }
    while engine.in_flight() > 0 {
        engine.wait(Duration::from_secs(5), &mut ended).unwrap();
    }
    engine.sync(slot, 99);
    while engine.in_flight() > 0 {
        engine.wait(Duration::from_secs(5), &mut ended).unwrap();
    }
    let mut tokens: Vec<u64> = ended.iter().map(|c| c.token).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, (0..32).chain([99]).collect::<Vec<_>>());
    for completion in ended {
        completion.result.unwrap();
        if let Some(block) = completion.block {
            pool.give_back(block);
        }
    }
    assert_eq!(pool.bytes_free(), pool.bytes());
}

#[test]
fn engines_agree_on_what_they_wrote() {
    let expected: Vec<u8> = (0..32u8).flat_map(|turn| vec![turn + 1; 8192]).collect();
    for choice in [EngineChoice::Auto, EngineChoice::Plain, EngineChoice::Mapped] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let made = crate::file::create_preallocated(&path, 32 * 8192).unwrap();
        let mut pool = Pool::new(4 << 20).unwrap();
        let waker = Waker::new().unwrap();
        let (mut engine, _) = open(choice, &pool.memory(), &waker, 8).unwrap();
        run(engine.as_mut(), &mut pool, &Arc::new(made.file));
        assert!(std::fs::read(&path).unwrap() == expected, "{}", engine.name());
    }
}

#[test]
fn a_signal_ends_the_wait_early() {
    let pool = Pool::new(2 << 20).unwrap();
    for choice in [EngineChoice::Auto, EngineChoice::Plain] {
        let waker = Waker::new().unwrap();
        let (mut engine, _) = open(choice, &pool.memory(), &waker, 4).unwrap();
        for _ in 0..3 {
            let begin = std::time::Instant::now();
            let other = waker.clone();
            let thread = std::thread::spawn(move || other.wake());
            engine.wait(Duration::from_secs(60), &mut Vec::new()).unwrap();
            assert!(begin.elapsed() < Duration::from_secs(30));
            thread.join().unwrap();
            engine.wait(Duration::ZERO, &mut Vec::new()).unwrap();
        }
    }
}

#[test]
fn a_failed_write_returns_its_block_and_the_error() {
    let mut pool = Pool::new(2 << 20).unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for choice in [EngineChoice::Auto, EngineChoice::Plain] {
        let waker = Waker::new().unwrap();
        let (mut engine, _) = open(choice, &pool.memory(), &waker, 4).unwrap();
        let slot = engine.add_file(Arc::new(full.try_clone().unwrap().into())).unwrap();
        engine.write(slot, 0, pool.take(4096).unwrap(), 4096, 5);
        let mut ended = Vec::new();
        while ended.is_empty() {
            engine.wait(Duration::from_secs(5), &mut ended).unwrap();
        }
        let completion = ended.pop().unwrap();
        assert_eq!(completion.result.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
        pool.give_back(completion.block.unwrap());
    }
}

#[test]
fn adjacent_and_separate_blocks_are_written_to_their_offsets() {
    // Runs of adjacent blocks with holes between them, out of order, more than one request can
    // take.
    const BLOCK: usize = 256 << 10;
    let places: Vec<u64> = (8..16).chain(0..3).chain([20, 18]).chain(4..7).collect();
    for choice in [EngineChoice::Auto, EngineChoice::Plain, EngineChoice::Mapped] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let made = crate::file::create_preallocated(&path, 24 * BLOCK as u64).unwrap();
        let mut pool = Pool::new(16 << 20).unwrap();
        let waker = Waker::new().unwrap();
        let (mut engine, _) = open(choice, &pool.memory(), &waker, 8).unwrap();
        let slot = engine.add_file(Arc::new(made.file)).unwrap();
        for &place in &places {
            let mut block = pool.take(BLOCK).unwrap();
            block.fill(place as u8 + 1);
            engine.write(slot, place * BLOCK as u64, block, BLOCK, place);
        }
        let mut ended = Vec::new();
        while engine.in_flight() > 0 {
            engine.wait(Duration::from_secs(5), &mut ended).unwrap();
        }
        assert_eq!(ended.len(), places.len());
        assert!(ended.iter().all(|completion| completion.result.is_ok()));
        let written = std::fs::read(&path).unwrap();
        for place in 0..24 {
            let expected = if places.contains(&place) { place as u8 + 1 } else { 0 };
            let at = place as usize * BLOCK;
            assert!(
                written[at..at + BLOCK].iter().all(|&byte| byte == expected),
                "{place} {}",
                engine.name()
            );
        }
    }
}

#[test]
fn a_request_of_several_blocks_that_fails_returns_each_of_them() {
    let mut pool = Pool::new(2 << 20).unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let waker = Waker::new().unwrap();
    let (mut engine, _) = open(EngineChoice::Auto, &pool.memory(), &waker, 4).unwrap();
    let slot = engine.add_file(Arc::new(full.into())).unwrap();
    for token in 0..5 {
        engine.write(slot, token * 4096, pool.take(4096).unwrap(), 4096, token);
    }
    let mut ended = Vec::new();
    while engine.in_flight() > 0 {
        engine.wait(Duration::from_secs(5), &mut ended).unwrap();
    }
    assert_eq!(ended.len(), 5);
    for completion in ended {
        assert_eq!(completion.result.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
        pool.give_back(completion.block.unwrap());
    }
    assert_eq!(pool.bytes_free(), pool.bytes());
}

#[test]
fn engines_read_the_file_and_report_its_end() {
    let content: Vec<u8> = (0..8u8).flat_map(|page| vec![page; 4096]).collect();
    for choice in [EngineChoice::Auto, EngineChoice::Plain, EngineChoice::Mapped] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, &content).unwrap();
        let mut pool = Pool::new(4 << 20).unwrap();
        let waker = Waker::new().unwrap();
        let (mut engine, _) = open(choice, &pool.memory(), &waker, 8).unwrap();
        engine.set_gather(false);
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let slot = engine.add_file(Arc::new(file.into())).unwrap();
        for (token, (page, bytes)) in [(5, 4096), (0, 8192), (7, 8192)].into_iter().enumerate() {
            let block = pool.take(16 << 10).unwrap();
            engine.read(slot, page * 4096, block, bytes, token as u64);
        }
        let mut ended = Vec::new();
        while engine.in_flight() > 0 {
            engine.wait(Duration::from_secs(5), &mut ended).unwrap();
        }
        ended.sort_by_key(|completion| completion.token);
        let read = |at: usize, bytes: usize| &ended[at].block.as_ref().unwrap()[..bytes];
        assert_eq!(read(0, 4096), &content[5 * 4096..6 * 4096], "{}", engine.name());
        assert_eq!(read(1, 8192), &content[..8192], "{}", engine.name());
        let cut = ended[2].result.as_ref().unwrap_err();
        assert_eq!(cut.kind(), std::io::ErrorKind::UnexpectedEof, "{}", engine.name());
        ended.into_iter().filter_map(|completion| completion.block).for_each(|block| pool.give_back(block));
    }
}

#[test]
fn more_requests_than_one_submission_all_complete_once() {
    const PAGES: u64 = 45;
    for choice in [EngineChoice::Auto, EngineChoice::Plain] {
        let directory = tempfile::tempdir().unwrap();
        let mut pool = Pool::new(4 << 20).unwrap();
        let (mut engine, _) = open(choice, &pool.memory(), &Waker::new().unwrap(), PAGES as usize).unwrap();
        engine.set_gather(false);
        let path = directory.path().join("file");
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        let slot = engine.add_file(Arc::new(file.into())).unwrap();
        for is_write in [true, false] {
            for page in 0..PAGES {
                let mut block = pool.take(4096).unwrap();
                block[..4096].fill(if is_write { page as u8 } else { 0xff });
                match is_write {
                    true => engine.write(slot, page * 4096, block, 4096, page),
                    false => engine.read(slot, page * 4096, block, 4096, page),
                }
            }
            assert_eq!(engine.in_flight(), PAGES as usize);
            let mut ended = Vec::new();
            while engine.in_flight() > 0 {
                engine.wait(Duration::from_secs(5), &mut ended).unwrap();
            }
            let mut tokens: Vec<u64> = ended.iter().map(|completion| completion.token).collect();
            tokens.sort_unstable();
            assert_eq!(tokens, (0..PAGES).collect::<Vec<_>>(), "{}", engine.name());
            for completion in ended {
                completion.result.unwrap();
                let block = completion.block.unwrap();
                assert!(block[..4096].iter().all(|byte| *byte == completion.token as u8));
                pool.give_back(block);
            }
        }
    }
}

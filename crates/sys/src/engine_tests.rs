//! Every engine writes what it was given, where it was told, and gives every block back.
use std::os::fd::OwnedFd;

use super::*;
use crate::pool::Pool;

fn run(engine: &mut dyn WriteEngine, pool: &mut Pool, file: &Arc<OwnedFd>) {
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
    for choice in [EngineChoice::Auto, EngineChoice::Plain] {
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
fn blocks_land_where_told_whether_or_not_they_follow_each_other() {
    // Runs of blocks that touch, with holes between the runs, out of order, more than one request takes.
    const BLOCK: usize = 256 << 10;
    let places: Vec<u64> = (8..16).chain(0..3).chain([20, 18]).chain(4..7).collect();
    for choice in [EngineChoice::Auto, EngineChoice::Plain] {
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

//! Verification: no faults in intact recordings, every fault in damaged ones.

use std::fs;
use std::path::PathBuf;

use keepup_stream::ledger::Count;

use super::*;
use crate::export::one_file;
use crate::hdf5::superblock;
use crate::journal::{JOURNAL_FILE, JournalRecord, StreamEnd};
use crate::layout::{FLAG_GAP_BEFORE, SECTOR, SUPERBLOCK_SPACE, segment_file_name};
use crate::manifest::{MANIFEST_FILE, Manifest, Placement};
use crate::master::MASTER_FILE;
use crate::retention::DRAINED_FILE;
use crate::seal::SEGMENT_EVENTS_MAX;
use crate::testing::{TestRecording, payloads};

fn check(dirs: &[PathBuf], threads: usize) -> VerifyReport {
    let recording = Recording::open(dirs).unwrap();
    let last = AtomicU64::new(0);
    let report = verify(&recording, VerifyOptions { threads }, &|progress| {
        last.fetch_max(progress.done_bytes, Ordering::Relaxed);
    });
    assert_eq!(last.into_inner(), report.bytes);
    report
}

/// Three streams on two volumes and five segments, with a gap listed in the journal.
fn sample(placement: Placement) -> TestRecording {
    let mut test = TestRecording::new(2, placement, &[0, 1, 2]);
    let mut next = [0; 3];
    for round in 0..30usize {
        let id = round % 3;
        let volume = if placement == Placement::Free { round / 2 % 2 } else { id % 2 };
        let is_gap = round == 16;
        if is_gap {
            test.gap(0, id as u32, next[id], 7);
            next[id] += 7;
        }
        let flags = if is_gap { FLAG_GAP_BEFORE } else { 0 };
        let events = payloads(round as u64, 1 + round * 5 % 40, 100 + round * 37);
        next[id] = test.block(volume, id as u32, next[id], flags, &events);
        if round % 10 == 9 {
            test.volumes[round / 10 % 2].rotate();
        }
    }
    test
}

#[test]
fn an_intact_recording_has_no_faults_for_any_number_of_threads() {
    for placement in [Placement::Pinned, Placement::Free] {
        let mut test = sample(placement);
        test.end();
        let report = check(&test.dirs(), 1);
        assert_eq!(report.faults, []);
        assert_eq!((report.ending.clone(), report.segments, report.blocks), (Ending::Clean, 5, 30));
        assert_eq!(report.lost_events(), 7);
        let counts: Vec<u64> = report.streams.values().map(|stream| stream.recorded.events).collect();
        let expected =
            |id: usize| (0..30).filter(move |round| round % 3 == id).map(|round| 1 + round as u64 * 5 % 40);
        assert_eq!(counts, [0, 1, 2].map(|id| expected(id).sum::<u64>()));
        assert_eq!(report.streams[&1].name, "module 1");
        assert_eq!(check(&test.dirs(), 4), report);
    }
}

#[test]
fn every_byte_of_a_segment_counts() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0, 1]);
    test.block(0, 0, 0, 0, &payloads(1, 3, 2000));
    test.block(0, 1, 0, 0, &payloads(2, 1, 300));
    test.block(0, 0, 3, 0, &payloads(3, 2, 2000));
    test.end();
    let path = test.volumes[0].segment_path();
    let good = fs::read(&path).unwrap();
    let recording = Recording::open(&test.dirs()).unwrap();
    let options = VerifyOptions { threads: 1 };
    assert!(verify(&recording, options, &|_| {}).is_intact());
    // A prime step reaches every class of bytes: preamble, headers, channels, payloads, pads,
    // trailer.
    for at in (0..good.len()).step_by(7).chain(good.len() - 50..good.len()) {
        let mut damaged = good.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).unwrap();
        let report = verify(&recording, options, &|_| {});
        assert!(!report.is_intact(), "byte {at} may be changed");
        let first = &report.faults[0];
        assert!(first.file == path && first.offset <= at as u64, "byte {at}: {first:?}");
    }
}

#[test]
fn faults_name_their_location_stream_and_event() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    let mut blocks = vec![];
    for number in 0..4 {
        blocks.push(test.volumes[0].builder.bytes().len());
        test.block(0, 0, number * 10, 0, &payloads(number, 10, 900));
    }
    test.end();
    let path = test.volumes[0].segment_path();
    let good = fs::read(&path).unwrap();
    let damaged = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, &bytes).unwrap();
        check(&test.dirs(), 1)
    };
    // A payload: one fault, its block's events count as damaged, none as lost.
    let report = damaged(blocks[1] + SECTOR + 700);
    assert_eq!((report.fault_count, report.streams[&0].damaged_events), (1, 10));
    let fault = &report.faults[0];
    assert_eq!((fault.offset, fault.stream, fault.event), (blocks[1] as u64, Some(0), Some(10)));
    assert!(fault.what.contains("events 10 to 19"), "{}", fault.what);
    // A length in a message header: detected later, and a fault of its block.
    let report = damaged(blocks[2] + SECTOR - 30);
    let first = (report.faults[0].offset, report.faults[0].event);
    assert_eq!((report.fault_count, first), (1, (blocks[2] as u64, Some(20))));
    assert!(report.faults[0].what.contains("it shows at offset"), "{}", report.faults[0].what);
    // A header: the scan finds the next block, and reports the missing events and counts.
    let report = damaged(blocks[1] + 60);
    assert_eq!(report.blocks, 3);
    let events: Vec<_> = report.faults.iter().map(|fault| (fault.offset, fault.event)).collect();
    assert_eq!(events, [(blocks[1] as u64, None), (blocks[2] as u64, Some(10)), (0, None)]);
    assert!(report.faults[1].what.contains("10 events between 10 and 19 are missing"));
}

#[test]
fn a_file_that_is_cut_grown_swapped_or_missing_is_a_fault() {
    let mut test = sample(Placement::Pinned);
    test.end();
    let path = test.volumes[0].dir.join(segment_file_name(0));
    let good = fs::read(&path).unwrap();
    let other = fs::read(test.volumes[0].dir.join(segment_file_name(1))).unwrap();
    let longer = [&good[..], b"x"].concat();
    for bytes in [&good[..good.len() - 1], &good[..20_000], &good[..100], &[], &longer, &other] {
        fs::write(&path, bytes).unwrap();
        let report = check(&test.dirs(), 1);
        assert!(report.faults.iter().any(|fault| fault.file == path), "{} bytes", bytes.len());
    }
    fs::remove_file(&path).unwrap();
    assert!(check(&test.dirs(), 1).faults.iter().any(|fault| fault.file == path));
    std::os::unix::fs::symlink(test.volumes[0].dir.join(segment_file_name(1)), &path).unwrap();
    assert!(check(&test.dirs(), 1).faults.iter().any(|fault| fault.what.contains("cannot open")));
    fs::remove_file(&path).unwrap();
    fs::write(&path, &good).unwrap();
    let stray = test.volumes[0].dir.join(segment_file_name(99));
    fs::write(&stray, b"").unwrap();
    let report = check(&test.dirs(), 1);
    assert_eq!((report.fault_count, &report.faults[0].file), (1, &stray));
}

#[test]
fn a_gap_without_a_journal_line_is_a_fault() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    test.block(0, 0, 0, 0, &payloads(1, 5, 100));
    test.block(0, 0, 8, FLAG_GAP_BEFORE, &payloads(2, 5, 100));
    test.gap(0, 0, 5, 2);
    test.end();
    let report = check(&test.dirs(), 1);
    assert_eq!((report.fault_count, report.faults[0].event, report.lost_events()), (1, Some(7), 2));
}

#[test]
fn a_completely_lost_stream_is_reported() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0, 1]);
    test.block(0, 0, 0, 0, &payloads(1, 5, 100));
    test.gap(0, 1, 0, 9);
    test.end();
    let report = check(&test.dirs(), 1);
    assert_eq!(report.faults, []);
    assert_eq!((report.streams[&1].lost_events, report.streams[&1].recorded), (9, Count::default()));
}

#[test]
fn counts_that_differ_from_the_end_record_are_a_fault() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    test.block(0, 0, 0, 0, &payloads(1, 5, 100));
    test.volumes[0].end_segment();
    let count = Count { events: 6, bytes: 1 };
    let streams = vec![StreamEnd { id: 0, received: count, durable: count }];
    let end = JournalRecord::End { clean: true, reason: String::new(), streams };
    test.volumes[0].journal().append(&end).unwrap();
    let report = check(&test.dirs(), 1);
    assert_eq!(report.fault_count, 1);
    assert!(report.faults[0].what.contains("6 events, 1 bytes; the segments have 5 events"));
}

#[test]
fn an_interrupted_recording_is_read_to_its_watermark() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    test.block(0, 0, 0, 0, &payloads(1, 5, 3000));
    test.volumes[0].rotate();
    test.block(0, 0, 5, 0, &payloads(2, 5, 3000));
    test.volumes[0].watermark();
    let durable = test.volumes[0].builder.bytes().len() as u64;
    // Partly written above the watermark: neither counted nor a fault.
    test.block(0, 0, 10, 0, &payloads(3, 5, 3000));
    let path = test.volumes[0].segment_path();
    let mut bytes = test.volumes[0].builder.bytes().to_vec();
    bytes[durable as usize + 5000..].fill(0);
    fs::write(&path, &bytes).unwrap();
    let report = check(&test.dirs(), 2);
    assert_eq!(report.faults, []);
    let stops = vec![Stop { file: path.clone(), durable_bytes: durable }];
    assert_eq!((report.ending, report.blocks), (Ending::NotEnded { stops }, 2));
    assert_eq!(report.streams[&0].recorded.events, 10);
    // Below the watermark, damage and loss are faults.
    bytes[durable as usize - 5000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(check(&test.dirs(), 1).fault_count, 1);
    fs::write(&path, &bytes[..durable as usize - 4096]).unwrap();
    assert!(!check(&test.dirs(), 1).is_intact());
}

#[test]
fn a_crash_while_a_segment_is_sealed_leaves_its_superblock_and_no_fault() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    test.block(0, 0, 0, 0, &payloads(1, 5, 3000));
    test.volumes[0].watermark();
    let path = test.volumes[0].segment_path();
    let mut bytes = test.volumes[0].builder.bytes().to_vec();
    bytes[SUPERBLOCK_SPACE].copy_from_slice(&superblock(SUPERBLOCK_SPACE.start as u64, 77, 1 << 20));
    fs::write(&path, &bytes).unwrap();
    let report = check(&test.dirs(), 1);
    assert_eq!((report.faults, report.blocks), (vec![], 1));
    // Every bit of it is checked.
    for at in SUPERBLOCK_SPACE {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let report = check(&test.dirs(), 1);
        assert_eq!((report.fault_count, report.faults[0].offset), (1, 0), "byte {at}");
        assert!(report.faults[0].what.contains("neither zero nor a superblock"), "{report:?}");
    }
}

#[test]
fn a_crash_between_the_volumes_watermarks_is_not_a_fault() {
    let mut test = TestRecording::new(2, Placement::Free, &[0]);
    test.block(0, 0, 0, 0, &payloads(1, 5, 300));
    test.volumes[0].watermark();
    // The second block went to volume 0 above its watermark, the third is durable on volume 1.
    test.skip_block(0);
    test.block(1, 0, 10, 0, &payloads(3, 5, 300));
    test.volumes[1].watermark();
    let report = check(&test.dirs(), 1);
    assert_eq!(report.faults, []);
    assert_eq!(report.streams[&0].unsettled_events, 5);
}

#[test]
fn the_list_of_faults_is_bounded_and_the_count_is_not() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
    for number in 0..1500 {
        test.block(0, 0, number, 0, &payloads(number, 1, 10));
    }
    test.end();
    let path = test.volumes[0].segment_path();
    let mut bytes = fs::read(&path).unwrap();
    for block in 1..=1500 {
        bytes[block * 2 * SECTOR - 5] ^= 1;
    }
    fs::write(&path, &bytes).unwrap();
    let report = check(&test.dirs(), 1);
    assert_eq!((report.faults.len(), report.fault_count), (FAULTS_MAX, 1500));
}

#[test]
fn too_many_events_in_a_segment_take_no_memory_and_are_reported() {
    let mut test = TestRecording::new(1, Placement::Pinned, &[1]);
    let many = vec![(1, Vec::new()); crate::seal::SEGMENT_EVENTS_MAX];
    let next = test.block(0, 1, 0, 0, &many);
    let offset = test.volumes[0].builder.bytes().len() as u64;
    test.block(0, 1, next, 0, &many[..1]);
    test.end();
    let report = check(&test.dirs(), 1);
    let found_faults: Vec<_> = report.faults.iter().map(|fault| (fault.offset, fault.event)).collect();
    assert_eq!(found_faults, [(offset, Some(next))], "{:?}", report.faults);
    assert_eq!(
        (report.blocks, report.streams[&1].recorded.events),
        (2, next + 1),
        "the whole segment was read"
    );
    // Exports read the blocks in the same way, and report the same fault.
    let out = test.root.path().join("all.mcap");
    let error = one_file(&Recording::open(&test.dirs()).unwrap(), None, &out, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("more events than one may have"), "{error}");
}

/// Measures the speed that `docs/recording-format.md` states; needs 2 GiB below the temporary
/// directory: `cargo test --release -p keepup-recording verify_speed -- --ignored --nocapture`
#[test]
#[ignore = "a measurement, not a test"]
fn verify_speed() {
    for (events, bytes) in [(1, 1 << 20), (256, 4 << 10), (1024, 1 << 10), (8192, 64)] {
        let mut test = TestRecording::new(1, Placement::Pinned, &[0]);
        let payloads: Vec<(u64, Vec<u8>)> = (0..events).map(|n| (n, vec![n as u8; bytes])).collect();
        let mut next = 0;
        for _ in 0..4 {
            let last = next + SEGMENT_EVENTS_MAX as u64 - events;
            while test.volumes[0].builder.bytes().len() < 512 << 20 && next < last {
                next = test.block(0, 0, next, 0, &payloads);
            }
            test.volumes[0].rotate();
        }
        test.end();
        let recording = Recording::open(&test.dirs()).unwrap();
        for threads in [1, 1, 1, 1, 1, 2] {
            let (start, before) = (std::time::Instant::now(), user_ticks());
            let report = verify(&recording, VerifyOptions { threads }, &|_| {});
            let rate = |seconds: f64| report.bytes as f64 / seconds / 1e9;
            let (whole, ticks) = (rate(start.elapsed().as_secs_f64()), user_ticks() - before);
            let user = rate(ticks as f64 / 100.0);
            println!(
                "{events} events of {bytes} bytes, {threads} threads: {whole:.2} GB/s, \
                 {user:.1} GB per CPU s in user mode"
            );
            assert!(report.is_intact(), "{:?}", report.faults.first());
        }
    }
}

/// CPU time of this process in user mode, in units of 10 ms (proc(5), `/proc/pid/stat`).
fn user_ticks() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    text.rsplit(')').next().unwrap().split_whitespace().nth(11).unwrap().parse().unwrap()
}

/// A limited time reads some segments, finds their damage, and does not take the others for holes.
#[test]
fn a_sample_checks_what_it_reads() {
    let mut test = sample(Placement::Free);
    test.end();
    let sampled = |is_enough: bool| {
        let recording = Recording::open(&test.dirs()).unwrap();
        let selection = Selection::Until(&|| is_enough);
        verify_selected(&recording, VerifyOptions { threads: 1 }, selection, None, &|_| {})
    };
    let one = sampled(true);
    assert_eq!((one.segments, one.unread_segments, one.faults), (1, 4, vec![]));
    let all = sampled(false);
    assert_eq!(all, check(&test.dirs(), 1), "the order makes no difference");
    let first = test.dirs()[0].join(segment_file_name(0));
    let mut bytes = fs::read(&first).unwrap();
    bytes[SECTOR + 200] ^= 1;
    fs::write(&first, bytes).unwrap();
    assert_eq!(sampled(true).fault_count, 1);
}

/// A sealed recording of one volume with a master.
fn whole() -> TestRecording {
    let mut made = TestRecording::new(1, Placement::Free, &[4]);
    made.block(0, 4, 0, 0, &payloads(1, 5, 64));
    made.end();
    made.release();
    crate::master::write_master(&Recording::open(&made.dirs()).unwrap()).unwrap();
    made
}

#[test]
fn a_changed_bit_of_the_manifest_or_the_master_is_a_fault_of_that_file() {
    for file in [MANIFEST_FILE, MASTER_FILE] {
        let made = whole();
        let path = made.dirs()[0].join(file);
        let intact = verify(&Recording::open(&made.dirs()).unwrap(), VerifyOptions { threads: 1 }, &|_| {});
        assert_eq!((intact.fault_count, &intact.unchecked[..]), (0, &[][..]), "{:?}", intact.faults);
        let good = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        for at in (0..good.len()).step_by(13).chain([good.len() - 8, good.len() - 1]) {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            // A manifest that is not JSON any more, or is of another recording, cannot be opened at all.
            let Ok(recording) = Recording::open(&made.dirs()) else { continue };
            let report = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
            assert!(
                report.faults.iter().any(|fault| fault.file == path),
                "{file} at {at}: {:?}",
                report.faults
            );
            let is_found =
                crate::info::info(&recording).unwrap().damaged_lines.iter().any(|l| l.file == path);
            assert_eq!(is_found, file == MANIFEST_FILE, "{at}");
        }
    }
}

#[test]
fn a_manifest_that_the_journal_has_no_checksum_of_is_listed_as_unchecked() {
    let made = whole();
    let (dir, journal) = (&made.dirs()[0], made.dirs()[0].join(JOURNAL_FILE));
    let text = fs::read_to_string(&journal).unwrap();
    let lines = text.lines().filter(|line| !line.contains(r#""t":"manifest""#));
    let earlier: String = lines.flat_map(|line| [line, "\n"]).collect();
    fs::write(&journal, earlier).unwrap();
    let report = verify(&Recording::open(&made.dirs()).unwrap(), VerifyOptions { threads: 1 }, &|_| {});
    assert_eq!((report.fault_count, &report.unchecked[..]), (0, &[dir.join(MANIFEST_FILE)][..]));
}

#[test]
fn a_replaced_manifest_is_intact_also_if_a_crash_left_the_one_before() {
    let mut made = TestRecording::new(1, Placement::Free, &[4]);
    let dir = made.dirs()[0].clone();
    let before = fs::read(dir.join(MANIFEST_FILE)).unwrap();
    let metadata = BTreeMap::from([("gain".to_owned(), "2".to_owned())]);
    let manifest = Manifest::read(&dir).unwrap().with_metadata(&metadata);
    made.volumes[0].journal().replace_manifest(&dir, &manifest).unwrap();
    let faults = || {
        let recording = Recording::open(std::slice::from_ref(&dir)).unwrap();
        recording.damaged_lines().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!((Manifest::read(&dir).unwrap(), faults()), (manifest, vec![]));
    fs::write(dir.join(MANIFEST_FILE), before).unwrap();
    assert_eq!(faults(), Vec::<String>::new());
    let other = Manifest { run: Some(8), ..Manifest::read(&dir).unwrap() };
    other.replace(&dir).unwrap();
    assert_eq!(faults().len(), 1);
}

#[test]
fn damaged_marks_of_a_drain_are_a_fault() {
    let made = whole();
    let path = made.dirs()[0].join(DRAINED_FILE);
    fs::write(&path, "{} 00000000\n").unwrap();
    let report = verify(&Recording::open(&made.dirs()).unwrap(), VerifyOptions { threads: 1 }, &|_| {});
    assert_eq!(report.faults.iter().filter(|fault| fault.file == path).count(), 1, "{:?}", report.faults);
}

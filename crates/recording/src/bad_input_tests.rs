//! Damaged, mixed and forged recordings, in a table. For each one, the readers name the location
//! of the damage (or are not affected), return no event that was not recorded, and change nothing
//! outside the recording.
mod bench;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use self::bench::{Bench, FIRST, journal_line};
use crate::crc::crc32;
use crate::export::{one_file, raw, zarr_reference};
use crate::info::info;
use crate::journal::JOURNAL_FILE;
use crate::layout::{BlockHeader, ChannelBytes, SECTOR, put_block_sector, segment_file_name, u64_at};
use crate::manifest::{MANIFEST_FILE, Placement};
use crate::reader::Recording;
use crate::testing::damage::{forge_lookup, locator_at, lookup, stream_at};
use crate::testing::{ODD_NAMES, ODD_NAMES_FROM, TestRecording, payloads, recover, stream};
use crate::verify::{VerifyOptions, verify};

/// Open segment of the first volume.
const OPEN: &str = "disk0/run 7/segment-000002.mcap";
const JOURNAL: &str = "disk0/run 7/journal.jsonl";
const OTHER_JOURNAL: &str = "disk1/run 7/journal.jsonl";
const MANIFEST: &str = "disk0/run 7/keepup.json";

/// Offset of each kind of bytes in a sealed segment.
fn classes(bytes: &[u8]) -> Vec<(&'static str, usize)> {
    let data_bytes = u64_at(bytes, locator_at(bytes) + 8) as usize;
    let header = SECTOR;
    // The block's records end within a sector; the pad fills the rest.
    let records = u64_at(bytes, header + 88) as usize;
    let lookup = lookup(bytes);
    vec![
        ("preamble", 140),
        ("superblock", 2050),
        ("header", header + 60),
        ("channel", header + 4000),
        ("message header", header + 4070),
        ("payload", header + SECTOR + 10),
        ("padding", header + 4065 + records + 20),
        ("last block", data_bytes - 1),
        ("message index", data_bytes + 12),
        ("lookup", lookup.start + 30),
        ("blocks in the lookup", lookup.end - 50),
        ("metadata", lookup.end + 100),
        ("locator", locator_at(bytes) + 9),
        ("summary", bytes.len() - 37 - 40),
        ("footer", bytes.len() - 20),
        ("magic", bytes.len() - 1),
    ]
}

#[test]
fn a_bit_flipped_in_every_kind_of_bytes() {
    let mut bench = Bench::new();
    for (name, at) in classes(bench.good(FIRST)) {
        bench.case(&format!("a bit flipped in {name}"), FIRST, Some(at as u64), |root| {
            edit(&root.join(FIRST), |bytes| bytes[at] ^= 0x10);
        });
    }
    for (name, at) in [
        ("preamble", 140),
        ("header", SECTOR + 60),
        ("channel", SECTOR + 4000),
        ("message header", SECTOR + 4070),
        ("payload", 2 * SECTOR + 10),
    ] {
        bench.case(&format!("a bit flipped in the open {name}"), OPEN, Some(at as u64), |root| {
            edit(&root.join(OPEN), |bytes| bytes[at] ^= 0x10);
        });
    }
}

#[test]
fn cut_off_in_every_kind_of_bytes() {
    let mut bench = Bench::new();
    for (name, at) in classes(bench.good(FIRST)) {
        bench.case(&format!("cut in {name}"), FIRST, Some(at as u64), |root| {
            edit(&root.join(FIRST), |bytes| bytes.truncate(at));
        });
    }
    for at in [0, 100, SECTOR, SECTOR + 60, SECTOR + 4070, 2 * SECTOR + 10] {
        bench.case(&format!("the open one cut at {at}"), OPEN, Some(at as u64), |root| {
            edit(&root.join(OPEN), |bytes| bytes.truncate(at));
        });
    }
}

#[test]
fn segments_of_two_recordings_mixed() {
    let mut bench = Bench::new();
    let other = Bench::other_segment();
    for file in [FIRST, OPEN] {
        let bytes = other.clone();
        bench.case("a segment of another recording", file, Some(0), |root| {
            fs::write(root.join(file), bytes).unwrap();
        });
    }
    bench.case("segments of two volumes swapped", FIRST, Some(0), |root| {
        let (first, second) = (root.join(FIRST), root.join("disk1/run 7/segment-000000.mcap"));
        let kept = fs::read(&first).unwrap();
        fs::copy(&second, &first).unwrap();
        fs::write(&second, kept).unwrap();
    });
    let next = format!("disk0/run 7/{}", segment_file_name(3));
    bench.case("one more segment, of another recording", &next, Some(0), |root| {
        fs::write(root.join(&next), &other).unwrap();
    });
    assert!(bench.root().join(&next).exists(), "a foreign segment must be kept");
    for file in [FIRST, "disk0/run 7/segment-000001.mcap", OPEN] {
        bench.case("a segment is missing", file, None, |root| fs::remove_file(root.join(file)).unwrap());
        bench.case("a directory for a segment", file, None, |root| {
            fs::remove_file(root.join(file)).unwrap();
            fs::create_dir(root.join(file)).unwrap();
        });
    }
}

#[test]
fn older_versions_of_the_format() {
    let mut bench = Bench::new();
    for file in [FIRST, OPEN] {
        bench.case("a preamble of version 0", file, Some(0), |root| {
            edit(&root.join(file), |bytes| bytes[132] = 0);
        });
        bench.case("a block of version 0", file, Some(SECTOR as u64), |root| {
            edit(&root.join(file), |bytes| bytes[SECTOR + 13] = 0);
        });
    }
    bench.case("a manifest of version 0", MANIFEST_FILE, None, |root| {
        let text = fs::read_to_string(root.join(MANIFEST)).unwrap();
        fs::write(root.join(MANIFEST), text.replace("\"format_version\": 1", "\"format_version\": 0"))
            .unwrap();
    });
    assert!(bench.has_message("hint: use the keepup that wrote this recording"));
    let next = format!("disk0/run 7/{}", segment_file_name(3));
    bench.case("one more segment, of version 0", &next, Some(0), |root| {
        fs::copy(root.join(OPEN), root.join(&next)).unwrap();
        edit(&root.join(&next), |bytes| bytes[132] = 0);
    });
    assert!(bench.root().join(&next).exists());
}

#[test]
fn empty_damaged_and_foreign_journals() {
    let mut bench = Bench::new();
    bench.case("an empty journal", JOURNAL, Some(0), |root| fs::write(root.join(JOURNAL), b"").unwrap());
    bench.case("no journal", JOURNAL, None, |root| fs::remove_file(root.join(JOURNAL)).unwrap());
    bench.case("the journal of another volume", JOURNAL, Some(0), |root| {
        fs::copy(root.join(OTHER_JOURNAL), root.join(JOURNAL)).unwrap();
    });
    bench.case("a journal of zeros", JOURNAL, Some(0), |root| {
        edit(&root.join(JOURNAL), |bytes| bytes.fill(0));
    });
    bench.case("a journal of text", JOURNAL, Some(0), |root| {
        fs::write(root.join(JOURNAL), b"dear diary\n\ntoday\n").unwrap();
    });
    bench.case("an endless line", JOURNAL, Some(0), |root| {
        fs::File::create(root.join(JOURNAL)).unwrap().set_len(1 << 40).unwrap();
    });
    let good = bench.good(JOURNAL).to_vec();
    let lines: Vec<&[u8]> = good.split_inclusive(|&byte| byte == b'\n').collect();
    let mut at = 0;
    for (number, line) in lines.iter().enumerate().take(lines.len() - 1) {
        let middle = at + line.len() / 2;
        bench.case(&format!("line {} is damaged", number + 1), JOURNAL, Some(middle as u64), |root| {
            edit(&root.join(JOURNAL), |bytes| bytes[middle] ^= 1);
        });
        at += line.len();
    }
    assert!(at > 0);
}

#[test]
fn a_damaged_line_loses_only_its_own_information() {
    let mut bench = Bench::new();
    let text = String::from_utf8(bench.good(JOURNAL).to_vec()).unwrap();
    for kind in ["begin", "segment", "watermark", "segment_end"] {
        let at = text.find(&format!("{{\"t\":\"{kind}\"")).unwrap() + 8;
        bench.case(&format!("a line {kind} is damaged"), JOURNAL, Some(at as u64), |root| {
            edit(&root.join(JOURNAL), |bytes| bytes[at] ^= 1);
        });
        assert_eq!(bench.recovered_events(), bench.events(), "{kind}: recovery restores all events");
    }
    bench.case("an empty journal", JOURNAL, Some(0), |root| fs::write(root.join(JOURNAL), b"").unwrap());
    assert_eq!(bench.recovered_events(), bench.events(), "segments are found without a journal");
}

#[test]
fn lines_with_hostile_numbers() {
    let mut bench = Bench::new();
    let max = u64::MAX;
    let far = max - 4095;
    for line in [
        format!(
            r#"{{"t":"watermark","segment":2,"written_bytes":{far},"durable_bytes":{far},"blocks":{max}}}"#
        ),
        format!(r#"{{"t":"segment_end","index":2,"bytes":{max},"data_bytes":{far},"blocks":{max}}}"#),
        format!(r#"{{"t":"segment_end","index":4294967295,"bytes":{max},"data_bytes":{far},"blocks":1}}"#),
        format!(
            r#"{{"t":"watermark","segment":4294967295,"written_bytes":{max},"durable_bytes":0,"blocks":0}}"#
        ),
        format!(
            r#"{{"t":"segment","index":4294967295,"id":"{}","file":"{}","preallocated_bytes":{max}}}"#,
            "00".repeat(16),
            segment_file_name(u32::MAX)
        ),
        format!(
            r#"{{"t":"segment","index":3,"id":"{}","file":"../../outside/target","preallocated_bytes":0}}"#,
            "00".repeat(16)
        ),
        format!(r#"{{"t":"gap","stream":2,"first_sequence":1,"events":{max},"cause":"source"}}"#),
        r#"{"t":"gap","stream":2,"first_sequence":1,"events":0,"cause":"source"}"#.to_owned(),
        format!(r#"{{"t":"found","stream":2,"first_sequence":{max},"events":2}}"#),
        r#"{"t":"stream","id":70000,"name":"x","element":"u16","shape":[]}"#.to_owned(),
        r#"{"t":"stream","id":5,"name":"x","element":"u16","shape":[0]}"#.to_owned(),
        format!(r#"{{"t":"stream","id":5,"name":"x","element":"u16","shape":[{max},{max}]}}"#),
        r#"{"t":"stream","id":2,"name":"x","element":"u16","shape":[]}"#.to_owned(),
        format!(r#"{{"t":"watermark","segment":2,"written_bytes":-1,"durable_bytes":{max}0,"blocks":1e99}}"#),
    ] {
        // A damaged last line would count as torn, so another line follows it.
        let end = journal_line(r#"{"t":"gap","stream":2,"first_sequence":100,"events":1,"cause":"source"}"#);
        let text = [journal_line(&line), end].concat();
        bench.case(&line, "disk0/run 7/", None, |root| {
            edit(&root.join(JOURNAL), |bytes| bytes.extend_from_slice(text.as_bytes()));
        });
    }
    // A watermark that goes back is skipped; the lines before it still hold.
    let back = r#"{"t":"watermark","segment":2,"written_bytes":4096,"durable_bytes":4096,"blocks":0}"#;
    let text = [journal_line(back), journal_line(back)].concat();
    bench.case("a watermark that goes back", JOURNAL, None, |root| {
        edit(&root.join(JOURNAL), |bytes| bytes.extend_from_slice(text.as_bytes()));
    });
    assert_eq!(bench.recovered_events(), bench.events());
    // Each of these is possible; together they are more events than there are sequence numbers.
    let mut text = String::new();
    for first in 100..104 {
        let events = max - 200;
        text += &journal_line(&format!(
            r#"{{"t":"gap","stream":2,"first_sequence":{first},"events":{events},"cause":"source"}}"#
        ));
    }
    bench.harmless("gaps beyond counting", |root| {
        edit(&root.join(JOURNAL), |bytes| bytes.extend_from_slice(text.as_bytes()));
    });
}

#[test]
fn blocks_and_indexes_with_hostile_numbers() {
    let mut bench = Bench::new();
    let header = bench.header(OPEN, SECTOR);
    let lies = [
        BlockHeader { chunk_records_bytes: u64::MAX, payload_bytes: u64::MAX - 31, ..header },
        BlockHeader { chunk_records_bytes: 1 << 62, payload_bytes: (1 << 62) - 31, event_count: 1, ..header },
        BlockHeader { event_count: u32::MAX, ..header },
        BlockHeader { event_count: 0, ..header },
        BlockHeader { first_sequence: u64::MAX, ..header },
        BlockHeader { stream: 4, ..header },
        BlockHeader { segment_block: u64::MAX, ..header },
        BlockHeader { first_timestamp_ns: u64::MAX, ..header },
        BlockHeader { flags: u32::MAX, ..header },
    ];
    for file in [FIRST, OPEN] {
        let header = bench.header(file, SECTOR);
        for lie in lies {
            let lie = BlockHeader { segment: header.segment, segment_index: header.segment_index, ..lie };
            bench.case(&format!("a header {lie:?}"), file, Some(SECTOR as u64), |root| {
                let channel = ChannelBytes::new(&stream(lie.stream)).unwrap();
                edit(&root.join(file), |bytes| {
                    put_block_sector(&mut bytes[SECTOR..], &lie, &channel);
                });
            });
        }
    }
    let first = stream_at(bench.good(FIRST), 0);
    for (at, number) in
        [(4, u64::MAX), (8, u64::MAX), (16, u64::MAX), (32, 3), (40, u64::MAX), (64, u64::MAX)]
    {
        bench.case(&format!("an index with {number} at {at}"), FIRST, Some((first + at) as u64), |root| {
            edit(&root.join(FIRST), |bytes| {
                bytes[first + at..first + at + 4].copy_from_slice(&number.to_le_bytes()[..4]);
                forge_lookup(bytes, 2);
            });
        });
    }
}

#[test]
fn links_inside_a_recording() {
    let mut bench = Bench::new();
    let next = format!("disk0/run 7/{}", segment_file_name(3));
    for file in [MANIFEST, JOURNAL, FIRST, OPEN, &next] {
        for is_there in [true, false] {
            bench.case(&format!("a link, to a file: {is_there}"), file, None, |root| {
                let (path, target) = (root.join(file), root.join("outside/target"));
                if path.exists() {
                    fs::rename(&path, root.join("outside/target")).unwrap();
                } else {
                    fs::copy(root.join(OPEN), root.join("outside/target")).unwrap();
                }
                if !is_there {
                    fs::remove_file(&target).unwrap();
                }
                symlink(&target, &path).unwrap();
            });
        }
    }
    for name in ["recording.nxs", "recording.nxs.new"] {
        bench.harmless(&format!("{name} is a link"), |root| {
            symlink(root.join("outside/canary"), root.join("disk0/run 7").join(name)).unwrap();
        });
        let master = bench.root().join("disk0/run 7/recording.nxs");
        assert!(
            fs::symlink_metadata(master).unwrap().is_file(),
            "recovery writes its own file in place of the link"
        );
    }
}

#[test]
fn stream_names_with_slashes_dots_and_newlines() {
    let ids: Vec<u32> = (0..ODD_NAMES.len() as u32).map(|index| ODD_NAMES_FROM + index).collect();
    let mut test = TestRecording::new(1, Placement::Free, &ids);
    for &id in &ids {
        test.block(0, id, 0, 0, &payloads(id.into(), 3, 200));
    }
    test.volumes[0].watermark();
    test.release();
    let report = recover(&test.dirs()).unwrap();
    assert!(report.complete && report.streams.len() == ids.len(), "{report:#?}");
    let recording = Recording::open(&test.dirs()).unwrap();
    let report = verify(&recording, VerifyOptions { threads: 1 }, &|_| {});
    assert_eq!(report.faults, []);
    assert_eq!(info(&recording).unwrap().streams[&ODD_NAMES_FROM].info.name, ODD_NAMES[0]);
    let place = test.root.path().join("exports");
    fs::create_dir(&place).unwrap();
    assert_eq!(
        one_file(&recording, None, &place.join("one"), &mut |_| {}).unwrap().streams,
        ids.len() as u64
    );
    zarr_reference(&recording, None, &place.join("zarr")).unwrap();
    assert_eq!(raw(&recording, None, &place.join("raw"), &mut |_| {}).unwrap().events, 3 * ids.len() as u64);
    let names =
        |place: &Path| fs::read_dir(place).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(names(&place).len(), 3);
    assert_eq!(names(&place.join("raw")).len(), 2 * ids.len(), "all files are in this directory");
    assert_eq!(names(test.root.path()).len(), 2, "and none beside it");
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    bench::replace(path, &bytes);
}

#[test]
fn a_journal_line_matches_the_recorders() {
    let bench = Bench::new();
    let good = String::from_utf8(bench.good(JOURNAL).to_vec()).unwrap();
    let (json, crc) = good.lines().next().unwrap().rsplit_once(' ').unwrap();
    assert_eq!(crc, format!("{:08x}", crc32(json.as_bytes())));
    assert!(good.starts_with(&journal_line(json)) && JOURNAL.ends_with(JOURNAL_FILE));
}

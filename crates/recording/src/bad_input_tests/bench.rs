//! Test bench: builds a recording, damages it, and runs every reader on it.
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use keepup_error::Cause;

use crate::access::{From, StreamReader};
use crate::crc::crc32;
use crate::export::{one_file, raw, zarr_reference};
use crate::fixture::{BlockPlan, SegmentBuilder};
use crate::id::Id;
use crate::info::info;
use crate::layout::{BlockHeader, SegmentIdentity, parse_block_sector};
use crate::manifest::Placement;
use crate::reader::{Recording, SegmentReader};
use crate::recover::{RecoverOptions, recover};
use crate::testing::{TestRecording, payloads, stream};
use crate::verify::{VerifyOptions, verify};

/// First segment of the first volume, sealed.
pub(super) const FIRST: &str = "disk0/run 7/segment-000000.mcap";

/// Time and payload of each event, by stream and sequence number.
type Events = BTreeMap<(u32, u64), (u64, Vec<u8>)>;

/// A recording with two volumes, each with two sealed segments and an open one, and a copy to
/// restore it.
pub(super) struct Bench {
    recording: TestRecording,
    files: BTreeMap<PathBuf, Vec<u8>>,
    events: Events,
    /// All messages of the last case.
    messages: Vec<String>,
    /// Readable events after recovery of the last case.
    recovered: usize,
}

impl Bench {
    pub(super) fn new() -> Self {
        let mut recording = TestRecording::new(2, Placement::Free, &[2, 3]);
        let mut events = Events::new();
        for turn in 0..12u64 {
            for id in [2, 3] {
                let block = match id {
                    2 => (0..5).map(|n| (turn * 100 + n, vec![(turn * 5 + n) as u8; 64])).collect(),
                    _ => payloads(turn, 5, 3000),
                };
                recording.block((turn % 2) as usize, id, turn * 5, 0, &block);
                events.extend((turn * 5..).zip(block).map(|(sequence, event)| ((id, sequence), event)));
            }
            if turn % 4 == 3 && turn < 11 {
                recording.volumes.iter_mut().for_each(|volume| volume.rotate());
            }
        }
        recording.volumes.iter_mut().for_each(|volume| volume.watermark());
        // A second watermark, so that the first one is not the last line.
        recording.volumes.iter_mut().for_each(|volume| volume.watermark());
        recording.release();
        let files = ["disk0", "disk1"].map(|disk| snapshot(&recording.root.path().join(disk)));
        let files = files.into_iter().flatten().collect();
        Self { recording, files, events, messages: Vec::new(), recovered: 0 }
    }

    /// A sealed segment of another recording, with other events of the same streams.
    pub(super) fn other_segment() -> Vec<u8> {
        let identity = SegmentIdentity { recording: Id([8; 16]), segment: Id([1; 16]), ..Default::default() };
        let mut segment = SegmentBuilder::new(identity);
        let events: [(u64, &[u8]); 2] = [(1, b"other"), (2, b"events")];
        segment.block(&stream(3), BlockPlan::default(), &events).unwrap();
        segment.finish()
    }

    pub(super) fn root(&self) -> &Path {
        self.recording.root.path()
    }

    /// Undamaged content of a file.
    pub(super) fn good(&self, file: &str) -> &[u8] {
        &self.files[&self.root().join(file)]
    }

    /// Undamaged header of a block.
    pub(super) fn header(&self, file: &str, at: usize) -> BlockHeader {
        parse_block_sector(&self.good(file)[at..]).unwrap().header
    }

    /// Number of all events.
    pub(super) fn events(&self) -> usize {
        self.events.len()
    }

    /// Readable events after recovery in the last case.
    pub(super) fn recovered_events(&self) -> usize {
        self.recovered
    }

    /// Whether a message of the last case contains `text`.
    pub(super) fn has_message(&self, text: &str) -> bool {
        self.messages.iter().any(|message| message.contains(text))
    }

    /// Damages the recording. A message must name `file` and, if the damage has an offset, an
    /// offset no later than that.
    pub(super) fn case(&mut self, name: &str, file: &str, at: Option<u64>, damage: impl FnOnce(&Path)) {
        self.run(name, damage);
        let place = self.root().join(file).display().to_string();
        let matching: Vec<_> = self.messages.iter().filter(|message| message.contains(&place)).collect();
        let matching = match file.contains('/') {
            true => matching,
            false => self.messages.iter().filter(|message| message.contains(file)).collect(),
        };
        assert!(!matching.is_empty(), "{name}: no message names {file}: {:#?}", self.messages);
        let Some(at) = at else { return };
        let offsets = matching.iter().filter_map(|message| {
            let digits = message.split_once("at offset ")?.1;
            digits[..digits.find(|c: char| !c.is_ascii_digit())?].parse::<u64>().ok()
        });
        let is_near = |offset: u64| offset <= at && (at < 8192 || offset >= 4096);
        assert!(
            offsets.clone().any(is_near),
            "{name}: no message names offset {at} of {file}: {:#?}",
            self.messages
        );
    }

    /// Makes a change that needs no message.
    pub(super) fn harmless(&mut self, name: &str, damage: impl FnOnce(&Path)) {
        self.run(name, damage);
        assert_eq!(self.recovered, self.events.len(), "{name}: {:#?}", self.messages);
    }

    fn run(&mut self, name: &str, damage: impl FnOnce(&Path)) {
        self.messages.clear();
        self.put_back();
        damage(self.root());
        let outside = snapshot(&self.root().join("outside"));
        self.read(name, "before recovery");
        match recover(&self.recording.dirs(), RecoverOptions::default(), &mut |_| {}) {
            Ok(report) => {
                self.messages.extend(report.volumes.iter().flat_map(|volume| volume.faults.clone()));
                let matching = report.volumes.iter().all(|volume| volume.faults.is_empty());
                assert!(report.complete == matching, "{name}: {report:#?}");
            }
            Err(error) => self.messages.push(Cause::of(&error).to_text()),
        }
        self.recovered = self.read(name, "after recovery");
        assert!(snapshot(&self.root().join("outside")) == outside, "{name}: something outside was changed");
        let mut entries: Vec<_> =
            fs::read_dir(self.root()).unwrap().map(|e| e.unwrap().file_name()).collect();
        entries.sort();
        assert_eq!(entries, ["disk0", "disk1", "exports", "outside"], "{name}");
    }

    /// Restores the recording, next to a directory with a canary.
    fn put_back(&self) {
        for place in fs::read_dir(self.root()).unwrap() {
            fs::remove_dir_all(place.unwrap().path()).unwrap();
        }
        for (path, bytes) in &self.files {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let (outside, exports) = (self.root().join("outside"), self.root().join("exports"));
        fs::create_dir(&outside).unwrap();
        fs::create_dir(exports).unwrap();
        fs::write(outside.join("canary"), b"sings").unwrap();
    }

    /// Reads everything by every reader; returns the number of events returned.
    fn read(&mut self, name: &str, when: &str) -> usize {
        let recording = match Recording::open(&self.recording.dirs()) {
            Ok(recording) => recording,
            Err(error) => {
                self.messages.push(Cause::of(&error).to_text());
                return 0;
            }
        };
        let report = verify(&recording, VerifyOptions { threads: 2 }, &|_| {});
        let fault =
            |f: &crate::verify::Fault| format!("{} at offset {}: {}", f.file.display(), f.offset, f.what);
        self.messages.extend(report.faults.iter().map(fault));
        self.messages.extend(info(&recording).err().map(|error| Cause::of(&error).to_text()));
        let mut count = 0;
        for id in [2, 3] {
            let check = |sequence, time, payload: &[u8]| {
                let known = self.events.get(&(id, sequence));
                let known =
                    known.unwrap_or_else(|| panic!("{name}, {when}: unexpected event {id}/{sequence}"));
                assert!(
                    (time, payload) == (known.0, &known.1[..]),
                    "{name}, {when}: {id}/{sequence} is wrong"
                );
            };
            let mut last = None;
            let read = StreamReader::open(&recording, id).and_then(|reader| {
                let Some(mut reader) = reader else { return Ok(0) };
                reader.read(From::Sequence(0), &mut |event| {
                    assert!(last < Some(event.sequence), "{name}, {when}: {id}/{} again", event.sequence);
                    last = Some(event.sequence);
                    check(event.sequence, event.timestamp_ns, event.payload);
                    count += 1;
                    ControlFlow::Continue(())
                })
            });
            self.messages.extend(read.err().map(|error| Cause::of(&error).to_text()));
            let by_time = StreamReader::open(&recording, id).and_then(|reader| {
                let Some(mut reader) = reader else { return Ok(0) };
                reader.read(From::Time(500), &mut |event| {
                    check(event.sequence, event.timestamp_ns, event.payload);
                    ControlFlow::Continue(())
                })
            });
            self.messages.extend(by_time.err().map(|error| Cause::of(&error).to_text()));
        }
        self.blocks(&recording, name);
        self.exports(&recording, when);
        count
    }

    /// Reads segments block by block, like a drain.
    fn blocks(&mut self, recording: &Recording, name: &str) {
        for (volume, segment) in
            recording.volumes().iter().flat_map(|v| v.segments().iter().map(move |s| (v, s)))
        {
            let read = SegmentReader::open(volume, segment, 1 << 24).and_then(|mut reader| {
                while let Some(block) = reader.next_block(segment.readable_bytes())? {
                    for event in block.events() {
                        let known = self.events.get(&(block.header.stream, event.sequence));
                        let is_known = known.is_some_and(|(time, bytes)| {
                            (event.timestamp_ns, event.payload) == (*time, &bytes[..])
                        });
                        assert!(is_known, "{name}: unexpected event {:?}/{}", block.header, event.sequence);
                    }
                }
                Ok(())
            });
            self.messages.extend(read.err().map(|error| Cause::of(&error).to_text()));
        }
    }

    /// Exports to all other formats.
    fn exports(&mut self, recording: &Recording, when: &str) {
        let place = self.root().join("exports").join(when);
        fs::create_dir(&place).unwrap();
        let outcomes = [
            one_file(recording, None, &place.join("mcap"), &mut |_| {}),
            raw(recording, None, &place.join("raw"), &mut |_| {}),
            zarr_reference(recording, None, &place.join("zarr")),
        ];
        self.messages
            .extend(outcomes.into_iter().filter_map(|outcome| Some(Cause::of(&outcome.err()?).to_text())));
    }
}

/// Journal line with its checksum.
pub(super) fn journal_line(json: &str) -> String {
    format!("{json} {:08x}\n", crc32(json.as_bytes()))
}

/// Replaces the content of a file that may be read-only.
pub(super) fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// All files below a directory with their bytes; links are not followed.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            files.extend(snapshot(&path));
        } else if meta.is_symlink() {
            files.insert(path.clone(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

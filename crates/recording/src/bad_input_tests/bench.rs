//! Puts a recording there, damages it, and lets everything that reads recordings loose on it.
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::access::{From, StreamReader};
use crate::crc::crc32;
use crate::export::{one_file, raw, zarr_reference};
use crate::fixture::{BlockPlan, SegmentBuilder};
use crate::id::Id;
use crate::info::info;
use crate::layout::{BlockHeader, SegmentIdentity, parse_block_sector};
use crate::manifest::Placement;
use crate::reader::{Recording, SegmentReader};
use crate::recover::recover;
use crate::testing::{TestRecording, payloads, stream};
use crate::verify::{VerifyOptions, verify};

/// The first segment of the first volume, sealed.
pub(super) const FIRST: &str = "disk0/run 7/segment-000000.mcap";

/// Time and payload of each event, by stream and sequence number.
type Events = BTreeMap<(u32, u64), (u64, Vec<u8>)>;

/// A recording of two volumes, two sealed segments and an open one on each, and how to put it back.
pub(super) struct Bench {
    recording: TestRecording,
    files: BTreeMap<PathBuf, Vec<u8>>,
    events: Events,
    /// All that was said in the last case.
    said: Vec<String>,
    /// Events that could be read after the last case was recovered.
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
        // Once more: the first of them is not the last line.
        recording.volumes.iter_mut().for_each(|volume| volume.watermark());
        recording.release();
        let files = ["disk0", "disk1"].map(|disk| snapshot(&recording.root.path().join(disk)));
        let files = files.into_iter().flatten().collect();
        Self { recording, files, events, said: Vec::new(), recovered: 0 }
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

    /// A file as it was.
    pub(super) fn good(&self, file: &str) -> &[u8] {
        &self.files[&self.root().join(file)]
    }

    /// The header of a block as it was.
    pub(super) fn header(&self, file: &str, at: usize) -> BlockHeader {
        parse_block_sector(&self.good(file)[at..]).unwrap().header
    }

    /// Number of all events.
    pub(super) fn events(&self) -> usize {
        self.events.len()
    }

    /// Events that could be read after recovery in the last case.
    pub(super) fn recovered_events(&self) -> usize {
        self.recovered
    }

    /// Whether this was said in the last case.
    pub(super) fn said(&self, text: &str) -> bool {
        self.said.iter().any(|said| said.contains(text))
    }

    /// Damages the recording: somebody must name `file`, and, where the damage is at an offset, one that is
    /// not behind it.
    pub(super) fn case(&mut self, name: &str, file: &str, at: Option<u64>, damage: impl FnOnce(&Path)) {
        self.run(name, damage);
        let place = self.root().join(file).display().to_string();
        let told: Vec<_> = self.said.iter().filter(|said| said.contains(&place)).collect();
        let told = match file.contains('/') {
            true => told,
            false => self.said.iter().filter(|said| said.contains(file)).collect(),
        };
        assert!(!told.is_empty(), "{name}: nobody names {file}: {:#?}", self.said);
        let Some(at) = at else { return };
        let offsets = told.iter().filter_map(|said| {
            let digits = said.split_once("at offset ")?.1;
            digits[..digits.find(|c: char| !c.is_ascii_digit())?].parse::<u64>().ok()
        });
        let is_near = |offset: u64| offset <= at && (at < 8192 || offset >= 4096);
        assert!(offsets.clone().any(is_near), "{name}: nobody names offset {at} of {file}: {:#?}", self.said);
    }

    /// Does something that needs not be told of.
    pub(super) fn harmless(&mut self, name: &str, damage: impl FnOnce(&Path)) {
        self.run(name, damage);
        assert_eq!(self.recovered, self.events.len(), "{name}: {:#?}", self.said);
    }

    fn run(&mut self, name: &str, damage: impl FnOnce(&Path)) {
        self.said.clear();
        self.put_back();
        damage(self.root());
        let outside = snapshot(&self.root().join("outside"));
        self.read(name, "before recovery");
        match recover(&self.recording.dirs()) {
            Ok(report) => {
                self.said.extend(report.volumes.iter().flat_map(|volume| volume.faults.clone()));
                let told = report.volumes.iter().all(|volume| volume.faults.is_empty());
                assert!(report.complete == told, "{name}: {report:#?}");
            }
            Err(error) => self.said.push(error.to_string()),
        }
        self.recovered = self.read(name, "after recovery");
        assert!(snapshot(&self.root().join("outside")) == outside, "{name}: something outside was changed");
        let mut entries: Vec<_> =
            fs::read_dir(self.root()).unwrap().map(|e| e.unwrap().file_name()).collect();
        entries.sort();
        assert_eq!(entries, ["disk0", "disk1", "exports", "outside"], "{name}");
    }

    /// The recording as it was, and nothing else but a directory with a canary.
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

    /// Reads everything in every way; returns how many events were handed out.
    fn read(&mut self, name: &str, when: &str) -> usize {
        let recording = match Recording::open(&self.recording.dirs()) {
            Ok(recording) => recording,
            Err(error) => {
                self.said.push(error.to_string());
                return 0;
            }
        };
        let report = verify(&recording, VerifyOptions { threads: 2 }, &|_| {});
        let fault =
            |f: &crate::verify::Fault| format!("{} at offset {}: {}", f.file.display(), f.offset, f.what);
        self.said.extend(report.faults.iter().map(fault));
        self.said.extend(info(&recording).err().map(|error| error.to_string()));
        let mut count = 0;
        for id in [2, 3] {
            let check = |sequence, time, payload: &[u8]| {
                let known = self.events.get(&(id, sequence));
                let known =
                    known.unwrap_or_else(|| panic!("{name}, {when}: nobody recorded {id}/{sequence}"));
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
            self.said.extend(read.err().map(|error| error.to_string()));
            let by_time = StreamReader::open(&recording, id).and_then(|reader| {
                let Some(mut reader) = reader else { return Ok(0) };
                reader.read(From::Time(500), &mut |event| {
                    check(event.sequence, event.timestamp_ns, event.payload);
                    ControlFlow::Continue(())
                })
            });
            self.said.extend(by_time.err().map(|error| error.to_string()));
        }
        self.blocks(&recording, name);
        self.exports(&recording, when);
        count
    }

    /// Reads segments block by block, as a drain does.
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
                        assert!(is_known, "{name}: nobody recorded {:?}/{}", block.header, event.sequence);
                    }
                }
                Ok(())
            });
            self.said.extend(read.err().map(|error| error.to_string()));
        }
    }

    /// Writes it in all other forms.
    fn exports(&mut self, recording: &Recording, when: &str) {
        let place = self.root().join("exports").join(when);
        fs::create_dir(&place).unwrap();
        let outcomes = [
            one_file(recording, None, &place.join("mcap")),
            raw(recording, None, &place.join("raw")),
            zarr_reference(recording, None, &place.join("zarr")),
        ];
        self.said.extend(outcomes.into_iter().filter_map(|outcome| Some(outcome.err()?.to_string())));
    }
}

/// A line of a journal with its checksum.
pub(super) fn journal_line(json: &str) -> String {
    format!("{json} {:08x}\n", crc32(json.as_bytes()))
}

/// Puts other bytes into a file that may be read-only.
pub(super) fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// All files below a directory with their bytes; links as they are.
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

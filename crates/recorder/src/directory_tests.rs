//! Which files are new when the recording starts.
use std::fs;
use std::path::Path;
use std::time::Duration;

use keepup_measure::clock::SystemClock;
use keepup_sources::directory::Files;
use keepup_sources::{Decoder, Input, Item, SourceAddress};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;
use crate::Target;

/// Bytes of the files that the thread sends until it has sent `last`. Each file has one byte.
fn content_until(last: u8, socket: &OwnedFd) -> String {
    let mut decoder = Files::new(Path::new("in"));
    let mut content = Vec::new();
    while content.last() != Some(&last) {
        let is_file = matches!(decoder.item().unwrap(), Some(Item::Start(_)));
        match (is_file, decoder.item().unwrap().is_some()) {
            (true, _) => {
                decoder.take();
                let mut byte = [0];
                read(socket, &mut byte);
                content.extend(byte);
            }
            (false, true) => {
                match decoder.item().unwrap() {
                    Some(Item::Complete { .. }) => decoder.completed(0),
                    Some(Item::Lost { sequence, .. }) => panic!("file {sequence} is lost"),
                    _ => {}
                }
                decoder.take();
            }
            (false, false) => {
                let Input::Bytes(space) = decoder.input() else { panic!("packets") };
                let count = read(socket, space);
                decoder.received(count, 0);
            }
        }
    }
    String::from_utf8(content).unwrap()
}

fn read(socket: &OwnedFd, space: &mut [u8]) -> usize {
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&limit)), Ok(1), "the thread sends nothing");
    rustix::io::read(socket, space).unwrap()
}

/// A file that is complete before the start, one during it, and one after it.
fn recorded(options: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let switches = Arc::new(Switches::default());
    fs::write(path("first"), "1").unwrap();
    let address = format!("dir:{}{options}", directory.path().display());
    let SourceAddress::Directory(address) = address.parse().unwrap() else { panic!("no directory") };
    let config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), Target::Null, "run");
    let (socket, note) = start(0, &address, &config, (&switches, &clock)).unwrap();
    assert_eq!(note.map(|note| note.to_string()), None);
    fs::write(path("second"), "2").unwrap();
    fs::write(path("gone"), "g").unwrap();
    fs::remove_file(path("gone")).unwrap();
    fs::write(path("third.part"), "3").unwrap();
    fs::rename(path("third.part"), path("third")).unwrap();
    // Until the thread has taken note of them.
    std::thread::sleep(Duration::from_millis(500));
    switches.open(clock.unix_ns());
    // The intake has not run yet.
    fs::write(path("fourth"), "4").unwrap();
    rustix::io::write(&socket, &[1]).unwrap();
    content_until(b'4', &socket)
}

#[test]
fn every_file_that_is_complete_after_the_start_is_new() {
    assert_eq!(recorded(""), "4");
}

#[test]
fn existing_files_are_recorded_if_requested() {
    assert_eq!(recorded(",existing=record,settle=20ms"), "1234");
}

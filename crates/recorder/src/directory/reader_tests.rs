//! Versions of a file that follow one another, and files that are open. The test moves the clock.
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use keepup_sources::directory::Files;
use keepup_sources::{Decoder, Input, Item, SourceAddress};
use rustix::fs::{CWD, Mode};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tempfile::TempDir;

use super::*;

/// A clock that the test moves.
#[derive(Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_ns(&self) -> u64 {
        self.now_ns()
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        self.0.fetch_max(deadline_ns, Ordering::Relaxed);
    }
}

/// A directory and its reader, in this thread.
struct Setup {
    place: TempDir,
    reader: DirectoryReader,
    clock: Arc<Hand>,
    socket: OwnedFd,
    decoder: Files,
}

impl Setup {
    /// `None` if the file system has no leases.
    fn new(options: &str, existing: &[&str]) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        existing.iter().for_each(|name| fs::write(place.path().join(name), name).unwrap());
        let probe = tempfile::tempfile_in(place.path()).unwrap();
        if is_open_for_writing(probe.as_fd()).is_err() {
            return None;
        }
        let address = format!("dir:{}{options}", place.path().display());
        let SourceAddress::Directory(address) = address.parse().unwrap() else { panic!("no directory") };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, place.path(), flags, Mode::empty()).unwrap();
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        rustix::io::ioctl_fionbio(&socket, true).unwrap();
        let (switches, clock) = (Arc::new(Switches::default()), Arc::new(Hand::default()));
        let shared: (_, Arc<dyn Clock>) = (Arc::clone(&switches), Arc::clone(&clock) as _);
        let reader = DirectoryReader::new(address, (directory, theirs), false, 1 << 20, shared).unwrap();
        switches.open(1);
        let decoder = Files::new(Path::new("in"));
        Some(Self { place, reader, clock, socket, decoder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    /// A file that is open for writing.
    fn open(&self, name: &str, content: &str) -> File {
        let mut file = File::create(self.path(name)).unwrap();
        file.write_all(content.as_bytes()).unwrap();
        file
    }

    /// The reader takes the reports, and reads what is due after `ms`.
    fn step(&mut self, ms: u64) -> Vec<String> {
        assert!(self.reader.take_changes().is_ok());
        self.clock.0.fetch_add(ms * 1_000_000, Ordering::Relaxed);
        assert!(self.reader.read_due().is_ok());
        self.sent()
    }

    /// Ends the recording. Returns what the reader sends, and the number of files that it rejects.
    fn finish(&mut self) -> (Vec<String>, u64) {
        assert!(self.reader.finish().is_ok());
        let sent = self.sent();
        (sent, self.decoder.rejected().first().map_or(0, |rejection| rejection.count))
    }

    /// Contents and losses that the reader has sent.
    fn sent(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        loop {
            let length = match self.decoder.item().unwrap() {
                Some(Item::Start(start)) => Some(start.bytes),
                Some(Item::Complete { is_whole: true }) => {
                    self.decoder.completed(0);
                    None
                }
                Some(Item::Complete { is_whole: false }) => {
                    sent.pop();
                    None
                }
                Some(Item::Lost { .. }) => {
                    sent.push("lost".to_owned());
                    None
                }
                Some(_) => None,
                None => {
                    let Input::Bytes(space) = self.decoder.input() else { panic!("packets") };
                    match rustix::io::read(&self.socket, space) {
                        Ok(count) => self.decoder.received(count, 0),
                        Err(Errno::AGAIN) => return sent,
                        Err(error) => panic!("{error}"),
                    }
                    continue;
                }
            };
            self.decoder.take();
            if let Some(length) = length {
                let mut content = vec![0; length as usize];
                let mut filled = 0;
                while filled < content.len() {
                    filled += rustix::io::read(&self.socket, &mut content[filled..]).unwrap();
                }
                sent.push(String::from_utf8(content).unwrap());
            }
        }
    }
}

#[test]
fn versions_that_are_overwritten_in_place_are_lost() {
    let Some(mut files) = Setup::new("", &[]) else { return };
    for content in ["1", "22", "333"] {
        files.write("latest", content);
        assert!(files.reader.take_changes().is_ok());
    }
    assert_eq!(files.step(20), ["lost", "lost", "333"]);
    // Opened and not changed: nothing is lost, whatever becomes of the name.
    drop(fs::OpenOptions::new().append(true).open(files.path("latest")).unwrap());
    assert_eq!(files.step(0), [""; 0]);
    fs::remove_file(files.path("latest")).unwrap();
    assert_eq!(files.step(20), [""; 0]);
    assert_eq!(files.finish(), (vec![], 0));
}

#[test]
fn a_file_that_is_open_again_is_not_read() {
    let Some(mut files) = Setup::new("", &[]) else { return };
    files.write("a", "complete");
    assert!(files.reader.take_changes().is_ok());
    let mut open = files.open("a", "ha");
    assert_eq!(files.step(20), ["lost"], "neither the version that is gone nor half of the next one");
    open.write_all(b"lf").unwrap();
    drop(open);
    assert_eq!(files.step(20), ["half"]);
    // The name was open again before the first report was taken.
    files.write("b", "complete");
    let open = files.open("b", "half");
    assert_eq!(files.step(20), [""; 0]);
    drop(open);
    assert_eq!(files.step(20), ["half"]);
    assert_eq!(files.finish(), (vec![], 0));
    let remarks = files.decoder.remarks();
    assert!(
        remarks.iter().any(|remark| remark.contains("after they were closed or moved in: 1")),
        "{remarks:?}"
    );
}

#[test]
fn a_complete_version_is_read_while_the_file_is_open_and_unchanged() {
    let Some(mut files) = Setup::new("", &[]) else { return };
    files.write("a", "first");
    assert!(files.reader.take_changes().is_ok());
    let mut open = fs::OpenOptions::new().append(true).open(files.path("a")).unwrap();
    assert_eq!(files.step(20), ["first"]);
    open.write_all(b" and more").unwrap();
    assert_eq!(files.step(20), [""; 0]);
    drop(open);
    assert_eq!(files.step(20), ["first and more"]);
    assert_eq!(files.finish(), (vec![], 0));
}

#[test]
fn a_file_whose_time_is_set_after_it_was_closed_is_not_lost() {
    let Some(mut files) = Setup::new("", &[]) else { return };
    files.write("copied", "content");
    assert!(files.reader.take_changes().is_ok());
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    // By a descriptor that cannot write, as by the name.
    File::open(files.path("copied")).unwrap().set_modified(time).unwrap();
    assert_eq!(files.step(20), ["content"]);
    assert_eq!(files.finish(), (vec![], 0));
}

#[test]
fn files_that_are_open_at_the_end_are_rejected() {
    let Some(mut files) = Setup::new("", &["existing", "log"]) else { return };
    files.write("recorded", "1");
    assert_eq!(files.step(20), ["1"]);
    let _new = files.open("new", "half");
    let _again = files.open("recorded", "half");
    let append = |name| fs::OpenOptions::new().append(true).open(files.path(name)).unwrap();
    let mut existing = append("existing");
    existing.write_all(b" and more").unwrap();
    // Not wanted, and not changed.
    let _hidden = files.open(".hidden", "half");
    let _unchanged = append("log");
    assert_eq!(files.step(20), [""; 0]);
    files.write("last", "2");
    assert_eq!(files.finish(), (vec!["2".to_owned()], 3));
}

#[test]
fn a_file_that_is_renamed_while_it_is_open_is_read_when_it_is_closed() {
    let Some(mut files) = Setup::new("", &[]) else { return };
    let mut open = files.open("a.tmp", "ha");
    fs::rename(files.path("a.tmp"), files.path("a")).unwrap();
    assert_eq!(files.step(20), [""; 0]);
    open.write_all(b"lf").unwrap();
    drop(open);
    assert_eq!(files.step(20), ["half"]);
    // Not closed.
    let _open = files.open("b.tmp", "half");
    fs::rename(files.path("b.tmp"), files.path("b")).unwrap();
    assert_eq!(files.finish(), (vec![], 1));
}

#[test]
fn a_change_under_another_name_is_found_at_the_end() {
    let Some(mut files) = Setup::new("", &[]) else { return };
    let place = tempfile::tempdir_in(files.place.path().parent().unwrap()).unwrap();
    let elsewhere = place.path().join("elsewhere");
    fs::write(&elsewhere, "first").unwrap();
    fs::hard_link(&elsewhere, files.path("link")).unwrap();
    assert_eq!(files.step(20), ["first"]);
    fs::write(&elsewhere, "second version").unwrap();
    assert_eq!(files.step(20), [""; 0]);
    assert_eq!(files.finish(), (vec!["second version".to_owned()], 0));
}

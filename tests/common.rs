//! Helpers of all end-to-end tests.
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use keepup_testkit::disk::serve_if_asked;
use keepup_testkit::{Program, Run, free_directory};
use mcap::records::Record;
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
use serde_json::Value;

/// Held by tests that keep processors or the disk busy. Other tests mostly wait, and run beside them.
static BUSY: Mutex<()> = Mutex::new(());

/// Temporary directory of a test, on the disk of the build.
pub(crate) struct TestDirectory {
    directory: tempfile::TempDir,
    since: Instant,
    /// Name of the test.
    test: String,
    _busy: Option<MutexGuard<'static, ()>>,
}

/// The text with single spaces, independent of line breaks and columns.
pub(crate) fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Environment variable: file to which each test appends its duration in seconds and its name.
const TIMES: &str = "KEEPUP_TEST_TIMES";

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let Some(file) = std::env::var_os(TIMES) else { return };
        let line = format!("{:.1} {}\n", self.since.elapsed().as_secs_f64(), self.test);
        let file = std::fs::File::options().append(true).create(true).open(file);
        file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
    }
}

impl TestDirectory {
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// A directory for a test that mostly waits.
pub(crate) fn directory() -> TestDirectory {
    create(None)
}

/// A directory for a test that keeps the machine busy, or measures. One such test runs at a time.
pub(crate) fn busy_directory() -> TestDirectory {
    create(Some(BUSY.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn create(busy: Option<MutexGuard<'static, ()>>) -> TestDirectory {
    let directory = free_directory(env!("CARGO_TARGET_TMPDIR"));
    // The test harness names each thread after its test.
    let test = std::thread::current().name().unwrap_or("?").to_owned();
    TestDirectory { directory, since: Instant::now(), test, _busy: busy }
}

/// Number of intake threads of every recorder that a test starts, from the environment.
pub(crate) fn intake_threads() -> usize {
    let given = std::env::var("KEEPUP_TEST_INTAKE_THREADS").ok();
    given.map_or(1, |threads| threads.parse().unwrap())
}

/// Starts keepup.
pub(crate) fn start(directory: &Path, arguments: &[&str]) -> Program {
    let arguments = with_intake_threads(arguments, intake_threads());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Program::start(env!("CARGO_BIN_EXE_keepup"), &arguments, directory)
}

/// The arguments of a recorder with this many intake threads, each with all the memory that one would have.
fn with_intake_threads(arguments: &[&str], threads: usize) -> Vec<String> {
    let mut all: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
    if threads == 1 || arguments.first() != Some(&"record") || arguments.contains(&"--intake-threads") {
        return all;
    }
    for at in 1..all.len() {
        if all[at - 1] == "--pool"
            && let Some(mebibytes) = all[at].strip_suffix("MiB").and_then(|n| n.trim().parse::<usize>().ok())
        {
            all[at] = format!("{} MiB", mebibytes * threads);
        }
    }
    all.extend(["--intake-threads".to_owned(), threads.to_string()]);
    all
}

/// Runs keepup and waits for its end.
pub(crate) fn keepup(directory: &Path, arguments: &[&str]) -> Run {
    start(directory, arguments).wait()
}

/// A recorder with small files and little memory, listening on a free port.
pub(crate) fn recorder(directory: &Path, volumes: &[&str], more: &[&str]) -> Program {
    let mut arguments = vec!["record", "--listen", "127.0.0.1:0", "--name", "run", "--json"];
    arguments.extend(["--pool", "64 MiB", "--segment", "32 MiB"]);
    for volume in volumes {
        std::fs::create_dir_all(directory.join(volume)).unwrap();
        arguments.extend(["--volume", volume]);
    }
    arguments.extend(more);
    start(directory, &arguments)
}

/// JSON output of a run.
pub(crate) fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {run:#?}"))
}

/// Stores a sample as the result `name` below `here/results`. Returns its directory.
pub(crate) fn stored(here: &Path, name: &str, sample: &str) -> PathBuf {
    let directory = here.join("results").join(name);
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(".keepup-result"), "x\n").unwrap();
    std::fs::write(directory.join("events.jsonl"), "").unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/samples");
    std::fs::copy(samples.join(sample), directory.join("result.json")).unwrap();
    directory
}

/// The only stored result below `results`.
pub(crate) fn kept(results: &Path) -> Value {
    let mut directories = std::fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path());
    let (first, second) = (directories.next().unwrap(), directories.next());
    assert_eq!(second, None);
    serde_json::from_slice(&std::fs::read(first.join("result.json")).unwrap()).unwrap()
}

/// Events and bytes of a count.
pub(crate) fn count(value: &Value) -> (u64, u64) {
    (number(value, "events"), number(value, "bytes"))
}

/// Events of a count whose bytes may be unknown.
pub(crate) fn events(value: &Value) -> u64 {
    number(value, "events")
}

pub(crate) fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// Verifies a recording, which must be intact. Returns events and bytes of all streams.
pub(crate) fn verified(directory: &Path, recording: &str) -> (u64, u64) {
    let run = keepup(directory, &["verify", recording, "--json"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    recorded(&json(&run))
}

/// Events and bytes in a report of `verify`.
pub(crate) fn recorded(report: &Value) -> (u64, u64) {
    let streams = report["streams"].as_object().unwrap();
    streams.values().fold((0, 0), |sum, stream| {
        let (events, bytes) = count(&stream["recorded"]);
        (sum.0 + events, sum.1 + bytes)
    })
}

/// The segments of a recording, in order.
pub(crate) fn segments(recording: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(recording).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "mcap"));
    files.sort();
    files
}

/// Messages and payload bytes that the `mcap` crate reads up to the end or the first damage.
pub(crate) fn mcap_messages(bytes: &[u8]) -> (u64, u64) {
    // Without a check of each chunk first, the crate's arithmetic overflows in one that was written in part.
    let options = LinearReaderOptions::default().with_skip_end_magic(true).with_prevalidate_chunk_crcs(true);
    let mut reader = LinearReader::new_with_options(options);
    let (mut unread, mut count, mut payload) = (bytes, 0, 0);
    while let Some(Ok(event)) = reader.next_event() {
        match event {
            LinearReadEvent::ReadRequest(wanted) => {
                let read = unread.read(reader.insert(wanted)).unwrap();
                reader.notify_read(read);
            }
            LinearReadEvent::Record { opcode, data } => {
                if let Ok(Record::Message { data, .. }) = mcap::parse_record(opcode, data) {
                    (count, payload) = (count + 1, payload + data.len() as u64);
                }
            }
        }
    }
    (count, payload)
}

/// Writes a file that only its owner can read.
pub(crate) fn secret_file(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Waits for a condition, up to the time limit of a test.
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Fills `disk`, including space freed meanwhile, until `program` has ended.
pub(crate) fn keep_disk_full(disk: &Path, program: Program) -> Run {
    let mut others = std::fs::File::create(disk.join("others")).unwrap();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let piece = vec![1; 256 << 10];
            while !has_ended.load(Ordering::Relaxed) {
                // Take freed space at once.
                if others.write_all(&piece).is_err() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        let run = program.wait();
        has_ended.store(true, Ordering::Relaxed);
        run
    })
}

/// Name of the test that acts as the file server of faulty disks.
pub(crate) const FILE_SERVER: &str = "common::file_server";

/// Server of a faulty disk. Other tests start it as a separate process.
#[test]
#[ignore = "the file server of the other tests"]
fn file_server() {
    serve_if_asked();
}

/// Result of a qualification, whose exit code must match its verdict.
pub(crate) fn qualified(run: &Run) -> Value {
    let found = json(run);
    let codes: &[i32] = match found["verdict"].as_str().unwrap_or_default() {
        "FIT" => &[0],
        "FIT WITH LIMITS" => &[6],
        "NOT FIT" => &[1],
        // Limited by the machine or by a slow source.
        "INCONCLUSIVE" => &[5, 4],
        other => panic!("no verdict {other:?}: {found:#}"),
    };
    assert!(codes.contains(&run.code()), "{run:#?}");
    found
}

/// Whether a result below `results` has an event of this kind.
pub(crate) fn has_event(results: &Path, kind: &str) -> bool {
    let results = std::fs::read_dir(results).into_iter().flatten().flatten();
    let logs = results.map(|entry| std::fs::read_to_string(entry.path().join("events.jsonl")));
    logs.flatten().any(|log| log.contains(&format!("\"event\":\"{kind}\"")))
}

/// Status and body of a response.
pub(crate) fn get(page: &str, path: &str, lines: &str) -> (u16, String) {
    let address = page.split('/').next().unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{lines}\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

//! Programs that work, fail, hang and are slow.
use keepup_measure::clock::SystemClock;

use super::*;

/// A directory with a script.
struct Scene {
    place: tempfile::TempDir,
    script: PathBuf,
}

impl Scene {
    fn new(script: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("hook");
        std::fs::write(&path, format!("#!/bin/sh\ncd {}\n{script}\n", place.path().display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { place, script: path }
    }

    /// Runs the script for `segments` segments.
    fn run(&self, segments: u32, timeout: Duration, jobs: usize) -> (CommandCounts, Incidents) {
        let command = format!("{} one two", self.script.display());
        let hook = AfterSeal::parse(&command, &[], timeout, jobs).unwrap();
        let (notifier, runner) = SealRunner::start(hook, Id([7; 16]), Arc::new(SystemClock)).unwrap();
        for index in 0..segments {
            let path = self.place.path().join(format!("segment-{index}"));
            notifier.sealed(SealedFile { path, volume: 3, index, bytes: 4096 });
        }
        drop(notifier);
        runner.join().unwrap()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.place.path().join(name)).unwrap_or_default()
    }
}

const LONG: Duration = Duration::from_secs(60);

fn counts(succeeded: u64, failed: u64, skipped: u64) -> CommandCounts {
    CommandCounts { succeeded, failed, skipped }
}

#[test]
fn a_program_gets_the_segment_in_arguments_and_environment() {
    let scene = Scene::new(
        "echo \"$1 $2 $3 $KEEPUP_SEGMENT $KEEPUP_DIRECTORY $KEEPUP_RECORDING $KEEPUP_VOLUME \
         $KEEPUP_SEGMENT_NUMBER $KEEPUP_SEGMENT_BYTES\" >>out",
    );
    let (found, incidents) = scene.run(1, LONG, 2);
    assert_eq!((found, incidents.total), (counts(1, 0, 0), 0), "{incidents:?}");
    let (dir, id) = (scene.place.path().display(), "07".repeat(16));
    assert_eq!(scene.read("out"), format!("one two {dir}/segment-0 {dir}/segment-0 {dir} {id} 3 0 4096\n"));
}

#[test]
fn a_failure_is_an_incident_with_the_end_of_stderr() {
    let scene =
        Scene::new("head -c 200000 /dev/zero | tr '\\0' x >&2; printf 'no \\033[2Jspace\\nleft' >&2; exit 3");
    let (found, incidents) = scene.run(2, LONG, 1);
    assert_eq!((found, incidents.total), (counts(0, 2, 0), 2));
    let what = &incidents.listed[0];
    assert!(what.contains("segment-0: exit status: 3; stderr: xxx"), "{what}");
    assert!(what.ends_with("no \\u{1b}[2Jspace; left") && what.len() < 2 * STDERR_KEPT, "{what}");
}

#[test]
fn a_program_that_hangs_is_killed_with_its_children() {
    let scene = Scene::new("sleep 1000 & echo $! >child; wait");
    let (found, incidents) = scene.run(1, Duration::from_millis(500), 1);
    assert_eq!(found, counts(0, 1, 0));
    assert!(incidents.listed[0].contains("it took longer than 0.5 s"), "{incidents:?}");
    let child = scene.read("child").trim().to_owned();
    let state = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    let is_gone = || state().is_empty() || state().contains(") Z ");
    while !is_gone() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn no_more_programs_run_than_allowed() {
    let scene = Scene::new("mkdir running.$$; ls -d running.* | wc -l >>seen; sleep 0.05; rmdir running.$$");
    let (found, _) = scene.run(12, LONG, 3);
    assert_eq!(found, counts(12, 0, 0));
    let most = scene.read("seen").lines().map(|line| line.trim().parse::<u32>().unwrap()).max();
    assert!(most.is_some_and(|most| most <= 3), "{most:?}");
}

#[test]
fn a_slow_program_skips_segments_and_ends_within_the_limit() {
    let scene = Scene::new("sleep 1000");
    let segments = QUEUE_MAX as u32 + 10;
    let (found, incidents) = scene.run(segments, Duration::from_millis(300), 1);
    assert_eq!(found.failed + found.skipped, u64::from(segments));
    assert!(found.failed >= 1 && found.skipped > 1000, "{found:?}");
    let skipped = |why: &str| {
        let one = incidents.listed.iter().find(|what| what.ends_with(why)).map_or("", String::as_str);
        let count = one.split_once("was not run for ").and_then(|(_, rest)| rest.split_once(' '));
        count.map_or(0, |(count, _)| count.parse::<u64>().unwrap())
    };
    let (by_keepers, at_the_end) = (
        skipped("because it is slower than the recording"),
        skipped("that still waited 0.3 s after the end of the recording"),
    );
    assert_eq!(by_keepers + at_the_end, found.skipped, "{incidents:?}");
    assert!(by_keepers <= 10 && at_the_end >= 1000, "{incidents:?}");
}

#[test]
fn a_program_that_the_end_of_the_recording_kills_is_not_called_slow() {
    let scene = Scene::new("touch started.$$; sleep 1000");
    let hook = AfterSeal::parse(&scene.script.display().to_string(), &[], LONG, 1).unwrap();
    let (_queue, inbox) = sync_channel(1);
    let is_over = Arc::new(AtomicBool::new(true));
    let mut runs = Runs::new(hook, Id([7; 16]), Arc::new(SystemClock), inbox, is_over);
    runs.begin(SealedFile { path: "/x/segment-0".into(), volume: 0, index: 0, bytes: 1 });
    let now_ns = SystemClock.now_ns();
    runs.deadline_ns = Some(now_ns);
    while !runs.running.is_empty() {
        runs.watch(now_ns);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(runs.counts, counts(0, 1, 0));
    let what = &runs.incidents.listed[0];
    assert!(what.contains("killed 60 s after the end of the recording"), "{what}");
}

#[test]
fn a_program_that_cannot_be_killed_keeps_its_slot() {
    let scene = Scene::new("echo run >>out");
    let hook = AfterSeal::parse(&scene.script.display().to_string(), &[], LONG, 1).unwrap();
    let (queue, inbox) = sync_channel(1);
    let mut runs = Runs::new(hook, Id([7; 16]), Arc::new(SystemClock), inbox, Arc::default());
    runs.stuck.push(Command::new("sleep").arg("1000").spawn().unwrap());
    let stuck = Pid::from_child(&runs.stuck[0]);
    let path = scene.place.path().join("segment-0");
    queue.send(SealedFile { path, volume: 0, index: 0, bytes: 1 }).unwrap();
    drop(queue);
    let work = std::thread::spawn(move || {
        runs.run();
        (runs.counts, runs.stuck.len())
    });
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(scene.read("out"), "", "the only slot is in use");
    rustix::process::kill_process(stuck, Signal::KILL).unwrap();
    assert_eq!(work.join().unwrap(), (counts(1, 0, 0), 0));
    assert_eq!(scene.read("out"), "run\n");
}

#[test]
fn a_slot_that_stays_in_use_does_not_delay_the_end_beyond_the_limit() {
    let scene = Scene::new("echo run >>out");
    let limit = Duration::from_millis(300);
    let hook = AfterSeal::parse(&scene.script.display().to_string(), &[], limit, 1).unwrap();
    let (queue, inbox) = sync_channel(1);
    let is_over = Arc::new(AtomicBool::new(true));
    let mut runs = Runs::new(hook, Id([7; 16]), Arc::new(SystemClock), inbox, is_over);
    runs.stuck.push(Command::new("sleep").arg("1000").spawn().unwrap());
    queue.send(SealedFile { path: "/x/segment-0".into(), volume: 0, index: 0, bytes: 1 }).unwrap();
    drop(queue);
    runs.run();
    assert_eq!((runs.counts, runs.stuck.len()), (counts(0, 0, 1), 1));
    let mut stuck = runs.stuck.pop().unwrap();
    stuck.kill().unwrap();
    stuck.wait().unwrap();
}

#[test]
fn programs_are_the_first_to_go_when_memory_is_short() {
    let scene = Scene::new("sleep 0.3; cat /proc/$$/oom_score_adj >>out");
    assert_eq!(scene.run(1, LONG, 1).0, counts(1, 0, 0));
    assert_eq!(scene.read("out"), "1000\n");
}

#[test]
fn a_program_must_exist() {
    let scene = Scene::new("exit 0");
    let parse = |text: &str, search: &[PathBuf]| AfterSeal::parse(text, search, LONG, 1);
    let search = [PathBuf::from("/nowhere"), scene.place.path().to_path_buf()];
    let found = parse(" hook  a\tb ", &search).unwrap();
    assert_eq!(
        (found.program, found.arguments),
        (scene.script.clone(), vec!["a".to_owned(), "b".to_owned()])
    );
    std::fs::set_permissions(&scene.script, std::fs::Permissions::from_mode(0o644)).unwrap();
    for text in ["", "  ", "hook", "/nowhere/hook", "/"] {
        assert!(parse(text, &search).is_err(), "{text:?}");
    }
}

#[test]
fn a_program_that_disappears_is_an_incident() {
    let scene = Scene::new("exit 0");
    let hook = AfterSeal::parse(&scene.script.display().to_string(), &[], LONG, 1).unwrap();
    std::fs::remove_file(&scene.script).unwrap();
    let (notifier, runner) = SealRunner::start(hook, Id([7; 16]), Arc::new(SystemClock)).unwrap();
    notifier.sealed(SealedFile { path: "/x/segment-0".into(), volume: 0, index: 0, bytes: 1 });
    drop(notifier);
    let (found, incidents) = runner.join().unwrap();
    assert_eq!(found, counts(0, 1, 0));
    assert!(incidents.listed[0].contains("for /x/segment-0: cannot start it: "), "{incidents:?}");
}

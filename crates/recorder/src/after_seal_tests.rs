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
    let last = incidents.listed.last().unwrap();
    assert!(last.contains(&format!("was not run for {} segments", found.skipped)), "{last}");
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

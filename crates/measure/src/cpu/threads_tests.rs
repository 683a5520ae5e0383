//! Thread accounting from made-up /proc files and from this very process.

use std::fs;

use proptest::prelude::*;

use super::*;

const STAT: &str = "4711 (ku writer (2)) S 1 1 1 0 -1 4194304 10 0 0 0 123 45 0 0 20 0 4 0 5 6 7\n";

#[test]
fn a_name_may_hold_parentheses_and_blanks() {
    let thread = parse_thread(4711, STAT, Some("1700000000 250000 9\n"), 100).unwrap();
    let expected = ThreadStat {
        id: 4711,
        name: "ku writer (2)".into(),
        run_ns: 1_700_000_000,
        system_ns: 450_000_000,
        run_delay_ns: Some(250_000),
    };
    assert_eq!(thread, expected);
}

#[test]
fn without_schedstat_ticks_must_do() {
    let thread = parse_thread(1, STAT, None, 100).unwrap();
    assert_eq!((thread.run_ns, thread.run_delay_ns), (1_680_000_000, None));
}

#[test]
fn a_tree_of_threads_is_read_in_order_and_odd_entries_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    for (id, stat) in [("10", STAT), ("9", STAT), ("11", "garbage"), ("self", STAT)] {
        let task = root.path().join("proc/self/task").join(id);
        fs::create_dir_all(&task).unwrap();
        fs::write(task.join("stat"), stat).unwrap();
    }
    let threads = ThreadStat::read_all(root.path()).unwrap();
    assert_eq!(threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [9, 10]);
}

#[test]
fn a_missing_proc_is_an_error_that_names_the_path() {
    let root = tempfile::tempdir().unwrap();
    let error = ThreadStat::read_all(root.path()).unwrap_err().to_string();
    assert!(error.contains("proc/self/task"), "{error}");
}

#[test]
fn this_process_shows_a_thread_by_its_name() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (ready, started) = std::sync::mpsc::channel();
    let work = move || {
        ready.send(()).unwrap();
        let _ = wait.recv();
    };
    let thread = std::thread::Builder::new().name("ku-test-thread".into()).spawn(work).unwrap();
    started.recv().unwrap();
    let names: Vec<String> =
        ThreadStat::read_all(Path::new("/")).unwrap().into_iter().map(|thread| thread.name).collect();
    drop(go);
    thread.join().unwrap();
    assert!(names.iter().any(|name| name == "ku-test-thread"), "{names:?}");
}

fn stat(id: u32, name: &str, run_ns: u64, run_delay_ns: Option<u64>) -> ThreadStat {
    ThreadStat { id, name: name.into(), run_ns, system_ns: run_ns / 2, run_delay_ns }
}

#[test]
fn usage_is_summed_by_name() {
    let before =
        [stat(1, "writer", 100, Some(10)), stat(2, "writer", 1_000, Some(0)), stat(3, "gone", 7, None)];
    let after = [
        stat(1, "writer", 150, Some(30)),
        // The same number with less time used: another thread has it now.
        stat(2, "writer", 40, Some(4)),
        stat(4, "intake", 9, None),
    ];
    let usage = thread_usage(&before, &after);
    let short: Vec<_> =
        usage.iter().map(|u| (u.name.as_str(), u.threads, u.run_ns, u.system_ns, u.run_delay_ns)).collect();
    assert_eq!(short, [("intake", 1, 9, 4, None), ("writer", 2, 90, 45, Some(24))]);
}

proptest! {
    #[test]
    fn any_text_is_survived(stat in ".*", schedstat in prop::option::of(".*"), ticks in any::<u64>()) {
        parse_thread(1, &stat, schedstat.as_deref(), ticks);
    }

    #[test]
    fn any_numbers_are_survived(numbers in prop::collection::vec(any::<u64>(), 0..30)) {
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        parse_thread(1, &format!("1 (a) {}", numbers.join(" ")), Some(&numbers.join(" ")), 100);
    }
}

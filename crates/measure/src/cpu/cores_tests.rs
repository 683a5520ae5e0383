//! Core accounting from the kernel's text.

use proptest::prelude::*;

use super::*;

const BEFORE: &str = "cpu  300 0 0 0 0 0 0 0 0 0\ncpu0 100 0 50 800 20 1 9 5 0 0\n\
                      cpu1 100 0 0 900 0 0 0 0 0 0\nintr 5 0\nctxt 1\n";
const AFTER: &str = "cpu  300 0 0 0 0 0 0 0 0 0\ncpu0 120 10 60 830 15 2 29 14 20 0\n\
                     cpu2 1 1 1 1 1 1 1 1 1 1\ncpu1 100 0 0 900 0 0 0 0 0 0\n";

/// Cores read at a given time, ns since boot.
fn read(text: &str, read_ns: u64) -> Vec<CoreTimes> {
    let mut cores = parse_core_times(text, 100);
    cores.iter_mut().for_each(|core| core.read_ns = read_ns);
    cores
}

#[test]
fn per_cent_of_the_time_between_two_readings() {
    let usage = core_usage(&read(BEFORE, 1_000_000_000), &read(AFTER, 2_000_000_000));
    // Core 2 has no earlier reading. On core 0: user 20 + nice 10, system 10, irq 1, softirq 20,
    // steal 9, idle 30; iowait decreased and counts as 0. Core 1 shows no ticks.
    let of = |core, busy_percent| CoreUsage {
        core,
        busy_percent,
        user_percent: 0.0,
        system_percent: 0.0,
        irq_percent: 0.0,
        softirq_percent: 0.0,
        steal_percent: 0.0,
    };
    let first = CoreUsage {
        user_percent: 30.0,
        system_percent: 10.0,
        irq_percent: 1.0,
        softirq_percent: 20.0,
        steal_percent: 9.0,
        ..of(0, 70.0)
    };
    assert_eq!(usage, [first, of(1, 100.0)]);
    assert_eq!(core_usage(&read(BEFORE, 7), &read(AFTER, 7)), [], "no time passed");
}

#[test]
fn work_that_no_tick_saw_is_busy_all_the_same() {
    // One second with 900 ms idle, in which one tick hit the work.
    let (before, after) = ("cpu0 100 0 0 0 0 0 0 0\n", "cpu0 101 0 0 90 0 0 0 0\n");
    let usage = core_usage(&read(before, 0), &read(after, 1_000_000_000));
    assert_eq!((usage[0].busy_percent, usage[0].user_percent), (10.0, 1.0));
}

#[test]
fn time_since_boot_is_the_first_number() {
    assert_eq!(parse_uptime("26402.45 15882.73\n"), Some(26_402_450_000_000));
    assert_eq!(parse_uptime("-1 2"), None);
    assert_eq!(parse_uptime("inf 2"), None);
    assert_eq!(parse_uptime(""), None);
}

#[test]
fn ticks_are_kept_as_nanoseconds() {
    let cores = parse_core_times(BEFORE, 100);
    assert_eq!(cores.len(), 2);
    assert_eq!((cores[0].user_ns, cores[0].softirq_ns), (1_000_000_000, 90_000_000));
}

#[test]
fn a_file_without_cores_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("proc")).unwrap();
    std::fs::write(root.path().join("proc/stat"), "cpu  1 2 3\n").unwrap();
    std::fs::write(root.path().join("proc/uptime"), "5.00 6.00\n").unwrap();
    let error = CoreTimes::read_all(root.path()).unwrap_err().to_string();
    assert!(error.ends_with("it lists no core"), "{error}");
}

#[test]
fn this_machine_has_a_core() {
    assert!(!CoreTimes::read_all(Path::new("/")).unwrap().is_empty());
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "(cpu[0-9]{0,3}( [0-9]{1,25}){0,12}\n?|.)*", ticks in any::<u64>()) {
        let cores = parse_core_times(&text, ticks);
        for usage in core_usage(&cores, &cores) {
            prop_assert!(usage.busy_percent.is_finite());
        }
    }
}

#[test]
fn interrupts_are_the_first_number_of_their_line() {
    assert_eq!(parse_interrupts("cpu  1 2 3\nintr 4711 1 0 0\nctxt 5\n"), Some(4711));
    assert_eq!(parse_interrupts("intr\n"), None);
    assert_eq!(parse_interrupts("intr x\n"), None);
    assert!(interrupts(Path::new("/")).is_some_and(|count| count > 0));
}

//! Core accounting from the kernel's text.

use proptest::prelude::*;

use super::*;

const BEFORE: &str = "cpu  300 0 0 0 0 0 0 0 0 0\ncpu0 100 0 50 800 20 1 9 5 0 0\n\
                      cpu1 100 0 0 900 0 0 0 0 0 0\nintr 5 0\nctxt 1\n";
const AFTER: &str = "cpu  300 0 0 0 0 0 0 0 0 0\ncpu0 120 10 60 830 15 2 29 14 20 0\n\
                     cpu2 1 1 1 1 1 1 1 1 1 1\ncpu1 100 0 0 900 0 0 0 0 0 0\n";

#[test]
fn per_cent_of_the_time_between_two_readings() {
    let usage = core_usage(&parse_core_times(BEFORE, 100), &parse_core_times(AFTER, 100));
    // Core 1 shows no passage of time, core 2 has no earlier reading. On core 0, 100 ticks passed:
    // user 20 + nice 10, system 10, irq 1, softirq 20, steal 9, idle 30; iowait ran backwards and counts as
    // 0.
    let expected = CoreUsage {
        core: 0,
        busy_percent: 61.0,
        user_percent: 30.0,
        system_percent: 10.0,
        irq_percent: 1.0,
        softirq_percent: 20.0,
        steal_percent: 9.0,
    };
    assert_eq!(usage, [expected]);
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

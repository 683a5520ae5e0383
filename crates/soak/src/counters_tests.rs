//! Combination of error counters from three moments.
use super::*;

fn counter(name: &str, value: Option<u64>) -> ErrorCounter {
    ErrorCounter { name: name.into(), value }
}

#[test]
fn a_counter_that_comes_or_goes_has_no_value_there() {
    let first = [counter("a", Some(1)), counter("b", None)];
    let before = [counter("a", Some(2)), counter("c", Some(0))];
    let after = [counter("c", Some(5)), counter("a", Some(4))];
    let rows = compared(&first, &before, &after);
    let listed: Vec<_> =
        rows.iter().map(|row| (row.name.as_str(), row.first, row.before, row.after)).collect();
    let expected = [("a", Some(1), Some(2), Some(4)), ("b", None, None, None), ("c", None, Some(0), Some(5))];
    assert_eq!(listed, expected);
}

#[test]
fn each_counter_of_this_machine_comes_once() {
    let here = std::env::temp_dir();
    let found = counters(&[here.clone(), here]);
    let names: BTreeSet<&str> = found.iter().map(|counter| counter.name.as_str()).collect();
    assert_eq!(names.len(), found.len());
    assert!(found.iter().any(|counter| counter.name.starts_with("memory")), "{found:?}");
}

#[test]
fn a_program_that_does_not_answer_is_not_waited_for() {
    let shell = |line: &str, ms| printed(Command::new("sh").args(["-c", line]), Duration::from_millis(ms));
    assert_eq!(shell("echo account; exit 3", 60_000).as_deref(), Some("account\n"));
    assert_eq!(shell("echo half; exec sleep 600", 300), None);
    assert_eq!(printed(&mut Command::new("/no/such/program"), Duration::from_secs(60)), None);
}

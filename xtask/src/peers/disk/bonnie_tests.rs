//! What is read out of bonnie++'s line.

use super::*;

/// As bonnie++ 2.00a printed it, without small files; the name of the machine is changed.
const LINE: &str = "1.98,2.00a,vm,1,1795264893,2G,,8192,5,,,351244,35,274016,86,,,+++++,+++,8697,87,\
                    ,,,,,,,,,,,,,,,,,,7021us,15294us,,763us,8105us,,,,,,\n";

#[test]
fn rates_become_bytes_and_seconds() {
    let phases = phases(LINE, 2 << 30, false).unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase.phase.as_str()).collect();
    assert_eq!(names, ["write", "rewrite", "seeks"], "reading was too fast");
    assert_eq!(phases[0].bytes, 2 << 30);
    let rate = phases[0].bytes as f64 / phases[0].seconds;
    assert!((rate - 351_244.0 * 1024.0).abs() < 1.0, "{rate}");
    let share = phases[0].billed_ns.unwrap() as f64 / 1e9 / phases[0].seconds;
    assert!((share - 0.35).abs() < 1e-6, "{share}");
    assert_eq!((phases[2].bytes, phases[2].events, phases[2].seconds), (0, Some(8697), 1.0));
}

#[test]
fn of_a_direct_run_only_the_write_counts() {
    let phases = phases(LINE, 2 << 30, true).unwrap();
    assert_eq!(phases.iter().map(|phase| phase.phase.as_str()).collect::<Vec<_>>(), ["write"]);
}

#[test]
fn other_formats_are_refused() {
    let why = phases("1.97,1.98,vm\n", 1, false).unwrap_err().to_string();
    assert!(why.contains("1.97"), "{why}");
    assert!(phases("", 1, false).is_err());
    assert!(phases("1.98,2.00a,vm\n", 1, false).unwrap().is_empty());
}

#[test]
fn sizes_and_access_are_told() {
    let cached = program("b", 2 << 30, 8 << 10, false).shown();
    assert!(cached.starts_with("`bonnie++ -q -f -n 0 -d . -r 16 -s 2048:8192"), "{cached}");
    assert!(!cached.contains("-D") && program("b", 2 << 30, 8 << 10, true).shown().contains(" -D"));
}

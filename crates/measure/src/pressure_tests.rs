//! Pressure from the kernel's text, and its absence.

use proptest::prelude::*;

use super::*;

const IO: &str = "some avg10=0.24 avg60=0.08 avg300=0.12 total=4403818\n\
                  full avg10=0.20 avg60=0.07 avg300=0.11 total=4180852\n";

#[test]
fn both_lines_are_read() {
    let pressure = parse_pressure(IO).unwrap();
    let some = Stall { avg10_percent: 0.24, avg60_percent: 0.08, avg300_percent: 0.12, total_us: 4_403_818 };
    assert_eq!(pressure.some, some);
    assert_eq!(pressure.full.unwrap().total_us, 4_180_852);
}

#[test]
fn old_kernels_have_no_full_line_for_the_processor() {
    let only_some = IO.lines().next().unwrap();
    assert_eq!(parse_pressure(only_some).unwrap().full, None);
}

#[test]
fn share_of_the_time_between_two_readings() {
    let before = parse_pressure(IO).unwrap().some;
    let after = Stall { total_us: before.total_us + 25_000, ..before };
    assert_eq!(after.percent_since(&before, 100_000_000), 25.0);
    assert_eq!(before.percent_since(&after, 100_000_000), 0.0);
    assert_eq!(after.percent_since(&before, 0), 0.0);
}

#[test]
fn a_kernel_without_it_gives_nothing() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(Pressure::read(root.path()), Pressure::default());
    std::fs::create_dir_all(root.path().join("proc/pressure")).unwrap();
    std::fs::write(root.path().join("proc/pressure/io"), IO).unwrap();
    let pressure = Pressure::read(root.path());
    assert_eq!(pressure.io, parse_pressure(IO));
    assert_eq!(pressure.cpu, None);
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "((some|full) (avg10|avg60|avg300|total)=.*\n?|.)*") {
        parse_pressure(&text);
    }
}

//! Facts about the system clock of a host: its source, whether and by what it is synchronised.
use std::collections::BTreeSet;
use std::path::Path;

use keepup_results::ClockFacts;
use keepup_sys::timekeeping::ClockDiscipline;

use super::first_line::first_line;

/// Programs that synchronise clocks, by the name of their process, which the kernel cuts to 15 characters.
const PROGRAMS: [(&str, &str); 8] = [
    ("chronyd", "chronyd"),
    ("ntpd", "ntpd"),
    ("ntpd-rs-daemon", "ntpd-rs"),
    ("ntp-daemon", "ntpd-rs"),
    ("systemd-timesyn", "systemd-timesyncd"),
    ("ptp4l", "ptp4l"),
    ("phc2sys", "phc2sys"),
    ("timemaster", "timemaster"),
];
/// Directory of the PTP hardware clocks.
const HARDWARE_CLOCKS: &str = "sys/class/ptp";
const SOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Collects the facts below `root`, with what the kernel says about the error of the clock.
pub(super) fn collect(root: &Path, discipline: Option<ClockDiscipline>) -> ClockFacts {
    ClockFacts {
        source: first_line(root, SOURCE),
        is_synchronised: discipline.map(|discipline| discipline.is_synchronised),
        error_ns_max: discipline.map(|discipline| discipline.error_ns_max),
        programs: programs(root),
        hardware_clocks: hardware_clocks(root),
    }
}

/// Names of the running programs of [`PROGRAMS`]; none if the processes of other users are hidden.
fn programs(root: &Path) -> Option<Vec<String>> {
    // Every user may read the names, except with the mount option hidepid: then even process 1 is hidden.
    first_line(root, "proc/1/comm")?;
    let mut found = BTreeSet::new();
    for process in std::fs::read_dir(root.join("proc")).ok()?.flatten() {
        let name = process.file_name();
        let Some(id) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) else {
            continue;
        };
        let comm = first_line(root, Path::new("proc").join(id).join("comm"));
        let known = PROGRAMS.iter().find(|(name, _)| comm.as_deref() == Some(name));
        found.extend(known.map(|(_, program)| (*program).to_owned()));
    }
    Some(found.into_iter().collect())
}

/// PTP hardware clocks with their names, such as `ptp0: mlx5_ptp`.
fn hardware_clocks(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join(HARDWARE_CLOCKS)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let described =
        names.map(|name| match first_line(root, Path::new(HARDWARE_CLOCKS).join(&name).join("clock_name")) {
            Some(clock) => format!("{name}: {clock}"),
            None => name,
        });
    let mut clocks: Vec<String> = described.collect();
    clocks.sort();
    clocks
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;

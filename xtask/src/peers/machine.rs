//! Description of the machine of a campaign.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use keepup_measure::environment::{Environment, Reading, Volume};

use super::tools::{Tool, first_line};

/// Name and value.
pub(super) type Row = (String, String);

/// Machine and file system.
pub(super) fn machine(volume: &Path) -> Vec<Row> {
    describe(&Environment::collect(&[PathBuf::from(volume)], Path::new("/")))
}

/// Versions of all programs.
pub(super) fn versions(keepup: &Path, tools: &[&Tool]) -> Vec<Row> {
    let unknown = || "unknown".to_owned();
    let version = first_line(&keepup.to_string_lossy(), &["--version"]).unwrap_or_else(unknown);
    let revision = first_line("git", &["describe", "--always", "--dirty"]).unwrap_or_else(unknown);
    let mut rows = vec![row("keepup", format!("{version}, revision {revision}, release build"))];
    rows.extend(tools.iter().map(|tool| row(tool.program, tool.version())));
    rows.extend(first_line("date", &["-u", "+%F %R UTC"]).map(|date| row("date", date)));
    rows
}

fn row(name: &str, value: impl Into<String>) -> Row {
    (name.to_owned(), value.into())
}

fn describe(environment: &Environment) -> Vec<Row> {
    let cpu = &environment.cpu;
    let memory = &environment.memory;
    let virtual_machine = match environment.machine.virtualised {
        Reading::Value(true) => ", in a virtual machine",
        _ => "",
    };
    let mut rows = vec![
        row(
            "processor",
            format!("{}, {} logical cores{virtual_machine}", shown(&cpu.model), shown(&cpu.logical_cores)),
        ),
        row(
            "memory",
            format!(
                "{}, {} available",
                gigabytes(&memory.total_bytes),
                gigabytes(&environment.moment.available_bytes)
            ),
        ),
        row(
            "huge pages",
            format!(
                "transparent: {}; reserved: {}",
                shown(&memory.transparent_huge_pages),
                shown(&memory.huge_pages)
            ),
        ),
        row("kernel", shown(&environment.kernel.release)),
        row("TCP buffers", format!("receive {}", shown(&environment.network.tcp_rmem))),
        row("load average", load(&environment.moment.load_average)),
    ];
    rows.extend(environment.volumes.iter().map(|volume| row("file system", file_system(volume))));
    rows
}

fn file_system(volume: &Volume) -> String {
    let disks: Vec<String> = volume
        .disks
        .iter()
        .map(|(name, disk)| format!("{name} (write cache: {})", shown(&disk.write_cache)))
        .collect();
    let free = volume.free.value().map_or("unknown".to_owned(), |free| {
        format!("{:.0} GB free, {:.0} % full", free.bytes as f64 / 1e9, free.fill_percent)
    });
    let (fs_type, options) = (shown(&volume.fs_type), shown(&volume.mount_options));
    format!("{fs_type} ({options}) on {}; {free}", disks.join(", "))
}

fn shown<T: Display>(reading: &Reading<T>) -> String {
    match reading {
        Reading::Value(value) => value.to_string(),
        Reading::NotReadable(_) => "unknown".to_owned(),
    }
}

fn gigabytes(reading: &Reading<u64>) -> String {
    reading.value().map_or("unknown".to_owned(), |bytes| format!("{:.1} GB", *bytes as f64 / 1e9))
}

fn load(reading: &Reading<[f64; 3]>) -> String {
    reading
        .value()
        .map_or("unknown".to_owned(), |[one, five, _]| format!("{one:.2} (1 min), {five:.2} (5 min)"))
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;

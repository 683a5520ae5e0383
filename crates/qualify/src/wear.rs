//! Wear of the volumes' disks, and how long their rated endurance lasts. Pure.
use keepup_results::format::seconds;
use keepup_results::{DiskWear, Endurance};
use keepup_workload::wear::VolumeDisks;

/// Wear of the volumes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wear {
    /// Disks whose wear is known, each once.
    pub disks: Vec<DiskWear>,
    /// Rated endurance of the volume whose rating is used up first, if ratings are stated.
    pub endurance: Option<Endurance>,
}

/// How recording at the required rate uses the volumes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Bytes written per second to the volume that gets most; what a drain removes was written too.
    pub written_each: f64,
    /// Length of a run, seconds.
    pub run_seconds: f64,
    /// Continuous recording that the volumes must endure, seconds.
    pub required_seconds: f64,
}

impl Wear {
    /// Wear of `volumes` with the ratings `rated` in bytes written, one for each volume, or none.
    pub fn of(volumes: &[VolumeDisks], rated: &[u64], usage: &Usage) -> Self {
        let mut disks: Vec<DiskWear> = volumes
            .iter()
            .flat_map(|volume| volume.disks.values())
            .filter_map(|d| d.value().cloned())
            .collect();
        disks.sort_by(|a, b| a.disk.cmp(&b.disk));
        disks.dedup_by(|a, b| a.disk == b.disk);
        let each = volumes.iter().zip(rated).map(|(volume, rated)| {
            let path = volume.path.display().to_string();
            endurance(path, *rated, written_bytes(volume, volumes), usage)
        });
        Self { disks, endurance: each.min_by(|a, b| a.seconds.total_cmp(&b.seconds)) }
    }

    /// Sentences on worn disks, and on a rating that is used up too early.
    pub fn limits(&self) -> Vec<String> {
        let short = self.endurance.as_ref().filter(|endurance| endurance.is_short());
        let short = short.map(|endurance| {
            format!("{endurance}; the profile requires {}", seconds(endurance.required_seconds))
        });
        self.disks.iter().filter_map(DiskWear::fault).chain(short).collect()
    }
}

/// How long a rating lasts.
fn endurance(path: String, rated_bytes: u64, written_bytes: Option<u64>, usage: &Usage) -> Endurance {
    let left = rated_bytes.saturating_sub(written_bytes.unwrap_or(0)) as f64;
    let seconds = left / usage.written_each;
    let Usage { run_seconds, required_seconds, .. } = *usage;
    let runs = seconds / run_seconds;
    Endurance { path, rated_bytes, written_bytes, seconds, runs, run_seconds, required_seconds }
}

/// Bytes of the volume's rating that are already written: known if it is the only volume of its only disk.
fn written_bytes(volume: &VolumeDisks, all: &[VolumeDisks]) -> Option<u64> {
    let mut disks = volume.disks.iter();
    let (Some((name, wear)), None) = (disks.next(), disks.next()) else { return None };
    let users = all.iter().filter(|other| other.disks.contains_key(name)).count();
    wear.value().filter(|_| users == 1)?.written_bytes
}

#[cfg(test)]
#[path = "wear_tests.rs"]
mod tests;

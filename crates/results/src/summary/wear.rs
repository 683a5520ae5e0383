//! Wear of disks, and rated endurance of volumes.
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::{bytes, digits, seconds};

/// Wear of a disk, as it reports itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskWear {
    /// Kernel name.
    pub disk: String,
    /// Rated life used, percent: may exceed 100; 255 means 255 or more.
    pub used_percent: u8,
    /// Remaining spare capacity, percent.
    pub spare_percent: u8,
    /// Spare capacity below which the disk warns, percent.
    pub spare_threshold_percent: u8,
    /// The disk warns that its reliability is degraded.
    pub is_degraded: bool,
    /// Data written to it by hosts so far, bytes; null if it does not report this.
    pub written_bytes: Option<u64>,
}

impl DiskWear {
    /// Why the disk counts as worn: its rated life is used, its spare is below its own threshold, or it
    /// warns.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let Self { disk, used_percent, spare_percent, spare_threshold_percent, .. } = self;
        let spare =
            || format!("spare of {spare_percent} %, below its threshold of {spare_threshold_percent} %");
        let faults = [
            (*used_percent >= 100).then(|| format!("{used_percent} % of its rated life used")),
            (spare_percent < spare_threshold_percent).then(spare),
            self.is_degraded.then(|| "degraded reliability".to_owned()),
        ];
        let faults: Vec<String> = faults.into_iter().flatten().collect();
        (!faults.is_empty()).then(|| format!("disk {disk} reports wear: {}", faults.join(", ")))
    }
}

impl fmt::Display for DiskWear {
    /// "nvme0n1: 12 % of its rated life used, spare 100 % (threshold 10 %), 80.0 TB written".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} % of its rated life used, spare {} % (threshold {} %)",
            self.disk, self.used_percent, self.spare_percent, self.spare_threshold_percent
        )?;
        self.written_bytes.map_or(Ok(()), |written| write!(f, ", {} written", bytes(written)))
    }
}

/// Rated endurance of the volume whose rating is used up first, at the required rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endurance {
    /// Directory of the volume.
    pub path: String,
    /// Rating as stated by the user, bytes written.
    pub rated_bytes: u64,
    /// Of it already written, as its only disk reports; null if not known, and not subtracted then.
    pub written_bytes: Option<u64>,
    /// Continuous recording until the rating is used up, seconds.
    pub seconds: f64,
    /// Runs until then.
    pub runs: f64,
    /// Length of a run, seconds.
    pub run_seconds: f64,
    /// Continuous recording that the profile requires (`require.lifetime`, at least one run), seconds.
    pub required_seconds: f64,
}

impl Endurance {
    /// Whether the rating is used up before the recording that the profile requires.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.seconds < self.required_seconds
    }
}

impl fmt::Display for Endurance {
    /// "the rated endurance of /data/a (600 TB, 80.0 TB already written) lasts 75.2 days of continuous
    /// recording at the required rate, 226 runs of 8 h".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = self.written_bytes.map(|written| format!(", {} already written", bytes(written)));
        write!(
            f,
            "the rated endurance of {} ({}{}) lasts {} of continuous recording at the required rate, {} runs \
             of {}",
            self.path,
            bytes(self.rated_bytes),
            written.unwrap_or_default(),
            seconds(self.seconds),
            digits(self.runs),
            seconds(self.run_seconds)
        )
    }
}

//! Configurations of a validation, and their machine files for the model.

use std::path::Path;

use anyhow::{Result, anyhow};

use super::Ceilings;

/// Configuration.
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) volumes: usize,
    /// Throttle rate of each volume, MB/s.
    pub(super) throttle: Option<u32>,
    /// Rate of the link, Mbit/s.
    pub(super) shaping: Option<u32>,
    pub(super) streams: u32,
    pub(super) event: &'static str,
    pub(super) load: Option<Load>,
}

/// Resource of all volumes.
const VOLUMES: &str = "volumes";
/// Bytes in flight on one volume: eight blocks of 1 MiB of the recorder, `--depth` and `record.block` at
/// their defaults; four requests of 64 KiB of a disk load of 20 MB/s (`crates/workload/src/load/disk.rs`).
const RECORDER_IN_FLIGHT: usize = 8 << 20;
const LOAD_IN_FLIGHT: usize = 4 * (64 << 10);

/// Background load.
#[derive(Clone, Copy)]
pub(super) enum Load {
    /// Writes to the first volume, MB/s.
    Disk(u32),
    /// Busy processors.
    Cores(u32),
}

impl Load {
    /// Argument of `--load`.
    pub(super) fn spec(self, volumes: &[&Path]) -> String {
        match self {
            Self::Disk(mb) => {
                let volume = volumes.first().map(|path| path.display().to_string()).unwrap_or_default();
                format!("disk={mb}MB/s@{volume},write,size=256MiB")
            }
            Self::Cores(cores) => format!("cpu={cores}"),
        }
    }
}

const PLAIN: Setting =
    Setting { name: "", volumes: 1, throttle: None, shaping: None, streams: 1, event: "1 MiB", load: None };

/// All configurations.
pub(super) const SETTINGS: &[Setting] = &[
    Setting { name: "1 volume of 60 MB/s", throttle: Some(60), ..PLAIN },
    Setting { name: "2 volumes of 60 MB/s", volumes: 2, throttle: Some(60), ..PLAIN },
    Setting { name: "3 volumes of 60 MB/s", volumes: 3, throttle: Some(60), ..PLAIN },
    Setting { name: "4 volumes of 60 MB/s", volumes: 4, throttle: Some(60), ..PLAIN },
    Setting {
        name: "4 volumes of 60 MB/s, 508 streams",
        volumes: 4,
        throttle: Some(60),
        streams: 508,
        event: "64 KiB",
        ..PLAIN
    },
    Setting {
        name: "4 volumes of 60 MB/s behind 1 Gbit/s",
        volumes: 4,
        throttle: Some(60),
        shaping: Some(1000),
        ..PLAIN
    },
    Setting {
        name: "2 volumes of 60 MB/s behind 1.6 Gbit/s",
        volumes: 2,
        throttle: Some(60),
        shaping: Some(1600),
        ..PLAIN
    },
    Setting {
        name: "1 volume of 200 MB/s behind 400 Mbit/s",
        throttle: Some(200),
        shaping: Some(400),
        ..PLAIN
    },
    Setting {
        name: "1 volume of 60 MB/s with 20 MB/s of other writes",
        throttle: Some(60),
        load: Some(Load::Disk(20)),
        ..PLAIN
    },
    Setting {
        name: "2 volumes of 200 MB/s with a busy core",
        volumes: 2,
        throttle: Some(200),
        load: Some(Load::Cores(1)),
        ..PLAIN
    },
];

impl Setting {
    /// Detector profile, with a low rate.
    pub(super) fn profile(&self) -> String {
        format!(
            "name = \"validation\"\nextends = \"csl-old\"\n[event]\nsize = \"{}\"\n[source]\n\
             rate = \"20 /s\"\nbuffer = \"64 MiB\"\n\
             streams = {}\n[record]\nsegment = \"128 MiB\"\nvolumes = {}\n",
            self.event, self.streams, self.volumes
        )
    }

    /// Machine file for the model, with measured ceilings only.
    pub(super) fn machine(&self, ceilings: &Ceilings) -> Result<String> {
        let at = |known: &[(u32, f64)], wanted: Option<u32>, otherwise: f64| match wanted {
            None => Ok(otherwise),
            Some(wanted) => known
                .iter()
                .find(|(setting, _)| *setting == wanted)
                .map(|(_, rate)| *rate)
                .ok_or_else(|| anyhow!("no ceiling for {wanted}")),
        };
        let volume = at(&ceilings.throttled, self.throttle, ceilings.disk)?;
        let link = at(&ceilings.links, self.shaping, ceilings.loopback)?;
        let measured = |value: f64, unit: &str| {
            let (low, high) = (0.97 * value, 1.03 * value);
            format!(
                "{{ value = \"{value} {unit}\", range = [\"{low} {unit}\", \"{high} {unit}\"], \
                 source = \"measured\", from = \"alone\" }}"
            )
        };
        let rated = |name: &str, count: usize, rate: f64| {
            // A throttled volume serves requests in order of arrival.
            let queue = if name == VOLUMES { "queue = true\n" } else { "" };
            format!(
                "[resource.{name}]\nformula = \"rate\"\ncount = {count}\n{queue}set = {{ rate = {} }}\n\n",
                measured(rate, "B/s")
            )
        };
        let mut text =
            "name = \"validation\"\ntitle = \"validation machine\"\nmain = \"record\"\n\n".to_owned();
        text += &rated("link", 1, link);
        text += &rated("pipeline", 1, ceilings.pipeline);
        text += &rated(VOLUMES, self.volumes, volume);
        text += &rated("disk", 1, ceilings.disks.max(ceilings.disk));
        text += "[resource.cores]\nformula = \"thread\"\ncount = 2\n\n";
        text += "[path.record]\nabout = \"from the link to the volumes\"\ndirection = \"write\"\n\n";
        for stage in ["link", "pipeline", VOLUMES, "disk"] {
            let queued = if stage == VOLUMES { self.in_flight(RECORDER_IN_FLIGHT) } else { String::new() };
            text += &format!("[[path.record.stage]]\non = \"{stage}\"\n{queued}\n");
        }
        let cost = measured(ceilings.seconds_per_gb, "s/GB");
        text += &format!("[[path.record.stage]]\non = \"cores\"\nper_byte = {cost}\n\n");
        text += &self.beside();
        Ok(text)
    }

    /// Bytes in flight on all volumes. Streams are distributed evenly, so the first volume stands for all.
    fn in_flight(&self, each: usize) -> String {
        let bytes = each * self.volumes;
        format!("in_flight = \"{bytes} B\"\n")
    }

    fn beside(&self) -> String {
        let (stage, rate) = match self.load {
            None => return String::new(),
            // Streams are distributed evenly, so a slower volume slows down all.
            Some(Load::Disk(mb)) => {
                let queued = self.in_flight(LOAD_IN_FLIGHT);
                (format!("on = \"{VOLUMES}\"\ntimes = {}\n{queued}", self.volumes), f64::from(mb) * 1e6)
            }
            // A fully loaded core corresponds to 1 s/GB at 1 GB/s.
            Some(Load::Cores(cores)) => {
                let cost = "{ value = \"1 s/GB\", source = \"given\" }";
                (format!("on = \"cores\"\nper_byte = {cost}\n"), f64::from(cores) * 1e9)
            }
        };
        format!(
            "[path.load]\nabout = \"background load\"\ndirection = \"write\"\noperation = \"1 MiB\"\n\n\
             [[path.load.stage]]\n{stage}\n[beside.load]\npath = \"load\"\nrate = \"{rate} B/s\"\n"
        )
    }
}

#[cfg(test)]
#[path = "setting_tests.rs"]
mod tests;

//! Ceilings of the single components, measured before the search.
use std::time::Duration;

use keepup_results::{Ceilings, VolumeCeiling as VolumeFigure};
use keepup_workload::ceiling::{MemoryCeiling, VolumeCeiling, VolumeSpec};
use keepup_workload::detector::SourceRate;
use keepup_workload::preflight::Checked;
use keepup_workload::run;

use super::Session;
use crate::QualifyError;
use crate::progress::Progress;

/// Share of a volume's usable space for its ceiling measurement.
const SPACE_SHARE: f64 = 0.25;

impl Session<'_> {
    /// Measures memory, network, source and each volume alone.
    pub(super) fn measure_ceilings(&mut self, volumes: &[Checked]) -> Result<Ceilings, QualifyError> {
        let time = self.settings.lengths().ceiling;
        let mut ceilings = Ceilings::default();
        let memory = run(&mut MemoryCeiling::new(time.min(Duration::from_millis(500))), &mut self.context())?;
        ceilings.memory_bytes_per_second = Some(memory);
        self.ceiling_done("memory copy, one core", memory);
        let network = self.network_alone(time)?;
        ceilings.network_bytes_per_second = Some(network);
        let is_loopback = self.settings.generator.is_loopback();
        self.ceiling_done(if is_loopback { "network alone (loopback)" } else { "network alone" }, network);
        let source = self.source_alone(time)?;
        ceilings.source_bytes_per_second = Some(source);
        self.ceiling_done("source alone", source);
        for volume in volumes {
            let config = self.settings.recorder(String::new());
            let allowed = self.settings.write_bytes_max / 20 / volumes.len() as u64;
            let spec = VolumeSpec {
                volume: volume.path.clone(),
                block_bytes: config.block_bytes.next_multiple_of(4096),
                depth: config.depth,
                segment_bytes: config.segment_bytes,
                bytes_max: allowed.min((volume.usable_bytes as f64 * SPACE_SHARE) as u64),
                engine: config.engine,
                time,
            };
            let name = self.fresh_name();
            let measured = run(&mut VolumeCeiling::new(spec, name), &mut self.context())?;
            self.bytes_written += measured.bytes;
            let path = volume.path.display().to_string();
            self.ceiling_done(&format!("volume {path} alone"), measured.bytes_per_second);
            ceilings.volumes.push(VolumeFigure { path, bytes_per_second: Some(measured.bytes_per_second) });
        }
        Ok(ceilings)
    }

    /// Throughput of the network path alone, bytes per second.
    pub(super) fn network_alone(&self, time: Duration) -> Result<f64, QualifyError> {
        Ok(self.settings.generator.network_ceiling(time, &mut self.context())?)
    }

    /// Throughput of the source alone, bytes per second.
    pub(super) fn source_alone(&self, time: Duration) -> Result<f64, QualifyError> {
        let plan = self.settings.source(SourceRate::Max, time).in_protocol(self.settings.protocol);
        Ok(self.settings.generator.source_ceiling(&plan, time, &mut self.context())?)
    }

    fn ceiling_done(&mut self, what: &str, bytes_per_second: f64) {
        self.report(Progress::Ceiling { what: what.to_owned(), bytes_per_second });
    }
}

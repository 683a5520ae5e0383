//! Judges the host settings for a stream. Pure: readings and needs in, findings out.
//!
//! Invariants: each rule is a function in [`RULES`] and names its source; settings irrelevant to
//! the stream give no finding; unreadable settings are never reported as fine.
mod card;
mod memory;
mod needs;
mod notes;
mod processors;
mod sockets;
mod volumes;

use keepup_measure::environment::Reading;
use keepup_measure::settings::Settings;
use keepup_plan::units::{ByteRate, Bytes};
use keepup_results::{DoctorFinding, DoctorSeverity};
use keepup_workload::doctor::{Port, Readings};

pub use needs::{Needs, STALL};
pub use notes::notes;

/// Rate above which the cost per packet or page matters: half of what one core receives over TCP
/// untuned (our choice).
const FAST: f64 = 500e6;
/// Rate (1 Gbit/s link) below which hardly any setting but buffers matters.
const SLOW: f64 = 125e6;
const MIB: u64 = 1 << 20;

/// Input of a rule.
struct Case<'a> {
    readings: &'a Readings,
    needs: &'a Needs,
}

/// A rule: returns any number of findings, for example one per interface or disk.
type Rule = fn(&Case<'_>) -> Vec<DoctorFinding>;

/// All rules, in the order of findings of equal severity.
const RULES: [Rule; 39] = [
    sockets::udp_buffer,
    sockets::udp_memory,
    sockets::tcp_buffer,
    sockets::backlog,
    sockets::budget,
    sockets::route,
    card::state,
    card::speed,
    card::slot,
    card::mtu,
    card::ring,
    card::queues,
    card::gro,
    card::checksum,
    card::flow_control,
    card::interrupt_node,
    card::interrupt_spread,
    card::disk_node,
    processors::governor,
    processors::boost,
    processors::sleep,
    processors::isolated,
    processors::intake_threads,
    memory::zone_reclaim,
    memory::numa_balancing,
    memory::huge_pages,
    memory::locked,
    memory::descriptors,
    memory::io_uring,
    memory::write_back,
    memory::swap,
    volumes::space,
    volumes::file_system,
    volumes::mount_options,
    volumes::scheduler,
    volumes::requests,
    volumes::disk_cache_and_slot,
    volumes::raid,
    volumes::wear,
];

/// Rules for a host that sends the stream. The others concern reception and recording.
const SENDER_RULES: [Rule; 5] =
    [card::state, card::speed, card::slot, processors::governor, processors::boost];

/// Findings for all settings relevant to `needs`, worst first.
pub fn judge(readings: &Readings, needs: &Needs) -> Vec<DoctorFinding> {
    apply(&RULES, &Case { readings, needs })
}

/// Findings for a host that sends the stream of `needs`, worst first.
pub fn judge_sender(readings: &Readings, needs: &Needs) -> Vec<DoctorFinding> {
    apply(&SENDER_RULES, &Case { readings, needs })
}

fn apply(rules: &[Rule], case: &Case<'_>) -> Vec<DoctorFinding> {
    let mut findings: Vec<_> = rules.iter().flat_map(|rule| rule(case)).collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

impl<'a> Case<'a> {
    fn settings(&self) -> &'a Settings {
        &self.readings.settings
    }

    /// Whether the cost per packet matters at the stream's rate.
    fn is_fast(&self) -> bool {
        self.needs.peak >= FAST
    }

    /// Interfaces that receive the data; none for a detector without a network.
    fn ports(&self) -> impl Iterator<Item = (&'a String, &'a Port)> {
        let is_networked = self.needs.is_networked();
        self.readings.interfaces.iter().filter(move |_| is_networked)
    }

    /// Those of them with a network card.
    fn cards(&self) -> impl Iterator<Item = (&'a String, &'a Port)> {
        self.ports().filter(|(_, port)| port.interface.is_card)
    }

    /// Bytes per second per interface: shared evenly if several were named explicitly.
    fn rate_of_port(&self) -> f64 {
        let shared = if self.readings.chosen.is_none() { self.readings.interfaces.len().max(1) } else { 1 };
        self.needs.peak / shared as f64
    }

    /// Payload per packet through `port`, and packets per second.
    fn packets(&self, port: &Port) -> Option<(f64, f64)> {
        let mtu = *port.interface.basics.mtu.value()? as f64;
        let payload = self.needs.payload_of_packet(mtu);
        Some((payload, self.rate_of_port() / payload))
    }

    /// Number of NUMA nodes; 1 if unknown.
    fn node_count(&self) -> usize {
        self.settings().processors.nodes.len().max(1)
    }
}

/// Setting and rule source of a finding.
struct Subject {
    setting: String,
    source: &'static str,
}

impl Subject {
    fn new(setting: impl Into<String>, source: &'static str) -> Self {
        Self { setting: setting.into(), source }
    }

    fn finding(
        self,
        severity: DoctorSeverity,
        value: Option<String>,
        wanted: Option<String>,
    ) -> DoctorFinding {
        let Self { setting, source } = self;
        let (why, source) = (String::new(), source.to_owned());
        DoctorFinding { severity, setting, value, wanted, why, source, command: None }
    }

    fn fine(self, value: impl ToString, why: impl Into<String>) -> DoctorFinding {
        let value = value.to_string();
        let finding = self.finding(DoctorSeverity::Fine, Some(value.clone()), Some(value));
        DoctorFinding { why: why.into(), ..finding }
    }

    fn not_judged(self, why: impl Into<String>) -> DoctorFinding {
        DoctorFinding { why: why.into(), ..self.finding(DoctorSeverity::NotJudged, None, None) }
    }

    fn bad(self, severity: DoctorSeverity, value: impl ToString, wanted: impl ToString) -> DoctorFinding {
        self.finding(severity, Some(value.to_string()), Some(wanted.to_string()))
    }

    fn harmful(self, value: impl ToString, wanted: impl ToString) -> DoctorFinding {
        self.bad(DoctorSeverity::Harmful, value, wanted)
    }

    fn look(self, value: impl ToString, wanted: impl ToString) -> DoctorFinding {
        self.bad(DoctorSeverity::WorthALook, value, wanted)
    }
}

/// Adds explanation and command to a finding.
trait FindingExt {
    fn because(self, why: impl Into<String>) -> Self;
    fn command(self, command: impl Into<String>) -> Self;
}

impl FindingExt for DoctorFinding {
    fn because(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), ..self }
    }

    fn command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }
}

/// Value of a reading, or the finding that it could not be judged.
fn read<'r, T>(reading: &'r Reading<T>, subject: &Subject) -> Result<&'r T, Box<DoctorFinding>> {
    match reading {
        Reading::Value(value) => Ok(value),
        Reading::NotReadable(why) => {
            let subject = Subject::new(subject.setting.clone(), subject.source);
            Err(Box::new(subject.not_judged(format!("not readable: {why}"))))
        }
    }
}

/// Finding of a rule, also when it stopped at an unreadable setting.
fn either(judged: Result<DoctorFinding, Box<DoctorFinding>>) -> DoctorFinding {
    judged.unwrap_or_else(|finding| *finding)
}

fn size(bytes: u64) -> String {
    format!("{bytes} ({})", Bytes(bytes).binary())
}

fn rate(bytes_per_second: f64) -> String {
    ByteRate::new(bytes_per_second).map_or_else(|e| e.to_string(), |rate| rate.to_string())
}

/// Bytes rounded up to whole MiB, for readable values.
fn whole_mib(bytes: f64) -> u64 {
    ((bytes / MIB as f64).ceil().max(1.0) as u64).saturating_mul(MIB)
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;

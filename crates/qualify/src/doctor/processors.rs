//! Rules for CPU frequency, idle states, and the cores that threads run on.
use keepup_measure::settings::CoreList;
use keepup_results::DoctorFinding;

use super::{Case, FindingExt, SLOW, Subject, rate};

const CPUFREQ: &str = "Documentation/admin-guide/pm/cpufreq.rst; slsDetectorPackage documentation, \
    Receiver PC Tuning Options";
/// Wake-up latency above which an idle state is reported, µs (our choice): cards deliver packets
/// every 50 µs or so.
const LATENCY_US_MAX: u64 = 100;

/// Cores that run slowly until they have been busy for a while.
pub(super) fn governor(case: &Case<'_>) -> Vec<DoctorFinding> {
    if case.needs.peak < SLOW {
        return Vec::new();
    }
    let subject = Subject::new("scaling_governor", CPUFREQ);
    let processors = &case.settings().processors;
    // Most virtual machines have no governor to set.
    let Some(found) = processors.governor.value() else {
        return vec![
            subject.not_judged("no core has a frequency governor; the host or firmware controls it"),
        ];
    };
    if found == "performance" {
        return vec![subject.fine(found, "cores run at full speed")];
    }
    // Adaptive drivers call their balanced mode `powersave`; for others it means the lowest
    // frequency.
    let driver = processors.frequency_driver.value().map_or("", String::as_str);
    let is_adaptive = matches!(driver, "intel_pstate" | "amd-pstate-epp");
    let is_lowest = found.split(", ").any(|name| name == "powersave") && !is_adaptive;
    let severity = if is_lowest { Subject::harmful } else { Subject::look };
    let why = match is_lowest {
        true => "cores stay at their lowest frequency under load",
        false => "cores slow down at low load and speed up with a delay",
    };
    vec![
        severity(subject, found, "performance").because(why).command("cpupower frequency-set -g performance"),
    ]
}

/// Cores that may not exceed their base frequency.
pub(super) fn boost(case: &Case<'_>) -> Vec<DoctorFinding> {
    let Some(may_boost) = case.settings().processors.may_boost.value().filter(|_| case.is_fast()) else {
        return Vec::new();
    };
    let subject =
        Subject::new("cpufreq boost", "Documentation/admin-guide/pm/cpufreq.rst, Frequency Boost Support");
    if *may_boost {
        return vec![subject.fine("on", "single cores may run faster")];
    }
    let driver = case.settings().processors.frequency_driver.value().map_or("", String::as_str);
    let command = match driver {
        "intel_pstate" => "echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo",
        _ => "echo 1 > /sys/devices/system/cpu/cpufreq/boost",
    };
    vec![
        subject
            .look("off", "on")
            .because("the rate of a single connection depends on single-core speed")
            .command(command),
    ]
}

/// Share of an intake thread's rate that should be used (our choice).
const INTAKE_SHARE: f64 = 0.8;
/// Rate of one intake thread, with headroom. Measured: 4 GB/s (docs/journal/0039).
const INTAKE_BYTES_PER_SECOND: f64 = 4e9 * INTAKE_SHARE;

/// Deep idle states, during whose exit packets queue up.
pub(super) fn sleep(case: &Case<'_>) -> Vec<DoctorFinding> {
    if !case.needs.is_udp() || !case.is_fast() {
        return Vec::new();
    }
    let subject =
        Subject::new("cpuidle states", "Documentation/admin-guide/pm/cpuidle.rst, PM QoS and disable");
    let states = &case.settings().processors.idle_states;
    let on = states.iter().filter(|state| state.is_off.value() == Some(&false));
    let deepest = on.filter_map(|state| Some((*state.latency_us.value()?, &state.name))).max();
    let Some((latency, name)) = deepest else { return Vec::new() };
    let value = format!("down to {name}, {latency} µs");
    if latency <= LATENCY_US_MAX {
        return vec![subject.fine(value, "cores wake up soon enough")];
    }
    vec![
        subject
            .look(value, format!("none above {LATENCY_US_MAX} µs"))
            .because(format!("an idle core takes {latency} µs to wake up while the card's ring fills"))
            .command(format!("cpupower idle-set -D {}", LATENCY_US_MAX + 1)),
    ]
}

/// Cores excluded from the scheduler.
pub(super) fn isolated(case: &Case<'_>) -> Vec<DoctorFinding> {
    let Some(isolated) = case.settings().processors.isolated.value().filter(|cores| !cores.0.is_empty())
    else {
        return Vec::new();
    };
    let subject = Subject::new("isolated cores", "Documentation/admin-guide/kernel-parameters.txt, isolcpus");
    vec![
        subject
            .look(isolated, "used by the recorder, or none")
            .because("the scheduler does not use them; the recorder runs there only with --cpus")
            .command(format!("keepup record --cpus {isolated} …")),
    ]
}

/// Streams that are too fast for one thread that receives.
pub(super) fn intake_threads(case: &Case<'_>) -> Vec<DoctorFinding> {
    let threads = (case.needs.peak / INTAKE_BYTES_PER_SECOND).ceil() as usize;
    if case.needs.is_udp() || threads < 2 {
        return Vec::new();
    }
    let subject = Subject::new("intake threads", "docs/book/fast-streams.md");
    let processors = &case.settings().processors;
    let online = processors.online.value();
    let near = case.cards().find_map(|(_, port)| port.interface.local_cores.value());
    let near = near.filter(|cores| cores.0.len() >= threads);
    // On several nodes the recorder chooses the CPUs near the card itself.
    let by_default = near.filter(|_| case.node_count() > 1);
    let mut command = format!("keepup record --intake-threads {threads}");
    let from = if by_default.is_some() { None } else { near.or(online) };
    if let Some(cores) = from.filter(|cores| cores.0.len() > threads) {
        let first = CoreList(cores.0.iter().take(threads).copied().collect());
        command.push_str(&format!(" --intake-cpus {first}"));
    }
    let mut why = format!(
        "one thread receives about {}; at {:.0} % of that, a peak of {} needs {threads} threads",
        rate(INTAKE_BYTES_PER_SECOND / INTAKE_SHARE),
        100.0 * INTAKE_SHARE,
        rate(case.needs.peak)
    );
    if let Some(cores) = by_default {
        why.push_str(&format!(
            "; they run on CPUs {cores}, near the card, unless --intake-cpus chooses others"
        ));
    }
    let connections = case.needs.connections as usize;
    if connections < threads {
        why.push_str(&format!("; each needs a connection, and the detector has {connections}"));
    }
    let wanted = format!("{threads}{}", if near.is_some() { ", on the card's NUMA node" } else { "" });
    vec![subject.look("1 by default", wanted).because(why).command(format!("{command} …"))]
}

//! Rules for the clocks of the hosts.
use keepup_results::{ClockFacts, FleetFinding};

use super::{Case, Subject, with_command};

/// Difference of two clocks from which the timestamps of different hosts are not comparable, ns: NTP in a
/// local network keeps clocks within 1 ms (our choice).
const OFFSET_NS_MAX: u64 = 1_000_000;

/// Each clock must be synchronised by a program.
pub(super) fn synchronised(case: &Case<'_>) -> Vec<FleetFinding> {
    let finding = |(host, clock): (&str, &ClockFacts)| {
        let subject = Subject { hosts: &[host], setting: "system clock", source: "adjtimex(2), STA_UNSYNC" };
        let running = clock.programs.as_deref().unwrap_or_default().join(", ");
        match clock.is_synchronised {
            None => subject.not_judged("the state of the clock is not readable"),
            Some(true) if running.is_empty() => {
                subject.fine("synchronised", "by a program that is not known")
            }
            Some(true) => subject.fine("synchronised", format!("by {running}")),
            Some(false) => {
                let by = match (&clock.programs, running.as_str()) {
                    (None, _) => "the processes of other users are hidden".to_owned(),
                    (Some(_), "") => "no program that does so was found".to_owned(),
                    (Some(_), running) => format!("{running} runs, but has not synchronised it"),
                };
                let why = format!("{by}; an uncorrected clock drifts by seconds per day");
                with_command(
                    subject.look("not synchronised", "synchronised by NTP or PTP", why),
                    "systemctl enable --now chronyd   # or: timedatectl set-ntp true",
                )
            }
        }
    };
    case.checked().map(|(host, facts)| finding((&host.host, &facts.clock))).collect()
}

/// The clocks must agree with that of the controller.
pub(super) fn offsets(case: &Case<'_>) -> Vec<FleetFinding> {
    let finding = |(host, offset): (&str, Option<(i64, u64)>)| {
        let source = "our choice; NTP keeps clocks of a local network within 1 ms";
        let subject = Subject { hosts: &[host], setting: "clock offset to the controller", source };
        let Some((offset_ns, error_ns)) = offset else {
            return subject.not_judged("it was not measured");
        };
        let ms = |ns: u64| ns as f64 / 1e6;
        let value = format!("{:+.3} ± {:.3} ms", offset_ns as f64 / 1e6, ms(error_ns));
        let (least, most) = (
            offset_ns.unsigned_abs().saturating_sub(error_ns),
            offset_ns.unsigned_abs().saturating_add(error_ns),
        );
        let wanted = format!("within {} ms", ms(OFFSET_NS_MAX));
        if least > OFFSET_NS_MAX {
            let why = "timestamps of different hosts are not comparable to 1 ms";
            return with_command(subject.look(value, wanted, why), "chronyc tracking; timedatectl");
        }
        match most > OFFSET_NS_MAX {
            true => subject.not_judged(format!("{value}: the error is too large to judge")),
            false => subject.fine(value, wanted),
        }
    };
    let measured =
        case.checked().map(|(host, _)| (host.host.as_str(), host.clock_offset_ns.zip(host.clock_error_ns)));
    measured.map(finding).collect()
}

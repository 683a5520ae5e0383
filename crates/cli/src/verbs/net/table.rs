//! What network tests print.
use keepup_measure::stats::median;
use keepup_results::{
    LatencyFigures, NetEnd, NetInterface, NetLatency, NetLayer, NetLedger, NetRateFinding, NetRun, NetSummary,
};
use keepup_workload::net::NetSpec;

/// Share of the best that is as good as the best.
const GOOD_ENOUGH: f64 = 0.98;

/// A run's settings in words.
pub(super) fn name(spec: &NetSpec) -> String {
    let mut words = match spec.flows {
        0 => Vec::new(),
        1 => vec![format!("1 flow of {}", bytes(spec.message_bytes))],
        flows => vec![format!("{flows} flows of {}", bytes(spec.message_bytes))],
    };
    words.extend(spec.send_buffer_bytes.map(|size| format!("send buffer {}", bytes(size))));
    words.extend(spec.receive_buffer_bytes.map(|size| format!("receive buffer {}", bytes(size))));
    words.extend(spec.probe.map(|probe| format!("{} messages/s", probe.per_second)));
    words.join(", ")
}

/// A size without losing a byte of it.
fn bytes(size: usize) -> String {
    match size {
        0 => "0 B".into(),
        size if size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
    }
}

/// One line for each setting, and what follows from all.
pub(super) fn summary(summary: &NetSummary, specs: &[(String, NetSpec)]) -> String {
    let runs_of = |name: &str| summary.runs.iter().filter(|run| run.name == name).collect::<Vec<_>>();
    let mut lines = Vec::new();
    if let Some(finding) = &summary.finding {
        return searched(summary, finding);
    }
    if specs.iter().any(|(_, spec)| spec.flows > 0) {
        let width = specs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        lines.push(head(width));
        lines.extend(specs.iter().map(|(name, _)| row(name, width, &runs_of(name))));
        lines.extend(best(&summary.runs, specs));
    }
    for (name, spec) in specs {
        let Some(run) = runs_of(name).pop() else { continue };
        let mut told: Vec<String> = run.ledger.iter().flat_map(ledger).collect();
        told.extend(run.latency.as_ref().map(latency));
        told.extend(path(run));
        if specs.len() == 1 {
            told.extend(run.ends.iter().map(end));
        }
        if spec.discard {
            told.push("the receiver dropped bytes in the kernel: nothing was copied to it".into());
        }
        if run.ends.iter().any(|end| end.sessions > 1) {
            told.push("the server served others meanwhile: its CPU is for all of them".into());
        }
        let of = if specs.len() > 1 { format!("{name}: ") } else { String::new() };
        lines.extend(told.into_iter().map(|line| format!("{of}{line}")));
    }
    if specs.iter().any(|(_, spec)| spec.flows > 0) {
        lines.push(
            "MB = 10^6 bytes of payload that arrived; CPU in seconds per GB: of keepup at either end, of"
                .into(),
        );
        lines.push("everything on the client's machine, and of that in deferred interrupts".into());
    }
    lines.join("\n")
}

/// What the search tried and found.
fn searched(summary: &NetSummary, finding: &NetRateFinding) -> String {
    let mb = |rate: Option<f64>| figure(rate.map(|rate| rate / 1e6), 1);
    let row = |run: &NetRun| {
        let lost = run.ledger.as_ref().map(|l| (l.lost + l.refused) as f64 * 100.0 / l.due.max(1) as f64);
        format!("{:<32} {:>12} {:>12}", run.name, mb(run.goodput(None)), figure(lost, 4))
    };
    let mut lines = vec![format!("{:<32} {:>12} {:>12}", "trial", "arrived MB/s", "lost %")];
    lines.extend(summary.runs.iter().map(row));
    lines.push(format!(
        "highest rate without loss: {} MB/s (lost from {} MB/s on); held for the soak: {} MB/s",
        mb(finding.knee_lower_bytes_per_second),
        mb(finding.knee_upper_bytes_per_second),
        mb(finding.safe_bytes_per_second)
    ));
    lines.extend(
        finding.loss_events_per_second_max.map(|most| {
            format!("no loss in {:.0} s: less than {most:.3} losses a second, at 95 %", 3.0 / most)
        }),
    );
    if let Some((pause_ns, buffer)) = finding.longest_pause_ns.zip(finding.buffer_needed_bytes) {
        lines.push(format!(
            "longest pause of a receiver with datagrams waiting: {:.1} ms; {:.1} MB of buffer bridge it",
            pause_ns as f64 / 1e6,
            buffer as f64 / 1e6
        ));
    }
    lines.push(format!("{}; MB = 10^6 bytes of payload", finding.end));
    lines.join("\n")
}

fn head(width: usize) -> String {
    format!(
        "{:<width$} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "", "MB/s", "to server", "from it", "resent", "client", "server", "machine", "softirq"
    )
}

fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Medians over the repeats of one setting.
fn row(name: &str, width: usize, runs: &[&NetRun]) -> String {
    let middle = |of: &dyn Fn(&NetRun) -> Option<f64>| {
        median(&runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>())
    };
    let rate = |side| middle(&|run: &NetRun| run.goodput(side).map(|rate| rate / 1e6));
    let per_gb = |run: &NetRun, seconds: Option<f64>| {
        let gb = run.received_bytes() as f64 / 1e9;
        seconds.filter(|_| gb > 0.0).map(|seconds| seconds / gb)
    };
    let servers = |run: &NetRun| run.ends.iter().skip(1).map(|end| end.cpu_seconds).reduce(|a, b| a + b);
    let client = |run: &NetRun, of: fn(&NetEnd) -> Option<f64>| run.ends.first().and_then(of);
    format!(
        "{name:<width$} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}",
        figure(rate(None), 1),
        figure(rate(Some(true)), 1),
        figure(rate(Some(false)), 1),
        figure(middle(&resent), 0),
        figure(middle(&|run| per_gb(run, client(run, |end| Some(end.cpu_seconds)))), 3),
        figure(middle(&|run| per_gb(run, servers(run))), 3),
        figure(middle(&|run| per_gb(run, client(run, |end| end.machine_cpu_seconds))), 3),
        figure(middle(&|run| per_gb(run, client(run, |end| end.softirq_seconds))), 3),
    )
}

/// Segments sent again, all flows.
fn resent(run: &NetRun) -> Option<f64> {
    let each = run.flows.iter().filter_map(|flow| flow.sender.as_ref());
    each.map(|sender| sender.retransmits as f64).reduce(|a, b| a + b)
}

/// The best setting, and the smallest that is nearly as good.
fn best(runs: &[NetRun], specs: &[(String, NetSpec)]) -> Vec<String> {
    let rate = |name: &str| {
        let of = runs.iter().filter(|run| run.name == name);
        median(&of.filter_map(|run| run.goodput(None)).collect::<Vec<_>>())
    };
    let rated = specs.iter().filter_map(|(name, spec)| rate(name).map(|rate| (rate, spec, name.as_str())));
    let mut rated: Vec<(f64, &NetSpec, &str)> = rated.collect();
    let Some(top) = rated.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)) else { return Vec::new() };
    if rated.len() < 2 {
        return Vec::new();
    }
    rated.retain(|(rate, ..)| *rate >= GOOD_ENOUGH * top.0);
    let cost = |spec: &NetSpec| {
        // What the kernel chooses by itself grows as needed: it counts as the largest.
        let buffer = |size: Option<usize>| size.unwrap_or(usize::MAX);
        (spec.flows, buffer(spec.receive_buffer_bytes), buffer(spec.send_buffer_bytes), spec.message_bytes)
    };
    let smallest = rated.iter().min_by_key(|(_, spec, _)| cost(spec)).copied().unwrap_or(top);
    let told = |of: (f64, &NetSpec, &str)| format!("{} ({:.1} MB/s)", of.2, of.0 / 1e6);
    vec![
        format!("best: {}", told(top)),
        format!("smallest that reaches {:.0} % of it: {}", GOOD_ENOUGH * 100.0, told(smallest)),
    ]
}

/// Time there and back.
fn latency(latency: &NetLatency) -> String {
    let lost = latency.sent - latency.answered.min(latency.sent);
    let figures = latency.figures.as_ref().map_or_else(|| "no answer".into(), figures);
    format!("{} messages of {} B there and back, {lost} unanswered: {figures}", latency.sent, latency.bytes)
}

fn figures(latency: &LatencyFigures) -> String {
    let us = |ns: u64| ns as f64 / 1e3;
    format!(
        "p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, longest {:.1} us",
        us(latency.p50_ns),
        us(latency.p99_ns),
        us(latency.p99_9_ns),
        us(latency.max_ns)
    )
}

/// What one end did with its processors and its interfaces.
fn end(end: &NetEnd) -> String {
    let share = |seconds: Option<f64>, of: f64| {
        seconds.filter(|_| of > 0.0 && end.seconds > 0.0).map(|s| s * 100.0 / (end.seconds * of))
    };
    let per_cent = |share: Option<f64>| share.map_or_else(|| "-".into(), |share| format!("{share:.0} %"));
    let cores = f64::from(end.cores.unwrap_or(0));
    let mut told = format!(
        "{}: keepup {} of a core; of all {cores} cores {} busy, {} in deferred interrupts",
        end.name,
        per_cent(share(Some(end.cpu_seconds), 1.0)),
        per_cent(share(end.machine_cpu_seconds, cores)),
        per_cent(share(end.softirq_seconds, cores)),
    );
    for interface in &end.interfaces {
        told += &format!("; {}", self::interface(interface));
    }
    told
}

/// Name, largest packet, speed, and which offloads are in force.
fn interface(interface: &NetInterface) -> String {
    let mut words = vec![interface.name.clone()];
    words.extend(interface.mtu_bytes.map(|bytes| format!("MTU {bytes}")));
    words.extend(interface.speed_mbit.map(|speed| format!("{speed} Mbit/s")));
    let NetInterface { tso, gso, gro, lro, receive_checksum, .. } = interface;
    for (name, is_on) in
        [("tso", tso), ("gso", gso), ("gro", gro), ("lro", lro), ("rx-checksum", receive_checksum)]
    {
        words.extend(is_on.map(|is_on| format!("{name} {}", if is_on { "on" } else { "off" })));
    }
    words.join(", ")
}

/// Where the datagrams went.
fn ledger(ledger: &NetLedger) -> Vec<String> {
    let mut lines = vec![format!(
        "{} datagrams due = {} late + {} refused + {} sent; {} sent = {} received + {} lost ({:.3} %)",
        ledger.due,
        ledger.unsent.saturating_sub(ledger.refused),
        ledger.refused,
        ledger.sent,
        ledger.sent,
        ledger.received,
        ledger.lost,
        ledger.lost as f64 * 100.0 / ledger.sent.max(1) as f64
    )];
    for loss in &ledger.losses {
        let others = match loss.counted > loss.datagrams {
            true => format!(" (counted {} there, others' traffic too)", loss.counted),
            false => String::new(),
        };
        lines.push(format!("  lost in {}: {}{others}", layer(loss.layer), loss.datagrams));
    }
    if ledger.lost > 0 {
        lines.push(format!("  unexplained, so the network between: {}", ledger.unexplained));
    }
    if ledger.duplicates + ledger.reordered + ledger.foreign > 0 {
        lines.push(format!(
            "  {} repeated, {} out of order, {} not of this test",
            ledger.duplicates, ledger.reordered, ledger.foreign
        ));
    }
    lines.push(format!(
        "  longest pause of a receiver with datagrams waiting: {:.1} ms, which {:.1} MB of buffer bridge",
        ledger.longest_pause_ns as f64 / 1e6,
        ledger.buffer_needed_bytes as f64 / 1e6
    ));
    lines
}

fn layer(layer: NetLayer) -> &'static str {
    match layer {
        NetLayer::SenderInterface => "the sending interface",
        NetLayer::Interface => "the receiving interface (ring full, or broken)",
        NetLayer::Softirq => "a core's queue of packets (net.core.netdev_max_backlog)",
        NetLayer::Ip => "putting fragments together (datagrams larger than the MTU)",
        NetLayer::SocketBuffer => "the socket's receive buffer (net.core.rmem_max, --receive-buffer)",
        NetLayer::Program => "the receiver: longer than its room for them",
    }
}

/// What the path was like.
fn path(run: &NetRun) -> Option<String> {
    let flow = run.flows.first()?;
    let mut words = Vec::new();
    if let Some(sender) = &flow.sender {
        words.extend(sender.path_mtu_bytes.map(|mtu| format!("MTU {mtu}")));
        words.push(format!("segments of {} B", sender.segment_bytes));
        words.extend(sender.congestion.clone());
        words.push(format!("rtt {} us at the end", sender.rtt_us));
        words.push(format!("send buffer {} B", sender.send_buffer_bytes));
    }
    words.extend(flow.receive_buffer_bytes.map(|size| format!("receive buffer {size} B")));
    (!words.is_empty()).then(|| format!("in force: {}", words.join(", ")))
}

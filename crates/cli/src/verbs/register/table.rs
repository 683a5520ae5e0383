//! What register tests print: the note's tables, then what follows from them.
use keepup_measure::stats::{median, quantile};
use keepup_results::{
    RegisterBreakEven, RegisterCost, RegisterFit, RegisterMethod, RegisterRun, RegisterSummary,
    RegisterVerdict,
};

/// All that a test found.
pub(super) fn page(summary: &RegisterSummary, run: &RegisterRun) -> String {
    let mut lines = vec![format!(
        "{:<12} {:>8} {:>12} {:>12} {:>12} {:>10} {:>10}",
        "way", "depth", "us/register", "least", "p99", "MB/s", "MiB/s"
    )];
    lines.extend(run.methods.iter().flat_map(|method| rows(method, run.width_bits)));
    lines.push(String::new());
    lines.extend(run.methods.iter().filter_map(|method| single(method, run.clock_ns)));
    lines.extend(run.methods.iter().filter_map(left_out));
    lines.extend(summary.fits.iter().flat_map(fit));
    lines.extend(summary.break_evens.iter().map(pair));
    lines.extend(about(run));
    lines.join("\n")
}

/// A way at all its depths.
fn rows(method: &RegisterMethod, width_bits: u32) -> Vec<String> {
    let row = |point: &keepup_results::RegisterPoint| {
        let each = |seconds: Option<f64>| seconds.map(|seconds| seconds / point.depth as f64 * 1e6);
        let figure = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.4}"));
        let middle = median(&point.seconds);
        let bytes = point.depth as f64 * f64::from(width_bits / 8);
        let rate = |unit: f64| middle.map_or_else(|| "-".into(), |s| format!("{:.2}", bytes / s / unit));
        format!(
            "{:<12} {:>8} {:>12} {:>12} {:>12} {:>10} {:>10}",
            method.name,
            format!("{:#x}", point.depth),
            figure(each(middle)),
            figure(each(quantile(&point.seconds, 0.0))),
            figure(each(quantile(&point.seconds, 0.99))),
            rate(1e6),
            rate(1_048_576.0),
        )
    };
    method.points.iter().map(row).collect()
}

fn single(method: &RegisterMethod, clock_ns: f64) -> Option<String> {
    let single = method.single.as_ref()?;
    let us = |ns: u64| ns as f64 / 1e3;
    Some(format!(
        "{}: single reads p50 {:.2} us, p99 {:.2} us, p99.9 {:.2} us, longest {:.1} us, the clock's \
         {:.3} us included",
        method.name,
        us(single.p50_ns),
        us(single.p99_ns),
        us(single.p99_9_ns),
        us(single.max_ns),
        clock_ns / 1e3
    ))
}

/// Which depths are missing.
fn left_out(method: &RegisterMethod) -> Option<String> {
    let depths: Vec<String> = method.left_out.iter().map(|depth| format!("{depth:#x}")).collect();
    let told = format!("{}: {} left out, which takes too long for --time", method.name, depths.join(", "));
    (!depths.is_empty()).then_some(told)
}

/// The lines of a way, and where they do not hold.
fn fit(fit: &RegisterFit) -> Vec<String> {
    let line = |what: &str, cost: &RegisterCost| {
        let half = cost.half_rate_registers.map_or_else(|| "-".into(), |half| format!("{half:.1}"));
        let most = cost.bytes_per_second.map_or_else(|| "-".into(), |most| format!("{:.2} MB/s", most / 1e6));
        format!(
            "{}: {what} T(n) = {:.4} us + n x {:.5} us; half of the highest rate from \
             {half} registers on; highest {most}",
            fit.method,
            cost.set_up_seconds * 1e6,
            cost.each_seconds * 1e6,
        )
    };
    let mut lines: Vec<String> = fit.elapsed.iter().map(|cost| line("time", cost)).collect();
    lines.extend(fit.cpu.iter().map(|cost| line("CPU", cost)));
    lines.extend(fit.knee.map(|knee| {
        let way = if knee.off > 0.0 { "more" } else { "less" };
        format!(
            "{}: the line of time says {:.0} % {way} than was measured at {:#x} registers: it has a knee",
            fit.method,
            knee.off.abs() * 100.0,
            knee.depth
        )
    }));
    lines
}

fn pair(pair: &RegisterBreakEven) -> String {
    let verdict = |verdict: &RegisterVerdict| match verdict {
        RegisterVerdict::Always => "always".to_owned(),
        RegisterVerdict::Never => "never".to_owned(),
        RegisterVerdict::NotResolved => "not resolved".to_owned(),
        RegisterVerdict::From { registers, lower, upper } => {
            let [registers, lower, upper] = [registers, lower, upper].map(|words| words.ceil());
            format!("from {registers} registers on ({lower} to {upper})")
        }
        RegisterVerdict::UpTo { registers, lower, upper } => {
            let [registers, lower, upper] = [registers, lower, upper].map(|words| words.floor());
            format!("up to {registers} registers ({lower} to {upper})")
        }
    };
    format!(
        "{} instead of {} takes less time: {}; less CPU: {}",
        pair.way,
        pair.simple,
        verdict(&pair.elapsed),
        verdict(&pair.cpu)
    )
}

/// What the reader should know of the device and of how it was measured.
fn about(run: &RegisterRun) -> Vec<String> {
    let device = &run.device;
    let mut words: Vec<String> = Vec::new();
    words.extend(device.id.as_ref().map(|id| format!("device {id}")));
    words.extend(device.driver.as_ref().map(|driver| format!("driver {driver}")));
    words.extend(device.link_speed.as_ref().map(|speed| format!("link {speed}")));
    words.extend(device.link_width.as_ref().map(|width| format!("{width} lanes")));
    words.extend(device.link_states.as_ref().map(|states| format!("low power: {states}")));
    words.extend(device.payload_bytes_max.map(|bytes| format!("payload {bytes} B")));
    words.extend(device.read_request_bytes_max.map(|bytes| format!("read requests {bytes} B")));
    words.extend(device.iommu_group.as_ref().map(|group| {
        let kind = device.iommu_type.as_ref().map_or_else(String::new, |kind| format!(" ({kind})"));
        format!("IOMMU group {group}{kind}")
    }));
    words.extend(run.cpu.map(|cpu| format!("processor {cpu}")));
    let mut lines = Vec::new();
    if !words.is_empty() {
        lines.push(words.join(", "));
    }
    let off = run.methods.iter().filter(|method| method.loop_taken_off);
    let off = off.map(|method| method.name.as_str()).collect::<Vec<_>>().join(", ");
    lines.extend(
        run.loop_seconds_per_register
            .filter(|_| !off.is_empty())
            .map(|own| format!("the loop's own {:.5} us for each register are taken off {off}", own * 1e6)),
    );
    if run.all_ones {
        lines.push(
            "warning: nothing but ones was read, as when nobody answers on the bus: \
             --identity OFFSET=VALUE tells"
                .into(),
        );
    }
    if device.is_simulated {
        lines.push("a file or a program stands for the device: what was measured is not the device's".into());
    }
    if device.is_virtual == Some(true) {
        lines.push(
            "in a virtual machine: the order of the ways, and that they work, not how fast hardware is"
                .into(),
        );
    }
    lines.push("MB = 10^6 bytes, MiB = 2^20; a register's time is that of a trial over its depth".into());
    lines
}

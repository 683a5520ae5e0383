//! Findings, answers and limits of the acoustic camera paper for this machine.
use keepup_measure::stats::median;
use keepup_model::papers::PaperUnit;
use keepup_results::{PaperAnswer, PaperCell, Quantity, RecordRun, Stored};

use super::{
    CAMERA, EVENTS_EACH, FULL, KEPT, KEPT_SECONDS, LINEAR, MB, RAID, RAMP_SECONDS, RUN_SECONDS,
    RUN_SECONDS_MIN, SCALING, count, has_raid, places, plural, recording, scaling, scaling_by,
};
use crate::NOT_MEASURED;
use crate::measured::{Reproduced, shared_disk};
use crate::published::PublishedPaper;

/// Knee: largest number of volumes with linear scaling. `None` without a rate of one volume.
fn linear_up_to(found: &Reproduced<'_>) -> Option<usize> {
    let one = scaling(found, 1, Quantity::BytesPerSecond).into_iter().reduce(f64::min)?;
    let falls_short = |count: &usize| {
        let most = scaling(found, *count, Quantity::BytesPerSecond).into_iter().reduce(f64::max);
        most.is_none_or(|most| most < LINEAR * *count as f64 * one)
    };
    let knee = (2..=count(found)).find(falls_short);
    Some(knee.map_or(count(found), |knee| knee - 1))
}

/// The runs of a place at a rate.
fn runs<'f>(found: &'f Reproduced<'_>, place: &str, rate: (&str, &str)) -> Vec<&'f RecordRun> {
    let label = recording(place, rate);
    let results = found.cells(&[("test", label.as_str())]).flat_map(|cell| &cell.results).collect::<Vec<_>>();
    let records = results.into_iter().filter_map(|result| match &result.summary {
        Stored::Record(summary) => Some(&summary.runs),
        _ => None,
    });
    records.flatten().collect()
}

/// Whether a place records at the rate of the camera.
enum Kept {
    /// In every run: durable at that rate without loss, for this time at least, seconds.
    Yes(f64),
    /// Not in every run.
    No,
    /// The runs were shorter than [`KEPT_SECONDS`]; the shortest, seconds.
    TooShort(f64),
}

/// Whether the rate of the camera was recorded in every run; `None` without runs. The durable rate counts the
/// time until the last event is on the disks, so that a pool that fills up fails.
fn keeps(found: &Reproduced<'_>, place: &str) -> Option<Kept> {
    let runs = runs(found, place, CAMERA.rate());
    let least = KEPT * CAMERA.mb_per_s * MB;
    let is_received = |run: &&RecordRun| run.is_whole() && run.achieved_bytes_per_second >= least;
    let is_durable = |run: &&RecordRun| run.durable_bytes_per_second.is_some_and(|rate| rate >= least);
    let shortest = runs.iter().map(|run| run.source_seconds).reduce(f64::min)?;
    Some(match runs.iter().all(is_received) {
        true if shortest < KEPT_SECONDS => Kept::TooShort(shortest),
        true if runs.iter().all(is_durable) => Kept::Yes(shortest),
        _ => Kept::No,
    })
}

/// Median, minimum and maximum of a figure of a place at full speed.
fn fastest(found: &Reproduced<'_>, place: &str, what: &str, quantity: Quantity) -> Option<(f64, f64, f64)> {
    let label = recording(place, FULL);
    let cell = PaperCell::measured(&found.values(&[("test", label.as_str())], what, quantity));
    Some((cell.value?, cell.lowest?, cell.highest?))
}

/// Ratio of two figures, if their ranges do not overlap.
fn ratio_text(ours: (f64, f64, f64), other: (f64, f64, f64)) -> String {
    match ours.2 < other.1 || ours.1 > other.2 {
        true => format!("{:.2}x", ours.0 / other.0),
        false => "1x (no significant difference)".to_owned(),
    }
}

pub(super) fn findings(found: &Reproduced<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    let count = count(found);
    if let Some(one) = median(&scaling(found, 1, Quantity::BytesPerSecond)) {
        findings.push(format!("One volume: {:.0} MB/s with writes of 2 MB, one at a time.", one / MB));
    }
    if let (Some(knee), true, None) = (linear_up_to(found), count > 1, shared_disk(found)) {
        findings.push(match knee == count {
            true => format!("The rate scales linearly up to all {count} volumes; the knee was not reached."),
            false => format!(
                "The rate scales linearly up to {knee}: {} reach less than {:.0} % of {}x one.",
                plural(knee + 1),
                100.0 * LINEAR,
                knee + 1
            ),
        });
    }
    for place in places(found) {
        let Some((rate, lowest, _)) = fastest(found, &place, "record", Quantity::BytesPerSecond) else {
            continue;
        };
        let back = fastest(found, &place, "read back", Quantity::BytesPerSecond);
        let back =
            back.map_or_else(String::new, |back| format!(" Read back by sensor: {:.0} MB/s.", back.0 / MB));
        findings.push(format!(
            "{} sensors to {place}: {:.0} MB/s, at least {:.1}x the camera's {}.{back}",
            CAMERA.sensors,
            rate / MB,
            lowest / MB / CAMERA.mb_per_s,
            CAMERA.flag
        ));
    }
    findings.extend(engines(found));
    findings.extend(raid_finding(found));
    findings
}

/// Comparison of the RAID with single volumes.
fn raid_finding(found: &Reproduced<'_>) -> Option<String> {
    let all = plural(count(found));
    let figures = [
        ("recording rate", "record", Quantity::BytesPerSecond),
        ("recorder CPU per GB", "record", Quantity::CpuSecondsPerGb),
        ("read-back rate", "read back", Quantity::BytesPerSecond),
    ];
    let ratios: Option<Vec<String>> = figures
        .into_iter()
        .map(|(words, what, quantity)| {
            let raid = fastest(found, RAID, what, quantity)?;
            Some(format!("{words} {}", ratio_text(raid, fastest(found, &all, what, quantity)?)))
        })
        .collect();
    Some(format!("RAID 0 compared with {all} at full speed: {}.", ratios?.join(", ")))
}

pub(super) fn answers(found: &Reproduced<'_>, edition: &PublishedPaper) -> Vec<PaperAnswer> {
    let of = |condition, quantity, unit| edition.text("F6", ["ROMANIS", condition, quantity], unit);
    vec![
        PaperAnswer {
            question: "Does the rate scale with the number of disks?".into(),
            published: "Almost linearly up to at least 5 disks; then the loop or a slow processor limits it."
                .into(),
            here: more_disks(found),
        },
        PaperAnswer {
            question: format!(
                "Can {} sensors, each stored on one disk without multiplexing or RAID, sustain {} Gbit/s?",
                CAMERA.sensors,
                of("all of it", "rate", PaperUnit::GigabitsPerSecond)
            ),
            published: format!(
                "Designed for it, with {} loops of {} Mbit/s; the total rate is not stated.",
                of("as built", "loops", PaperUnit::Items),
                of("each loop", "rate", PaperUnit::MegabitsPerSecond)
            ),
            here: camera(found),
        },
        PaperAnswer {
            question: "How does one RAID 0 over the same disks compare?".into(),
            published: "Avoided because of the cost of re-assembly; not measured.".into(),
            here: match has_raid(found) {
                true => raid_finding(found).unwrap_or_else(|| NOT_MEASURED.into()),
                false => "Unknown: no directory on a RAID 0 was given (--raid DIR).".into(),
            },
        },
        PaperAnswer {
            question: "How much CPU is left for the FFT?".into(),
            published: "None with the TL chip and the slow processor above 4 disks; some with the ISP chip."
                .into(),
            here: processors(found),
        },
    ]
}

fn more_disks(found: &Reproduced<'_>) -> String {
    let (count, shared) = (count(found), shared_disk(found));
    match linear_up_to(found) {
        None => NOT_MEASURED.into(),
        Some(_) if count < 2 => "Unknown with one volume (use --volume DIR once for each disk).".into(),
        Some(_) if shared.is_some() => {
            let rates =
                [1, count].map(|n| median(&scaling(found, n, Quantity::BytesPerSecond)).unwrap_or(0.0) / MB);
            format!(
                "Unknown: volumes share a disk. It reaches {:.0} MB/s with one volume, {:.0} MB/s with \
                 {count}.",
                rates[0], rates[1]
            )
        }
        Some(knee) if knee == count => format!("Yes, up to all {count} given."),
        Some(knee) => format!("Up to {knee} of {count}."),
    }
}

fn camera(found: &Reproduced<'_>) -> String {
    let kept: Vec<(usize, Kept)> =
        (1..=count(found)).filter_map(|n| Some((n, keeps(found, &plural(n))?))).collect();
    let Some((fewest, kept)) = kept.iter().find(|(_, kept)| !matches!(kept, Kept::No)) else {
        return if kept.is_empty() {
            NOT_MEASURED.into()
        } else {
            "No, with none of the numbers of volumes.".into()
        };
    };
    let most = fastest(found, &plural(*fewest), "record", Quantity::BytesPerSecond);
    let most = most.map_or_else(String::new, |most| {
        format!(" At full speed: {:.1}x that rate.", most.0 / MB / CAMERA.mb_per_s)
    });
    let place = plural(*fewest);
    match kept {
        Kept::Yes(seconds) => format!(
            "Yes, with {place}: {} for {seconds:.0} s, durable and without loss in every run.{most}",
            CAMERA.flag
        ),
        Kept::TooShort(seconds) => format!(
            "Cannot tell: {} was recorded without loss on {place}, but only for {seconds:.1} s; buffers \
             may have held it.{most}",
            CAMERA.flag
        ),
        Kept::No => String::new(),
    }
}

/// CPU at the camera's rate on all volumes.
fn processors(found: &Reproduced<'_>) -> String {
    let place = plural(count(found));
    let label = recording(&place, CAMERA.rate());
    let labels = [("test", label.as_str())];
    let each = median(&found.values(&labels, "record", Quantity::CpuSecondsPerGb));
    let busy = median(&found.values(&labels, "record", Quantity::CoresBusy));
    match (each, busy, found.cores()) {
        (Some(each), Some(busy), Some(cores)) => format!(
            "At {} on {place} the recorder uses {:.2} of {cores} cores; with the simulated sensors, \
             {busy:.2} are busy and {:.2} are left.",
            CAMERA.flag,
            each * CAMERA.mb_per_s / 1e3,
            (cores as f64 - busy).max(0.0)
        ),
        _ => NOT_MEASURED.into(),
    }
}

pub(super) fn limits(found: &Reproduced<'_>) -> Vec<String> {
    let mut limits = vec![
        format!(
            "figure 3 was measured for {:.1} s after {:.1} s of warm-up (paper: 60 s and 10 s): a disk \
             cache may not have been full",
            (RUN_SECONDS * found.scale()).max(RUN_SECONDS_MIN),
            RAMP_SECONDS * found.scale()
        ),
        "the simulated sensors ran on this machine over loopback and used its CPU; there were no Fibre \
         Channel loops, and one machine replaces the 54 computers of the paper"
            .to_owned(),
    ];
    if EVENTS_EACH * found.scale() < 1.0 {
        limits.push("each sensor sent one event of less than 2 MB".to_owned());
    }
    if let Some(disk) = shared_disk(found) {
        limits.push(format!(
            "volumes are on one disk ({disk}) and share its rate: scaling over disks was not measured"
        ));
    }
    match has_raid(found) {
        true => limits
            .push("--raid was assumed to be on a RAID 0 of the same disks; this was not checked".to_owned()),
        false => limits.push("no RAID 0 was tested".to_owned()),
    }
    limits
}

/// CPU per amount of data by plain calls compared with the ring: what a chip that interrupts the host costs.
fn engines(found: &Reproduced<'_>) -> Option<String> {
    let of = |kind: usize| {
        let values = scaling_by(found, SCALING.get(kind)?.0, 1, Quantity::CpuSecondsPerGb);
        let cell = PaperCell::measured(&values);
        Some((cell.value?, cell.lowest?, cell.highest?))
    };
    let (ring, plain) = (of(0)?, of(1)?);
    Some(format!(
        "CPU of the writer per GB by plain calls compared with io_uring, one volume: {} (paper: the TL chip, \
         which needs the host for each transfer, uses more than the ISP chip).",
        ratio_text(plain, ring)
    ))
}

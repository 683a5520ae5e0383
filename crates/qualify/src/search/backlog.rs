//! Growth of the backlog, which distinguishes overload from a buffer that hides it.
//!
//! A backlog is the data due by the detector's clock but not yet through. Under overload it grows
//! at offered minus served rate until the buffer is full, and only then is anything lost; a shorter
//! trial loses nothing. But a healthy recorder has a varying backlog too: a saw-tooth from periodic
//! flushes, a step from one stall, a rise at the start while the pipeline fills. So the last half
//! of the trial is compared with the first:
//!
//! - a lasting rise lifts both the floor and the peak. A saw-tooth with a period in each part keeps
//!   both, a pipeline that fills up keeps the peak, spikes and a stall in the last half keep the floor;
//! - a stall across the middle lifts both, but then the backlog falls: a fit over the last half sees it;
//! - capacity that drops off late (cache full, throttling) lifts only the peak, but then the backlog is
//!   above all of the first half and still rising at the end, where a stall is over by then.

/// Smallest significant rise, as a share of the bytes offered meanwhile; a steady overload above
/// this is detected.
const RISE_SHARE: f64 = 0.005;
/// A final backlog above this share of all bytes offered is growth, whatever its shape.
const END_SHARE: f64 = 0.5;
/// Part of the first half that is ignored while the pipeline fills, as a share of the trial.
const FILL_SHARE: f64 = 1.0 / 6.0;
/// Number of parts of the last half used to detect a continued rise.
const PARTS: usize = 6;
/// Minimum number of samples per half for judging its shape.
const SAMPLES_MIN: usize = 2 * PARTS;

/// Whether the backlog grows over one trial.
///
/// `samples` are (seconds, bytes) from the start of the trial to the end of the offered load, evenly
/// spaced; `offered_rate` is bytes/s. A hundred samples or more are best: a rise within the usual
/// difference between neighbours does not count, and below 36 only a final backlog above half of all that
/// was offered does. Samples that are not finite are left out.
///
/// Periodic flushes must come at least three times in a trial, or their saw-tooth may look like growth;
/// a stall that lasts to the very end of the trial may, too.
pub fn backlog_grows(samples: &[(f64, f64)], offered_rate: f64) -> bool {
    let mut samples: Vec<(f64, f64)> =
        samples.iter().copied().filter(|(t, bytes)| t.is_finite() && bytes.is_finite()).collect();
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (Some(&(start, _)), Some(&(end, end_bytes))) = (samples.first(), samples.last()) else {
        return false;
    };
    let trial_s = end - start;
    if end_bytes > END_SHARE * offered_rate * trial_s {
        return true;
    }
    let since = |share: f64| samples.partition_point(|&(t, _)| t < start + share * trial_s);
    let (first, last) = (&samples[since(FILL_SHARE)..since(0.5)], &samples[since(0.5)..]);
    if first.len() < SAMPLES_MIN || last.len() < SAMPLES_MIN {
        return false;
    }
    let noise = usual_difference(last);
    let rise_min = |share: f64| f64::max(RISE_SHARE * offered_rate * trial_s * share, noise);
    let (first_floor, first_peak) = floor_and_peak(first);
    let (last_floor, last_peak) = floor_and_peak(last);
    // A steady rise lifts the floor from one start to the other and the peak from one end to the other.
    let lifted =
        last_floor - first_floor > rise_min(0.5 - FILL_SHARE) && last_peak - first_peak > rise_min(0.5);
    let falling = fitted_rise(last) < -(last_peak - last_floor) / 2.0;
    (lifted && !falling) || still_rising_above(first_peak, last, rise_min(0.5))
}

/// Median difference between neighbours, bytes: the noise of floor and peak.
fn usual_difference(samples: &[(f64, f64)]) -> f64 {
    let mut differences: Vec<f64> = samples.windows(2).map(|pair| (pair[1].1 - pair[0].1).abs()).collect();
    differences.sort_by(f64::total_cmp);
    differences.get(differences.len() / 2).copied().unwrap_or_default()
}

/// Whether the last half ends above `peak`, has risen through its last three parts, and still rises
/// in the last one at half the pace or more of a steady rise since the middle.
fn still_rising_above(peak: f64, last: &[(f64, f64)], rise_min: f64) -> bool {
    let part = |index: usize| &last[index * last.len() / PARTS..(index + 1) * last.len() / PARTS];
    let [before, middle, end] = [3, 2, 1].map(|back| floor_and_peak(part(PARTS - back)).0);
    let parts = PARTS as f64;
    let climbs = end - middle > rise_min / parts && middle - before > rise_min / parts;
    end - peak > rise_min && climbs && fitted_rise(part(PARTS - 1)) > (end - peak) / (2.0 * parts)
}

/// Smallest and largest backlog.
fn floor_and_peak(samples: &[(f64, f64)]) -> (f64, f64) {
    samples.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &(_, bytes)| {
        (low.min(bytes), high.max(bytes))
    })
}

/// Rise of the least-squares line from the first to the last sample, bytes.
fn fitted_rise(samples: &[(f64, f64)]) -> f64 {
    let count = samples.len() as f64;
    let (sum_t, sum_b) = samples.iter().fold((0.0, 0.0), |(st, sb), &(t, b)| (st + t, sb + b));
    let (mean_t, mean_b) = (sum_t / count, sum_b / count);
    let (co, var) = samples.iter().fold((0.0, 0.0), |(co, var), &(t, b)| {
        (co + (t - mean_t) * (b - mean_b), var + (t - mean_t).powi(2))
    });
    match (samples.first(), samples.last()) {
        (Some(&(start, _)), Some(&(end, _))) if var > 0.0 => co / var * (end - start),
        _ => 0.0,
    }
}

#[cfg(test)]
#[path = "backlog_tests.rs"]
mod tests;

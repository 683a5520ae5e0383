//! Possible causes of a change of a disk's rate, by comparing conditions before and after. Pure.
//!
//! Causes are hints, not proof. An otherwise unexplained drop is attributed to an exhausted write
//! cache inside the drive, the usual reason.
use keepup_measure::sum::Sums;
use keepup_results::{SteadyCause, SteadyCauseKind, SteadyConditions, SteadySample};

/// Temperature above which a drive without a stated limit counts as hot, degrees Celsius: most
/// consumer drives start to throttle there.
const HOT_CELSIUS: f64 = 70.0;
/// Margin below a drive's limit at which it counts as hot, degrees Celsius.
const NEAR_CELSIUS: f64 = 1.0;
/// Significant change of CPU frequency, as a share of the maximum.
const FREQUENCY_SHARE: f64 = 0.15;
/// Significant change of stolen CPU time, cores.
const STEAL_CORES: f64 = 0.1;
/// Significant change of foreign traffic, as a share of the previous rate.
const NEIGHBOUR_SHARE: f64 = 0.05;
/// Fill level above which file systems take longer to find free space, percent.
const FILL_PERCENT: f64 = 90.0;

/// Samples before and after a change.
pub(super) struct Sides<'a> {
    /// Samples of the previous level.
    pub(super) before: &'a [SteadySample],
    /// Samples of the new level.
    pub(super) after: &'a [SteadySample],
    /// Previous level, bytes per second.
    pub(super) rate_before: f64,
    /// Whether the rate dropped.
    pub(super) is_drop: bool,
}

/// Mean of a reading, if available.
fn mean(samples: &[SteadySample], read: impl Fn(&SteadyConditions) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = samples.iter().filter_map(|sample| read(&sample.conditions)).collect();
    (!values.is_empty()).then(|| values.iter().float_sum() / values.len() as f64)
}

impl Sides<'_> {
    /// A reading's means before and after.
    fn both(&self, read: impl Fn(&SteadyConditions) -> Option<f64>) -> Option<(f64, f64)> {
        Some((mean(self.before, &read)?, mean(self.after, &read)?))
    }

    /// Excess of an adverse condition on the slower side.
    fn more_when_slow(&self, (before, after): (f64, f64)) -> f64 {
        if self.is_drop { after - before } else { before - after }
    }

    /// All possible causes of the change.
    pub(super) fn causes(&self) -> Vec<SteadyCause> {
        use SteadyCauseKind as Cause;
        let seen = [
            (Cause::Overwriting, self.overwriting()),
            (Cause::DriveTemperature, self.temperature()),
            (Cause::Throttling, self.throttling()),
            (Cause::Steal, self.steal()),
            (Cause::Neighbour, self.neighbour()),
            (Cause::NearlyFull, self.nearly_full()),
        ];
        let mut causes: Vec<SteadyCause> =
            seen.into_iter().filter_map(|(kind, seen)| Some(SteadyCause { kind, seen: seen? })).collect();
        if causes.is_empty() && self.is_drop {
            let seen = "no other cause found: the drive's fast write cache may be full".to_owned();
            causes.push(SteadyCause { kind: Cause::WriteCache, seen });
        }
        causes
    }

    fn overwriting(&self) -> Option<String> {
        let over = |samples: &[SteadySample]| samples.last().is_some_and(|sample| sample.overwrites);
        (over(self.after) && !over(self.before)).then(|| "older files are being overwritten".to_owned())
    }

    fn temperature(&self) -> Option<String> {
        let limit = self.after.iter().find_map(|sample| sample.conditions.drive_celsius_max);
        let hot = limit.unwrap_or(HOT_CELSIUS) - NEAR_CELSIUS;
        let (before, after) = self.both(|conditions| conditions.drive_celsius)?;
        let limit = limit.map_or("no stated limit".to_owned(), |limit| format!("limit {limit:.0} C"));
        match self.is_drop {
            true => (after >= hot).then(|| format!("the drive is at {after:.0} C, {limit}")),
            false => (before >= hot && after < before)
                .then(|| format!("the drive cooled down from {before:.0} to {after:.0} C, {limit}")),
        }
    }

    fn throttling(&self) -> Option<String> {
        self.frequency().or_else(|| self.throttled())
    }

    fn throttled(&self) -> Option<String> {
        let count = |sample: Option<&SteadySample>| sample?.conditions.throttled;
        let times = count(self.after.last())?.saturating_sub(count(self.before.last())?);
        (self.is_drop && times > 0).then(|| format!("processors were throttled {times} times"))
    }

    fn frequency(&self) -> Option<String> {
        let (before, after) = self.both(|conditions| conditions.frequency_share)?;
        let slower = self.more_when_slow((-before, -after));
        (slower >= FREQUENCY_SHARE).then(|| {
            let percent = |share: f64| share * 100.0;
            format!(
                "processors run at {:.0} % of their highest frequency, {:.0} % before",
                percent(after),
                percent(before)
            )
        })
    }

    fn steal(&self) -> Option<String> {
        let both = self.both(|conditions| conditions.steal_cores)?;
        let text = || format!("the hypervisor gives {:.1} cores to others, {:.1} before", both.1, both.0);
        (self.more_when_slow(both) >= STEAL_CORES).then(text)
    }

    fn neighbour(&self) -> Option<String> {
        let both = self.both(|conditions| conditions.neighbour_bytes_per_second)?;
        let mb = |rate: f64| rate / 1e6;
        let text = || format!("others move {:.0} MB/s on this device, {:.0} before", mb(both.1), mb(both.0));
        (self.more_when_slow(both) >= NEIGHBOUR_SHARE * self.rate_before).then(text)
    }

    fn nearly_full(&self) -> Option<String> {
        let percent = mean(self.after, |conditions| conditions.fill_percent)?;
        (self.is_drop && percent >= FILL_PERCENT).then(|| format!("the file system is {percent:.0} % full"))
    }
}

#[cfg(test)]
#[path = "causes_tests.rs"]
mod tests;

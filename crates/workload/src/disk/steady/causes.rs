//! What may have changed a disk's rate: what went on before compared with what went on since. Pure.
//!
//! These are hints, not proofs: each says what was seen. A drop with nothing else to explain it is put down
//! to a fast cache inside the drive that is used up, because that is what such drops usually are.
use keepup_results::{SteadyCause, SteadyCauseKind, SteadyConditions, SteadySample};

/// A drive that states no limit is called hot from here on, in degrees Celsius: where most drives for
/// consumers begin to slow down.
const HOT_CELSIUS: f64 = 70.0;
/// A drive this close to its limit is hot, in degrees Celsius.
const NEAR_CELSIUS: f64 = 1.0;
/// Change of the processors' frequency that counts, as a share of the highest.
const FREQUENCY_SHARE: f64 = 0.15;
/// Change of stolen processor time that counts, in cores.
const STEAL_CORES: f64 = 0.1;
/// Change of what others move that counts, as a share of the rate before.
const NEIGHBOUR_SHARE: f64 = 0.05;
/// File systems search longer for free space from here on, in per cent.
const FILL_PERCENT: f64 = 90.0;

/// Both sides of a change.
pub(super) struct Sides<'a> {
    /// Samples of the level before.
    pub(super) before: &'a [SteadySample],
    /// Samples of the level since.
    pub(super) after: &'a [SteadySample],
    /// The level before, in bytes per second.
    pub(super) rate_before: f64,
    /// Whether the level fell.
    pub(super) is_drop: bool,
}

/// Mean of a reading, where there is one.
fn mean(samples: &[SteadySample], read: impl Fn(&SteadyConditions) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = samples.iter().filter_map(|sample| read(&sample.conditions)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Sides<'_> {
    /// A reading before and since.
    fn both(&self, read: impl Fn(&SteadyConditions) -> Option<f64>) -> Option<(f64, f64)> {
        Some((mean(self.before, &read)?, mean(self.after, &read)?))
    }

    /// How much more there is of something bad on the slower side.
    fn more_when_slow(&self, (before, after): (f64, f64)) -> f64 {
        if self.is_drop { after - before } else { before - after }
    }

    /// All that may have caused the change.
    pub(super) fn causes(&self) -> Vec<SteadyCause> {
        use SteadyCauseKind as Kind;
        let seen = [
            (Kind::Overwriting, self.overwriting()),
            (Kind::DriveTemperature, self.temperature()),
            (Kind::Throttling, self.throttling()),
            (Kind::Steal, self.steal()),
            (Kind::Neighbour, self.neighbour()),
            (Kind::NearlyFull, self.nearly_full()),
        ];
        let mut causes: Vec<SteadyCause> =
            seen.into_iter().filter_map(|(kind, seen)| Some(SteadyCause { kind, seen: seen? })).collect();
        if causes.is_empty() && self.is_drop {
            let seen = "nothing else was seen: a fast write cache of the drive may be used up".to_owned();
            causes.push(SteadyCause { kind: Kind::WriteCache, seen });
        }
        causes
    }

    fn overwriting(&self) -> Option<String> {
        let over = |samples: &[SteadySample]| samples.last().is_some_and(|sample| sample.overwrites);
        (over(self.after) && !over(self.before)).then(|| "older files are overwritten since".to_owned())
    }

    fn temperature(&self) -> Option<String> {
        let limit = self.after.iter().find_map(|sample| sample.conditions.drive_celsius_max);
        let hot = limit.unwrap_or(HOT_CELSIUS) - NEAR_CELSIUS;
        let (before, after) = self.both(|conditions| conditions.drive_celsius)?;
        let limit = limit.map_or("it states no limit".to_owned(), |limit| format!("its limit is {limit:.0}"));
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
        let say = || format!("the hypervisor gives {:.1} cores to others, {:.1} before", both.1, both.0);
        (self.more_when_slow(both) >= STEAL_CORES).then(say)
    }

    fn neighbour(&self) -> Option<String> {
        let both = self.both(|conditions| conditions.neighbour_bytes_per_second)?;
        let mb = |rate: f64| rate / 1e6;
        let say = || format!("others move {:.0} MB/s on this device, {:.0} before", mb(both.1), mb(both.0));
        (self.more_when_slow(both) >= NEIGHBOUR_SHARE * self.rate_before).then(say)
    }

    fn nearly_full(&self) -> Option<String> {
        let percent = mean(self.after, |conditions| conditions.fill_percent)?;
        (self.is_drop && percent >= FILL_PERCENT).then(|| format!("the file system is {percent:.0} % full"))
    }
}

#[cfg(test)]
#[path = "causes_tests.rs"]
mod tests;

//! What a subscriber asks for in the query of its request.
use keepup_results::live::TapFilter;

/// Streams that one subscriber may name.
const STREAMS_MAX: usize = 1024;

/// What is asked for: `stream=N` (again and again), `every=N`, `rate=R`, `preview=N`.
#[derive(Debug, Default, PartialEq)]
pub struct TapQuery {
    /// Which events.
    pub filter: TapFilter,
    /// Images and waveforms are thinned to at most so many elements along each dimension.
    pub preview: Option<u64>,
}

impl TapQuery {
    /// Reads the query of a request.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(query: &str) -> Result<Self, String> {
        let mut asked = Self { filter: TapFilter { every: 1, ..TapFilter::default() }, preview: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            asked.take(key, value)?;
        }
        if asked.filter.streams.len() > STREAMS_MAX {
            return Err(format!("more than {STREAMS_MAX} streams: leave them out to get all"));
        }
        Ok(asked)
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("{key}={value} cannot be: {key} takes a number above zero");
        match key {
            "stream" => {
                self.filter.streams.push(value.parse().map_err(|_| format!("{value} is no stream"))?);
            }
            "every" => self.filter.every = value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?,
            "rate" => {
                let rate = value.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
                self.filter.per_second = Some(rate.ok_or_else(wrong)?);
            }
            "preview" => self.preview = Some(value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?),
            _ => return Err(format!("{key} is not known: stream, every, rate and preview are")),
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tap_query_tests.rs"]
mod tests;

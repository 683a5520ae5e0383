//! Query parameters of a tap request.
use keepup_results::live::TapFilter;

/// Most streams that one subscriber may name.
const STREAMS_MAX: usize = 1024;

/// Parameters: `stream=N` (repeatable), `every=N`, `rate=R`, `preview=N`.
#[derive(Debug, Default, PartialEq)]
pub struct TapQuery {
    /// Selected events.
    pub filter: TapFilter,
    /// Thin images and waveforms to at most this many elements along each dimension.
    pub preview: Option<u64>,
}

impl TapQuery {
    /// Parses the query of a request.
    ///
    /// # Errors
    /// Description of the problem.
    pub fn parse(query: &str) -> Result<Self, String> {
        let mut asked = Self { filter: TapFilter { every: 1, ..TapFilter::default() }, preview: None };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            asked.take(key, value)?;
        }
        if asked.filter.streams.len() > STREAMS_MAX {
            return Err(format!("more than {STREAMS_MAX} streams: omit the parameter to get all"));
        }
        Ok(asked)
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("cannot use {key}={value}: {key} must be a number above zero");
        match key {
            "stream" => {
                self.filter
                    .streams
                    .push(value.parse().map_err(|_| format!("cannot use stream={value}: not a stream id"))?);
            }
            "every" => self.filter.every = value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?,
            "rate" => {
                let rate = value.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
                self.filter.per_second = Some(rate.ok_or_else(wrong)?);
            }
            "preview" => self.preview = Some(value.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?),
            _ => return Err(format!("unknown parameter {key}: use stream, every, rate or preview")),
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tap_query_tests.rs"]
mod tests;

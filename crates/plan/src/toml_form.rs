//! TOML form of a profile: every key is optional, because a profile may extend another.

use serde::{Deserialize, Serialize};

use crate::element::Element;
use crate::profile::{
    Burst, Compression, EventSize, Invalid, Placement, Profile, Reference, Transport, array_bytes,
};
use crate::reduction::{ReduceTable, Reduction};
use crate::units::{ByteRate, Bytes, EventRate, Share, Span};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProfileFile {
    pub(crate) name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    pub(crate) extends: Option<String>,
    event: EventTable,
    source: SourceTable,
    run: RunTable,
    record: RecordTable,
    #[serde(skip_serializing_if = "DrainTable::is_empty")]
    drain: DrainTable,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reduce: Vec<ReduceTable>,
    require: RequireTable,
    reference: Vec<Reference>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EventTable {
    size: Option<Bytes>,
    distribution: Option<Distribution>,
    median: Option<Bytes>,
    sigma: Option<f64>,
    min: Option<Bytes>,
    max: Option<Bytes>,
    element: Option<Element>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shape: Vec<u64>,
    compression: Option<Compression>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Distribution {
    Uniform,
    Lognormal,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SourceTable {
    rate: Option<EventRate>,
    streams: Option<u32>,
    connections: Option<u32>,
    transport: Option<Transport>,
    buffer: Option<Bytes>,
    burst: Option<Burst>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RunTable {
    duration: Option<Span>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RecordTable {
    volumes: Option<u32>,
    placement: Option<Placement>,
    block: Option<Bytes>,
    segment: Option<Bytes>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DrainTable {
    rate: Option<ByteRate>,
}

impl DrainTable {
    fn is_empty(&self) -> bool {
        self.rate.is_none()
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RequireTable {
    headroom: Option<f64>,
    cpu_free: Option<Share>,
    loss: Option<u64>,
    whole_run: Option<bool>,
    lifetime: Option<Span>,
}

/// Default values.
mod default {
    use std::time::Duration;

    use crate::units::{Bytes, Span};

    pub(super) const BUFFER: Bytes = Bytes(64 << 20);
    pub(super) const BLOCK: Bytes = Bytes(1 << 20);
    pub(super) const DURATION: Span = Span(Duration::from_secs(3600));
    /// Default headroom over the required rate.
    pub(super) const HEADROOM: f64 = 1.3;
}

fn missing(key: &'static str) -> Invalid {
    Invalid { key, reason: "it is missing".into() }
}

impl ProfileFile {
    /// Applies the defaults. The result is complete but not validated.
    pub(crate) fn into_profile(self) -> Result<Profile, Invalid> {
        let Self { event, source, record, require, .. } = self;
        let reductions = self.reduce.iter().map(Reduction::from_table).collect::<Result<_, _>>();
        let reductions =
            reductions.map_err(|reason: String| Invalid { key: "reduce", reason: reason.into() })?;
        Ok(Profile {
            name: self.name.ok_or_else(|| missing("name"))?,
            title: self.title.ok_or_else(|| missing("title"))?,
            description: self.description.unwrap_or_default(),
            event: event.size()?,
            element: event.element,
            shape: event.shape,
            compression: event.compression,
            rate: source.rate.ok_or_else(|| missing("source.rate"))?,
            streams: source.streams.unwrap_or(1),
            connections: source.connections.unwrap_or(1),
            transport: source.transport.unwrap_or(Transport::Tcp),
            buffer: source.buffer.unwrap_or(default::BUFFER),
            burst: source.burst,
            duration: self.run.duration.unwrap_or(default::DURATION),
            volumes: record.volumes.unwrap_or(1),
            placement: record.placement.unwrap_or(Placement::Free),
            block: record.block.unwrap_or(default::BLOCK),
            segment: record.segment,
            reductions,
            drain: self.drain.rate,
            headroom: require.headroom.unwrap_or(default::HEADROOM),
            cpu_free: require.cpu_free.unwrap_or_default(),
            loss_allowed: require.loss.unwrap_or(0),
            whole_run: require.whole_run.unwrap_or(false),
            lifetime: require.lifetime,
            references: self.reference,
        })
    }
}

impl EventTable {
    /// Size distribution from the given keys; rejects incompatible keys.
    fn size(&self) -> Result<EventSize, Invalid> {
        let given = [
            ("event.size", self.size.is_some()),
            ("event.median", self.median.is_some()),
            ("event.sigma", self.sigma.is_some()),
            ("event.min", self.min.is_some()),
            ("event.max", self.max.is_some()),
        ];
        let (belonging, with): (&[&str], _) = match self.distribution {
            None => (&["event.size"], "needs event.distribution"),
            Some(Distribution::Uniform) => {
                (&["event.min", "event.max"], "has no place in a uniform distribution")
            }
            Some(Distribution::Lognormal) => {
                (&["event.median", "event.sigma", "event.max"], "has no place in a lognormal distribution")
            }
        };
        if let Some((key, _)) = given.iter().find(|(key, given)| *given && !belonging.contains(key)) {
            return Err(Invalid { key, reason: format!("it {with}").into() });
        }
        Ok(match self.distribution {
            None => {
                // The array says nothing about the size of compressed images.
                let array = array_bytes(self.element, &self.shape).filter(|_| self.compression.is_none());
                EventSize::Fixed(self.size.or(array).ok_or_else(|| missing("event.size"))?)
            }
            Some(Distribution::Uniform) => EventSize::Uniform {
                min: self.min.ok_or_else(|| missing("event.min"))?,
                max: self.max.ok_or_else(|| missing("event.max"))?,
            },
            Some(Distribution::Lognormal) => EventSize::LogNormal {
                median: self.median.ok_or_else(|| missing("event.median"))?,
                sigma: self.sigma.ok_or_else(|| missing("event.sigma"))?,
                max: self.max.ok_or_else(|| missing("event.max"))?,
            },
        })
    }
}

impl Profile {
    /// Standalone profile file with all defaults and inherited values.
    pub fn to_toml(&self) -> String {
        // Serializing strings, numbers and tables of them cannot fail.
        toml::to_string(&ProfileFile::from(self)).unwrap_or_default()
    }
}

impl From<&Profile> for ProfileFile {
    fn from(profile: &Profile) -> Self {
        Self {
            name: Some(profile.name.clone()),
            title: Some(profile.title.clone()),
            description: Some(profile.description.clone()).filter(|text| !text.is_empty()),
            extends: None,
            event: EventTable::from(profile),
            source: SourceTable {
                rate: Some(profile.rate),
                streams: Some(profile.streams),
                connections: Some(profile.connections),
                transport: Some(profile.transport),
                buffer: Some(profile.buffer),
                burst: profile.burst,
            },
            run: RunTable { duration: Some(profile.duration) },
            record: RecordTable {
                volumes: Some(profile.volumes),
                placement: Some(profile.placement),
                block: Some(profile.block),
                segment: profile.segment,
            },
            drain: DrainTable { rate: profile.drain },
            reduce: profile.reductions.iter().map(Reduction::table).collect(),
            require: RequireTable {
                headroom: Some(profile.headroom),
                cpu_free: Some(profile.cpu_free),
                loss: Some(profile.loss_allowed),
                whole_run: Some(profile.whole_run),
                lifetime: profile.lifetime,
            },
            reference: profile.references.clone(),
        }
    }
}

impl From<&Profile> for EventTable {
    fn from(profile: &Profile) -> Self {
        let Profile { element, compression, .. } = *profile;
        let base = Self { element, shape: profile.shape.clone(), compression, ..Self::default() };
        match profile.event {
            EventSize::Fixed(size) => Self { size: Some(size), ..base },
            EventSize::Uniform { min, max } => {
                Self { distribution: Some(Distribution::Uniform), min: Some(min), max: Some(max), ..base }
            }
            EventSize::LogNormal { median, sigma, max } => Self {
                distribution: Some(Distribution::Lognormal),
                median: Some(median),
                sigma: Some(sigma),
                max: Some(max),
                ..base
            },
        }
    }
}

//! NXmx description of a recording of DECTRIS detectors, from the metadata and maps of their start messages.
//!
//! Field names: Stream V2 (github.com/dectris/documentation) and the configuration of Stream V1 (SIMPLON
//! API reference). Coordinates are those of NeXus (McStas): z along the beam, y up. For an upright detector,
//! the fast axis of an image is -x, its slow axis -y.
//! Invariants: values come from peers, and a value that is malformed, not finite or out of bounds is left
//! out; nothing here fails.
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use keepup_measure::sum::Sums;
use keepup_stream::detector_map::{
    COUNTRATE_LOOKUP_TABLE, COUNTRATE_TABLE, FLATFIELD, PIXEL_MASK, stream_name,
};
use keepup_stream::wire::METADATA_BYTES_MAX;

pub(crate) use self::tree::{DataRows, Node, put_nodes};

use self::tree::{Field, Group, Value};

/// Names that the description adds to `entry`.
pub(crate) const ENTRY_NAMES: [&str; 5] =
    ["definition", "end_time_estimated", "instrument", "sample", "source"];

/// Names that `entry/instrument` has apart from detectors.
const INSTRUMENT_NAMES: [&str; 2] = ["beam", "name"];
/// Name of the only stream of a detector with Stream V1.
const V1_CHANNEL: &str = "image";
/// Group of an NXdetector for what NeXus has no name for, as in the files of DECTRIS' FileWriter.
const SPECIFIC: &str = "detectorSpecific";
/// Name of the instrument, sample or source when the metadata do not state it.
const UNKNOWN: &str = "unknown";
/// Product of a photon's energy and wavelength, eV angstrom.
const HC: f64 = 12_398.419_843;
/// Largest plausible absolute value of a number in any unit.
const NUMBER_MAX: f64 = 1e12;
/// Smallest plausible size, time, energy or wavelength in any unit.
const POSITIVE_MIN: f64 = 1e-12;
/// Most angles that are written for one axis.
const ANGLES_MAX: u64 = 1 << 23;

/// Axes of the goniometer from the base to the sample, with their directions. Detectors do not state
/// directions; these are those of a horizontal goniometer with its kappa axis at 50 degrees.
const SAMPLE_AXES: [(&str, [f64; 3]); 4] = [
    ("omega", [-1.0, 0.0, 0.0]),
    ("kappa", [-0.642_787_609_686_539_4, -0.766_044_443_118_978, 0.0]),
    ("chi", [0.0, 0.0, 1.0]),
    ("phi", [-1.0, 0.0, 0.0]),
];
/// Axis of the detector arm: raises the detector with increasing angle.
const TWO_THETA: (&str, [f64; 3]) = ("two_theta", [-1.0, 0.0, 0.0]);

/// Metadata keys that the description uses, besides angles and threshold energies.
const KEYS: [&str; 26] = [
    "beam_center_x",
    "beam_center_y",
    "bit_depth_readout",
    "channels",
    "count_time",
    "countrate_correction_count_cutoff",
    "description",
    "detector_description",
    "detector_distance",
    "detector_number",
    "detector_serial_number",
    "detector_translation",
    "frame_time",
    "incident_energy",
    "incident_wavelength",
    "photon_energy",
    "pixel_size_x",
    "pixel_size_y",
    "saturation_value",
    "sensor_material",
    "sensor_thickness",
    "series_id",
    "threshold_energy",
    "wavelength",
    "x_pixel_size",
    "y_pixel_size",
];

/// Metadata keys of corrections, by the field of NXdetector.
const CORRECTIONS: [(&str, [&str; 2]); 4] = [
    ("flatfield_applied", ["flatfield_enabled", "flatfield_correction_applied"]),
    ("pixel_mask_applied", ["pixel_mask_enabled", "pixel_mask_applied"]),
    ("countrate_correction_applied", ["countrate_correction_enabled", "countrate_correction_applied"]),
    ("virtual_pixel_interpolation_applied", ["virtual_pixel_interpolation_enabled"; 2]),
];

/// Rank of a metadata key of a detector, with or without its address: 0 if the description needs it, 1 if the
/// description contains it, 2 for others.
pub(crate) fn rank(key: &str) -> u8 {
    let name = key.rsplit('/').next().unwrap_or(key);
    let is_angle = name.ends_with("_start") || name.ends_with("_increment") || key.contains("goniometer/");
    let is_correction = || CORRECTIONS.iter().any(|(_, keys)| keys.contains(&name));
    match is_angle || KEYS.contains(&name) || key.contains("threshold_energy/") {
        true => 0,
        false => {
            if is_correction() {
                1
            } else {
                2
            }
        }
    }
}

/// A stream of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageStream<'a> {
    pub(crate) id: u32,
    pub(crate) name: &'a str,
    /// Height, width.
    pub(crate) size: [u64; 2],
    /// Rows of its datasets in the master.
    pub(crate) rows: u64,
}

/// A stream with a recorded map as its only event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapStream<'a> {
    pub(crate) name: &'a str,
    pub(crate) shape: &'a [u64],
    /// Segment with the map, relative to the directory of the master, and the dataset in it.
    pub(crate) file: &'a str,
    pub(crate) dataset: String,
}

/// A DECTRIS detector of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Detector<'a> {
    fields: Fields<'a>,
    /// Pixel size, m: x, y.
    pixel: [f64; 2],
    channels: Vec<Channel<'a>>,
}

/// A channel of a detector.
#[derive(Clone, Debug)]
struct Channel<'a> {
    stream: ImageStream<'a>,
    /// Its name without the detector's address.
    name: &'a str,
    /// Links to its maps.
    maps: BTreeMap<&'static str, Node>,
}

/// Detectors of a recording: those with a start message that states the pixel size, and with images.
pub(crate) fn detectors<'a>(
    metadata: &'a BTreeMap<String, String>,
    streams: &[ImageStream<'a>],
    maps: &[MapStream<'_>],
) -> Vec<Detector<'a>> {
    let address = |key: &'a String| match key.strip_suffix("series_id")? {
        "" => Some(""),
        path => path.strip_suffix('/'),
    };
    let addresses: BTreeSet<&str> = metadata.keys().filter_map(address).collect();
    let detector = |address| Detector::new(Fields { metadata, address }, streams, maps);
    addresses.into_iter().filter_map(detector).collect()
}

impl<'a> Detector<'a> {
    fn new(fields: Fields<'a>, streams: &[ImageStream<'a>], maps: &[MapStream<'_>]) -> Option<Self> {
        let pixel = [
            fields.positive(&["pixel_size_x", "x_pixel_size"])?,
            fields.positive(&["pixel_size_y", "y_pixel_size"])?,
        ];
        let known = fields.text(&["channels"]);
        let is_channel = |name: &str| match known {
            Some(known) => known.split(", ").any(|channel| channel == name),
            None => name == V1_CHANNEL,
        };
        let channel = |stream: &ImageStream<'a>| {
            let name = match fields.address {
                "" => stream.name,
                address => stream.name.strip_prefix(address)?.strip_prefix('-')?,
            };
            is_channel(name).then(|| Channel { stream: *stream, name, maps: fields.maps(stream, maps) })
        };
        let channels: Vec<_> = streams.iter().filter_map(channel).collect();
        (!channels.is_empty()).then_some(Self { fields, pixel, channels })
    }

    /// Its streams.
    pub(crate) fn streams(&self) -> impl Iterator<Item = u32> + '_ {
        self.channels.iter().map(|channel| channel.stream.id)
    }

    fn rows(&self) -> u64 {
        self.channels.iter().map(|channel| channel.stream.rows).max().unwrap_or(0)
    }

    /// Wavelength in angstrom, stated or derived from the energy, and the energy in eV if it is stated.
    fn beam(&self) -> (Option<f64>, Option<f64>) {
        let energy = self.fields.positive(&["incident_energy", "photon_energy"]);
        let stated = self.fields.positive(&["incident_wavelength", "wavelength"]);
        (stated.or_else(|| energy.map(|energy| HC / energy)), energy)
    }

    /// Distance from the sample, m. The sign of the translation depends on the firmware.
    fn distance(&self) -> Option<f64> {
        let translation = || {
            let text = self.fields.text(&["detector_translation"])?;
            let &[_, _, z] = &text.split(',').map(number).collect::<Option<Vec<f64>>>()?[..] else {
                return None;
            };
            Some(z.abs()).filter(|z| *z >= POSITIVE_MIN)
        };
        self.fields.positive(&["detector_distance"]).or_else(translation)
    }

    /// Group `entry/instrument/NAME` of a channel.
    fn group(&self, name: &str, channel: &Channel<'_>) -> Group {
        let Channel { stream, maps, .. } = channel;
        let fields = &self.fields;
        let mut group = Group::new("NXdetector");
        group.add("data", Node::Data(stream.id));
        group.add("valid", Node::Valid(stream.id));
        for (map, link) in maps.iter().filter(|(map, _)| **map != COUNTRATE_TABLE) {
            group.add(map, link.clone());
        }
        if let Some(link) = maps.get(COUNTRATE_TABLE) {
            let mut specific = Group::new("NXcollection");
            specific.add(COUNTRATE_TABLE, link.clone());
            group.add(SPECIFIC, Node::Group(specific));
        }
        for (field, keys) in CORRECTIONS {
            group.add_some(field, fields.text(&keys).and_then(|text| text.parse().ok()).map(Field::flag));
        }
        for (field, keys) in [
            ("description", ["detector_description", "description"]),
            ("serial_number", ["detector_serial_number", "detector_number"]),
            ("sensor_material", ["sensor_material"; 2]),
        ] {
            group.add_some(field, fields.text(&keys).map(Field::text));
        }
        let threshold = format!("threshold_energy/{}", channel.name);
        for (field, value, unit) in [
            ("beam_center_x", fields.number(&["beam_center_x"]), "pixel"),
            ("beam_center_y", fields.number(&["beam_center_y"]), "pixel"),
            ("distance", self.distance(), "m"),
            ("x_pixel_size", Some(self.pixel[0]), "m"),
            ("y_pixel_size", Some(self.pixel[1]), "m"),
            ("sensor_thickness", fields.positive(&["sensor_thickness"]), "m"),
            ("count_time", fields.positive(&["count_time"]), "s"),
            ("frame_time", fields.positive(&["frame_time"]), "s"),
            ("threshold_energy", fields.positive(&[&threshold, "threshold_energy"]), "eV"),
        ] {
            group.add_some(field, value.map(|value| Field::float(value, unit)));
        }
        for (field, keys) in [
            ("saturation_value", ["saturation_value", "countrate_correction_count_cutoff"]),
            ("bit_depth_readout", ["bit_depth_readout"; 2]),
        ] {
            group.add_some(field, fields.integer(&keys).map(Field::integer));
        }
        let path = self.place(&mut group, &format!("/entry/instrument/{name}/transformations"));
        group.add_some("depends_on", path.as_deref().map(Field::text));
        group.add("module", Node::Group(self.module(stream.size, path.as_deref().unwrap_or("."))));
        group
    }

    /// Adds the position of the first pixel; returns the path of its last transformation.
    fn place(&self, group: &mut Group, path: &str) -> Option<String> {
        let fields = &self.fields;
        let (x, y) = (fields.number(&["beam_center_x"])?, fields.number(&["beam_center_y"])?);
        let position = [x * self.pixel[0], y * self.pixel[1], self.distance()?];
        let length = position.iter().map(|part| part * part).float_sum().sqrt();
        let mut transformations = Group::new("NXtransformations");
        let arm = Axis::of(fields, TWO_THETA.0, self.rows()).map(Axis::condensed);
        let mut base = ".".to_owned();
        if let Some(arm) = arm {
            arm.add(&mut transformations, TWO_THETA, &base);
            base = format!("{path}/{}", TWO_THETA.0);
        }
        let field = Field::float(length, "m").moves("translation", position.map(|part| part / length), &base);
        transformations.add("translation", Node::Field(field));
        group.add("transformations", Node::Group(transformations));
        Some(format!("{path}/translation"))
    }

    /// The whole image as one module.
    fn module(&self, size: [u64; 2], base: &str) -> Group {
        let mut module = Group::new("NXdetector_module");
        module.add("data_origin", Node::Field(Field::pair([0, 0])));
        module.add("data_size", Node::Field(Field::pair(size)));
        for (name, size, direction) in [
            ("fast_pixel_direction", self.pixel[0], [-1.0, 0.0, 0.0]),
            ("slow_pixel_direction", self.pixel[1], [0.0, -1.0, 0.0]),
        ] {
            module.add(name, Node::Field(Field::float(size, "m").moves("translation", direction, base)));
        }
        module
    }
}

/// Members of `entry` that make it NXmx. `links` are the names of the streams in `entry`, `end_time` is the
/// time of the last image.
pub(crate) fn describe(
    detectors: &[Detector<'_>],
    links: &BTreeMap<u32, String>,
    end_time: Option<String>,
) -> Vec<(String, Node)> {
    let mut entry = Group::new("NXentry");
    let Some(first) = detectors.first() else { return entry.members };
    entry.add("definition", Node::Field(Field::text("NXmx")));
    entry.add_some("end_time_estimated", end_time.as_deref().map(Field::text));
    let general = Fields { metadata: first.fields.metadata, address: "" };
    let name = |keys: &[&str]| Node::Field(Field::text(general.text(keys).unwrap_or(UNKNOWN)));
    let mut instrument = Group::new("NXinstrument");
    instrument.add("name", name(&["instrument_name", "instrument"]));
    instrument.add("beam", Node::Group(beam(detectors)));
    let is_only = detectors.iter().map(|detector| detector.channels.len()).saturating_sum::<usize>() == 1;
    for detector in detectors {
        for channel in &detector.channels {
            let id = channel.stream.id;
            let link = links.get(&id).filter(|link| !INSTRUMENT_NAMES.contains(&link.as_str()));
            let link = link.cloned().unwrap_or_else(|| format!("stream-{id}"));
            let name = if is_only { "detector".to_owned() } else { link };
            instrument.add(&name, Node::Group(detector.group(&name, channel)));
        }
    }
    entry.add("instrument", Node::Group(instrument));
    let mut sample = sample(detectors);
    sample.add("name", name(&["sample_name", "sample"]));
    entry.add("sample", Node::Group(sample));
    let mut source = Group::new("NXsource");
    source.add("name", name(&["source_name", "source"]));
    entry.add("source", Node::Group(source));
    entry.members
}

/// Group `entry/instrument/beam`, from the first detector that knows the beam.
fn beam(detectors: &[Detector<'_>]) -> Group {
    let mut beam = Group::new("NXbeam");
    let known = detectors.iter().map(Detector::beam).find(|(wavelength, _)| wavelength.is_some());
    let (wavelength, energy) = known.unwrap_or((None, None));
    beam.add_some("incident_wavelength", wavelength.map(|value| Field::float(value, "angstrom")));
    beam.add_some("incident_energy", energy.map(|value| Field::float(value, "eV")));
    beam
}

/// Group `entry/sample` without its name, from the first detector that knows the goniometer.
fn sample(detectors: &[Detector<'_>]) -> Group {
    let mut base = ".".to_owned();
    let mut transformations = Group::new("NXtransformations");
    for detector in detectors {
        for axis in SAMPLE_AXES {
            if let Some(angles) = Axis::of(&detector.fields, axis.0, detector.rows()) {
                angles.add(&mut transformations, axis, &base);
                base = format!("/entry/sample/transformations/{}", axis.0);
            }
        }
        if !transformations.members.is_empty() {
            break;
        }
    }
    let mut sample = Group::new("NXsample");
    sample.add("depends_on", Node::Field(Field::text(&base)));
    if !transformations.members.is_empty() {
        sample.add("transformations", Node::Group(transformations));
    }
    sample
}

/// Angles of an axis: one per row.
#[derive(Clone, Copy, Debug)]
struct Axis {
    start: f64,
    increment: f64,
    rows: u64,
}

impl Axis {
    /// `None` if the start is unknown, the increment is malformed, or the axis turns and has too many rows.
    fn of(fields: &Fields<'_>, name: &str, rows: u64) -> Option<Self> {
        let text = |part: &str| {
            let keys = [format!("goniometer/{name}/{part}"), format!("{name}_{part}")];
            fields.text(&[&keys[0], &keys[1]])
        };
        let increment = text("increment").map_or(Some(0.0), number)?;
        let axis = Self { start: number(text("start")?)?, increment, rows };
        (rows <= ANGLES_MAX || axis.increment == 0.0).then_some(axis)
    }

    /// The same with a single row if it does not turn.
    fn condensed(self) -> Self {
        Self { rows: if self.increment == 0.0 { 1 } else { self.rows }, ..self }
    }

    fn add(self, group: &mut Group, (name, direction): (&str, [f64; 3]), base: &str) {
        let Self { start, increment, rows } = self;
        let angles = Field::new(Value::Angles { start, increment, rows }, "degree");
        group.add(name, Node::Field(angles.moves("rotation", direction, base)));
        let set = Field::float(increment, "degree");
        group.add(&format!("{name}_increment_set"), Node::Field(set));
    }
}

/// Fields of one detector in the metadata.
#[derive(Clone, Copy, Debug)]
struct Fields<'a> {
    metadata: &'a BTreeMap<String, String>,
    /// Address of the detector in the keys; empty if the recording has only one.
    address: &'a str,
}

impl<'a> Fields<'a> {
    /// Text under the first of these keys that exists.
    fn text(&self, keys: &[&str]) -> Option<&'a str> {
        let value = |key: &&str| match self.address {
            "" => self.metadata.get(*key),
            address => self.metadata.get(&format!("{address}/{key}")),
        };
        let text = keys.iter().find_map(value)?.as_str();
        let is_text = !text.is_empty() && !text.chars().any(char::is_control);
        (is_text && text.len() <= METADATA_BYTES_MAX).then_some(text)
    }

    /// Links to the maps of a channel. A map of pixels must have the size of the images.
    fn maps(&self, channel: &ImageStream<'_>, maps: &[MapStream<'_>]) -> BTreeMap<&'static str, Node> {
        let of_channel = |map| stream_name(channel.name, map);
        let of_detector = match self.address {
            "" => COUNTRATE_LOOKUP_TABLE.to_owned(),
            address => stream_name(address, COUNTRATE_LOOKUP_TABLE),
        };
        let wanted = [
            (FLATFIELD, of_channel(FLATFIELD)),
            (PIXEL_MASK, of_channel(PIXEL_MASK)),
            (COUNTRATE_LOOKUP_TABLE, of_detector),
            (COUNTRATE_TABLE, of_channel(COUNTRATE_TABLE)),
        ];
        let link = |(map, name): (&'static str, String)| {
            let stream = maps.iter().find(|stream| stream.name == name)?;
            let fits = match map {
                COUNTRATE_TABLE => true,
                COUNTRATE_LOOKUP_TABLE => stream.shape.len() == 1,
                _ => *stream.shape == channel.size,
            };
            let (file, dataset) = (stream.file.to_owned(), stream.dataset.clone());
            fits.then_some((map, Node::External { file, dataset }))
        };
        wanted.into_iter().filter_map(link).collect()
    }

    fn number(&self, keys: &[&str]) -> Option<f64> {
        self.text(keys).and_then(number)
    }

    fn positive(&self, keys: &[&str]) -> Option<f64> {
        self.number(keys).filter(|value| *value >= POSITIVE_MIN)
    }

    fn integer(&self, keys: &[&str]) -> Option<u64> {
        self.text(keys)?.trim().parse().ok()
    }
}

/// A finite number of a plausible magnitude.
fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.abs() <= NUMBER_MAX)
}

#[cfg(test)]
#[path = "nxmx_tests.rs"]
mod tests;

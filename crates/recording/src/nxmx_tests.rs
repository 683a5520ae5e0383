//! Mapping of start messages to NXmx, with fields as DECTRIS documents them and with malformed ones.
use std::collections::BTreeMap;

use super::{
    ANGLES_MAX, Detector, Field, HC, ImageStream, MapStream, Node, SAMPLE_AXES, UNKNOWN, Value, describe,
    detectors, rank,
};

type Metadata = BTreeMap<String, String>;

const V2: [(&str, &str); 19] = [
    ("beam_center_x", "150.5"),
    ("beam_center_y", "100"),
    ("channels", "threshold_1, threshold_2"),
    ("count_time", "0.001"),
    ("detector_description", "DECTRIS EIGER2 Si 1M"),
    ("detector_serial_number", "E-32-0100"),
    ("detector_translation", "0.0112875, 0.0075, -0.2"),
    ("frame_time", "0.002"),
    ("goniometer/omega/increment", "0.1"),
    ("goniometer/omega/start", "10"),
    ("incident_energy", "12398.419843"),
    ("pixel_size_x", "0.000075"),
    ("pixel_size_y", "7.5e-5"),
    ("saturation_value", "50649"),
    ("sensor_material", "Si"),
    ("sensor_thickness", "0.00045"),
    ("series_id", "7"),
    ("threshold_energy/threshold_1", "6199"),
    ("goniometer/two_theta/start", "0"),
];
const V1: [(&str, &str); 12] = [
    ("series_id", "3"),
    ("beam_center_x", "1"),
    ("beam_center_y", "2"),
    ("bit_depth_readout", "16"),
    ("countrate_correction_count_cutoff", "133343"),
    ("detector_distance", "0.15"),
    ("detector_number", "E-08-0101"),
    ("omega_increment", "0.5"),
    ("omega_start", "-90"),
    ("wavelength", "0.98"),
    ("x_pixel_size", "7.5e-05"),
    ("y_pixel_size", "7.5e-05"),
];

fn metadata(entries: &[(&str, &str)]) -> Metadata {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn stream(id: u32, name: &str) -> ImageStream<'_> {
    ImageStream { id, name, size: [200, 300], rows: 60 }
}

/// Members of `entry` by path.
fn tree(detectors: &[Detector<'_>], streams: &[ImageStream<'_>]) -> BTreeMap<String, Node> {
    fn walk(path: &str, nodes: Vec<(String, Node)>, out: &mut BTreeMap<String, Node>) {
        for (name, node) in nodes {
            let path = format!("{path}{name}");
            if let Node::Group(group) = &node {
                walk(&format!("{path}/"), group.members.clone(), out);
            }
            assert!(out.insert(path.clone(), node).is_none(), "{path} is there twice");
        }
    }
    let links = streams.iter().map(|stream| (stream.id, stream.name.to_owned())).collect();
    let mut out = BTreeMap::new();
    walk("", describe(detectors, &links, Some("2026-11-26T08:30:00Z".to_owned())), &mut out);
    out
}

fn tree_of(entries: &Metadata, streams: &[ImageStream<'_>]) -> BTreeMap<String, Node> {
    tree(&detectors(entries, streams, &[]), streams)
}

fn map<'a>(number: u32, name: &'a str, shape: &'a [u64]) -> MapStream<'a> {
    MapStream { name, shape, file: "segment", dataset: number.to_string() }
}

/// A link to the map with this number.
fn link(number: u32) -> Node {
    Node::External { file: "segment".to_owned(), dataset: number.to_string() }
}

fn float(value: f64, units: &str) -> Node {
    Node::Field(Field::float(value, units))
}

fn value(node: &Node) -> &Value {
    match node {
        Node::Field(field) => &field.value,
        _ => panic!("{node:?} is not a field"),
    }
}

#[test]
fn stream_v2_gives_one_detector_per_channel() {
    let streams = [stream(0, "threshold_1"), stream(1, "threshold_2"), stream(7, "other")];
    let tree = tree_of(&metadata(&V2), &streams);
    assert_eq!(tree["definition"], Node::Field(Field::text("NXmx")));
    assert_eq!(tree["instrument/threshold_1/data"], Node::Data(0));
    assert_eq!(tree["instrument/threshold_2/data"], Node::Data(1));
    assert!(!tree.contains_key("instrument/other"));
    let detector = |name: &str| tree[&format!("instrument/threshold_2/{name}")].clone();
    assert_eq!(detector("beam_center_x"), float(150.5, "pixel"));
    assert_eq!(detector("distance"), float(0.2, "m"));
    assert_eq!(detector("x_pixel_size"), float(75e-6, "m"));
    assert_eq!(detector("sensor_thickness"), float(450e-6, "m"));
    assert_eq!(detector("frame_time"), float(0.002, "s"));
    assert_eq!(detector("saturation_value"), Node::Field(Field::integer(50_649)));
    assert_eq!(detector("serial_number"), Node::Field(Field::text("E-32-0100")));
    assert_eq!(detector("module/data_size"), Node::Field(Field::pair([200, 300])));
    let path = "/entry/instrument/threshold_2/transformations/translation";
    assert_eq!(detector("depends_on"), Node::Field(Field::text(path)));
    let slow = Field::float(75e-6, "m").moves("translation", [0.0, -1.0, 0.0], path);
    assert_eq!(detector("module/slow_pixel_direction"), Node::Field(slow));
    assert_eq!(tree["instrument/threshold_1/threshold_energy"], float(6199.0, "eV"));
    assert!(!tree.contains_key("instrument/threshold_2/threshold_energy"));
    assert_eq!(tree["instrument/beam/incident_wavelength"], float(1.0, "angstrom"), "{HC} eV angstrom");
    assert_eq!(tree["sample/name"], Node::Field(Field::text(UNKNOWN)));
}

#[test]
fn stream_v1_gives_one_detector() {
    let streams = [stream(0, "image")];
    let mut entries = metadata(&V1);
    entries.extend(metadata(&[("sample", "lysozyme"), ("source", "SLS")]));
    let tree = tree_of(&entries, &streams);
    assert_eq!(tree["instrument/detector/data"], Node::Data(0));
    assert_eq!(tree["instrument/detector/valid"], Node::Valid(0));
    assert_eq!(tree["instrument/detector/bit_depth_readout"], Node::Field(Field::integer(16)));
    assert_eq!(tree["instrument/detector/saturation_value"], Node::Field(Field::integer(133_343)));
    assert_eq!(tree["instrument/beam/incident_wavelength"], float(0.98, "angstrom"));
    assert_eq!(tree["sample/name"], Node::Field(Field::text("lysozyme")));
    assert_eq!(tree["source/name"], Node::Field(Field::text("SLS")));
    let angles = Value::Angles { start: -90.0, increment: 0.5, rows: 60 };
    assert_eq!(value(&tree["sample/transformations/omega"]), &angles);
}

#[test]
fn maps_are_fields_of_their_channels() {
    let streams = [stream(0, "threshold_1"), stream(1, "threshold_2")];
    let maps = [
        map(10, "threshold_1-flatfield", &[200, 300][..]),
        map(11, "threshold_1-pixel_mask", &[200, 300]),
        map(12, "threshold_2-pixel_mask", &[200, 300]),
        map(13, "countrate_correction_lookup_table", &[500]),
        map(14, "threshold_2-flatfield", &[300, 200]),
        map(15, "threshold_3-flatfield", &[200, 300]),
    ];
    let mut entries = metadata(&V2);
    entries.extend(metadata(&[("flatfield_enabled", "true"), ("pixel_mask_enabled", "false")]));
    let found = detectors(&entries, &streams, &maps);
    let tree = tree(&found, &streams);
    let member = |path: &str| tree.get(&format!("instrument/{path}"));
    assert_eq!(member("threshold_1/flatfield"), Some(&link(10)));
    assert_eq!(member("threshold_1/pixel_mask"), Some(&link(11)));
    assert_eq!(member("threshold_2/pixel_mask"), Some(&link(12)));
    assert_eq!(member("threshold_1/countrate_correction_lookup_table"), Some(&link(13)));
    assert_eq!(member("threshold_2/countrate_correction_lookup_table"), Some(&link(13)));
    assert_eq!(member("threshold_2/flatfield"), None, "it has another size than the images");
    assert_eq!(member("threshold_1/flatfield_applied"), Some(&Node::Field(Field::flag(true))));
    assert_eq!(member("threshold_1/pixel_mask_applied"), Some(&Node::Field(Field::flag(false))));
    assert_eq!(member("threshold_1/countrate_correction_applied"), None);
}

#[test]
fn maps_of_several_detectors_are_told_apart_by_their_address() {
    let prefixed = |address: &str, entries: &[(&str, &str)]| -> Metadata {
        entries.iter().map(|(key, value)| (format!("{address}/{key}"), (*value).to_owned())).collect()
    };
    let mut entries = prefixed("one:1", &V2);
    entries.extend(prefixed("two:1", &V1));
    let streams = [stream(0, "one:1-threshold_1"), stream(16, "two:1-image")];
    let maps = [
        map(100, "one:1-threshold_1-pixel_mask", &[200, 300][..]),
        map(101, "one:1-countrate_correction_lookup_table", &[500]),
        map(148, "two:1-image-pixel_mask", &[200, 300]),
        map(149, "two:1-image-countrate_correction_table", &[2, 500]),
    ];
    let tree = tree(&detectors(&entries, &streams, &maps), &streams);
    let data = tree.iter().filter_map(|(path, node)| match node {
        Node::External { .. } => Some((path.strip_prefix("instrument/").unwrap_or(path), node.clone())),
        _ => None,
    });
    let expected = [
        ("one:1-threshold_1/countrate_correction_lookup_table", link(101)),
        ("one:1-threshold_1/pixel_mask", link(100)),
        ("two:1-image/detectorSpecific/countrate_correction_table", link(149)),
        ("two:1-image/pixel_mask", link(148)),
    ];
    assert_eq!(data.collect::<Vec<_>>(), expected);
}

/// The pixel under the direct beam is on the beam, at the distance of the detector.
#[test]
fn the_direct_beam_hits_the_beam_center() {
    let entries = metadata(&V2);
    let streams = [stream(0, "threshold_1")];
    let tree = tree_of(&entries, &streams);
    let Node::Field(translation) = &tree["instrument/detector/transformations/translation"] else { panic!() };
    let vector = translation.attributes.iter().find_map(|attribute| match attribute {
        crate::hdf5::Attribute::Vector("vector", vector) => Some(*vector),
        _ => None,
    });
    let (Value::Float(length), Some(vector)) = (&translation.value, vector) else { panic!() };
    let [x, y, z] = vector.map(|part| part * length);
    assert!((x - 150.5 * 75e-6).abs() < 1e-12 && (y - 100.0 * 75e-6).abs() < 1e-12, "{vector:?}");
    assert!((z - 0.2).abs() < 1e-12);
}

#[test]
fn axes_are_mounted_on_each_other() {
    let mut entries = metadata(&V2);
    entries.extend(metadata(&[("goniometer/phi/start", "5"), ("goniometer/chi/start", "54.7")]));
    let tree = tree_of(&entries, &[stream(0, "threshold_1")]);
    let path = |name: &str| format!("/entry/sample/transformations/{name}");
    assert_eq!(tree["sample/depends_on"], Node::Field(Field::text(&path("phi"))));
    for (name, base) in [("phi", path("chi")), ("chi", path("omega")), ("omega", ".".to_owned())] {
        let node = &tree[&format!("sample/transformations/{name}")];
        let Node::Field(field) = node else { panic!("{node:?}") };
        assert!(field.attributes.contains(&crate::hdf5::Attribute::Text("depends_on", base)), "{name}");
    }
    assert!(!tree.contains_key("sample/transformations/kappa"));
    assert_eq!(
        value(&tree["instrument/detector/transformations/two_theta"]),
        &Value::Angles { start: 0.0, increment: 0.0, rows: 1 }
    );
    for (name, direction) in SAMPLE_AXES {
        let length: f64 = direction.iter().map(|part| part * part).sum();
        assert!((length - 1.0).abs() < 1e-12, "{name} has length {length}");
    }
}

#[test]
fn detectors_of_a_recording_are_told_apart_by_their_address() {
    let prefixed = |address: &str, entries: &[(&str, &str)]| -> Metadata {
        entries.iter().map(|(key, value)| (format!("{address}/{key}"), (*value).to_owned())).collect()
    };
    let mut entries = prefixed("eiger1:31001", &V2);
    entries.extend(prefixed("eiger2:9999", &V1));
    let streams =
        [stream(0, "eiger1:31001-threshold_1"), stream(16, "eiger2:9999-image"), stream(32, "threshold_1")];
    let found = detectors(&entries, &streams, &[]);
    assert_eq!(
        found.iter().map(|detector| detector.streams().collect()).collect::<Vec<Vec<_>>>(),
        [[0], [16]]
    );
    let tree = tree(&found, &streams);
    assert_eq!(tree["instrument/eiger1:31001-threshold_1/distance"], float(0.2, "m"));
    assert_eq!(tree["instrument/eiger2:9999-image/distance"], float(0.15, "m"));
}

#[test]
fn other_recordings_are_not_described() {
    let streams = [stream(0, "threshold_1"), stream(1, "image")];
    for missing in ["series_id", "pixel_size_x", "pixel_size_y"] {
        let mut entries = metadata(&V2);
        entries.remove(missing);
        assert!(detectors(&entries, &streams, &[]).is_empty(), "without {missing}");
    }
    assert!(detectors(&metadata(&[("sample", "lysozyme")]), &streams, &[]).is_empty());
    assert!(detectors(&metadata(&V2), &[stream(0, "camera")], &[]).is_empty());
    assert!(describe(&[], &BTreeMap::new(), Some("now".to_owned())).is_empty());
}

/// Every value of a peer, replaced by nonsense: it is left out, and all others stay.
#[test]
fn malformed_values_are_left_out() {
    let streams = [stream(0, "threshold_1")];
    let long = "9".repeat(2000);
    let whole = tree_of(&metadata(&V2), &streams);
    for (key, _) in V2 {
        for bad in ["", "NaN", "inf", "-1e300", "1e999", "0x10", "a\0b", "1, 2", "∞", &long] {
            let mut entries = metadata(&V2);
            entries.insert(key.to_owned(), bad.to_owned());
            for (path, node) in tree_of(&entries, &streams) {
                if let Node::Field(Field { value: Value::Float(number), .. }) = &node {
                    assert!(number.is_finite(), "{path}: {number}");
                }
                assert!(whole.contains_key(&path), "{path} appears with {key} = {bad:?}");
            }
        }
    }
    let mut entries = metadata(&V2);
    entries.insert("sensor_thickness".to_owned(), "-1".to_owned());
    let tree = tree_of(&entries, &streams);
    assert_eq!(tree.len() + 1, whole.len());
    assert!(!tree.contains_key("instrument/detector/sensor_thickness"));
}

#[test]
fn names_of_streams_do_not_collide_with_those_of_the_instrument() {
    let mut entries = metadata(&V2);
    entries.insert("channels".to_owned(), "beam, name, detector".to_owned());
    let streams = [stream(0, "beam"), stream(1, "name"), stream(2, "detector")];
    let tree = tree_of(&entries, &streams);
    assert_eq!(tree["instrument/stream-0/data"], Node::Data(0));
    assert_eq!(tree["instrument/stream-1/data"], Node::Data(1));
    assert_eq!(tree["instrument/detector/data"], Node::Data(2));
}

#[test]
fn a_turning_axis_has_a_bounded_number_of_angles() {
    let streams = [ImageStream { rows: ANGLES_MAX + 1, ..stream(0, "threshold_1") }];
    let mut entries = metadata(&V2);
    entries.insert("goniometer/phi/start".to_owned(), "5".to_owned());
    let tree = tree_of(&entries, &streams);
    assert!(!tree.contains_key("sample/transformations/omega"), "it turns");
    assert!(tree.contains_key("sample/transformations/phi"), "it does not turn and takes no space");
}

#[test]
fn the_address_of_a_detector_does_not_hide_what_is_used() {
    for (key, _) in V2.iter().chain(&V1) {
        assert_eq!((rank(key), rank(&format!("eiger1:31001/{key}"))), (0, 0), "{key}");
    }
    assert_eq!(rank("eiger1:31001/flatfield_enabled"), 1);
    assert_eq!([rank("user_data"), rank("sample"), rank("eiger1:31001/arm_date")], [2; 3]);
}

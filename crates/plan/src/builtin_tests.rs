//! Built-in profiles compared with their folder and with the rates in their sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;
use crate::load::{builtin, parse};
use crate::profile::{EventSize, Profile, Transport};
use crate::units::ByteRate;

#[test]
fn every_file_is_embedded_and_the_list_is_sorted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
    // Subfolders contain other kinds of profiles.
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|at| at.path().is_file());
    let files: BTreeSet<String> = files.map(|file| file.file_name().into_string().unwrap()).collect();
    let names: Vec<String> = builtin_names().map(|name| format!("{name}.toml")).collect();
    assert_eq!(files, names.iter().cloned().collect());
    assert!(builtin_names().is_sorted());
}

#[test]
fn every_profile_is_valid_and_says_where_it_comes_from() {
    for name in builtin_names() {
        let profile = builtin(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(profile.name, name);
        assert!(!profile.references.is_empty(), "{name} has no reference");
        assert!(builtin_text(name).unwrap().contains("\ntitle = "), "{name} has no title of its own");
    }
}

#[test]
fn written_out_in_full_every_profile_reads_back_the_same() {
    for name in builtin_names() {
        let profile = builtin(name).unwrap();
        let text = profile.to_toml();
        let alone = |base: &str| panic!("{name} written out still extends {base}");
        assert_eq!(parse(&text, name, &alone).unwrap(), profile, "{text}");
    }
}

/// One row of the table in `docs/profiles.md`.
fn row(profile: &Profile) -> String {
    let rate = ByteRate::new(profile.required_bytes_per_second()).unwrap();
    let size = match profile.event {
        EventSize::Fixed(size) => size.to_string(),
        other => format!("up to {}", other.max()),
    };
    let (verified, unverified): (Vec<_>, Vec<_>) = profile.references.iter().partition(|r| r.verified);
    let work_end =
        |from: &str| [", section", ", abstract", ", title"].iter().find_map(|part| from.find(part));
    let works = verified.iter().flat_map(|r| r.from[..work_end(&r.from).unwrap_or(r.from.len())].split("; "));
    let sources: BTreeSet<&str> = works.collect();
    let join = |parts: Vec<&str>| if parts.is_empty() { "-".to_owned() } else { parts.join("; ") };
    let sources = join(sources.into_iter().collect());
    let unverified = join(unverified.iter().map(|r| r.what.as_str()).collect());
    let Profile { name, title, rate: events, streams, .. } = profile;
    format!("| `{name}` | {title} | {size} | {events} | {streams} | {rate} | {sources} | {unverified} |")
}

#[test]
fn the_page_lists_every_profile_as_it_is() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profiles.md")).unwrap();
    let rows: Vec<String> = builtin_names().map(|name| row(&builtin(name).unwrap())).collect();
    let listed: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| `") && line.contains("/s |")).collect();
    assert_eq!(listed, rows, "the table should be:\n{}", rows.join("\n"));
}

/// Rates in decimal MB/s as stated in papers, slides and pages, within rounding.
#[test]
fn rates_are_those_of_the_sources() {
    let stated = [
        ("agipd-1m", 10_700.0),
        ("alice-flp", 17_500.0),
        ("atlas-phase2", 60_000.0),
        ("citius-840k", 27_000.0),
        ("csl", 80.0),
        ("csl-old", 20.0),
        ("cta-camera", 5400.0),
        ("dalsa-1m60", 126.0),
        ("dune-supernova", 10_000.0),
        ("eiger2-16m", 4800.0),
        ("eiger2-4m", 4190.0),
        ("eiger2-4m-8bit", 2100.0),
        ("frelon-2000", 38.0),
        ("frelon-2k", 126.0),
        ("gbt-cgsr2", 128.0),
        ("gigafrost", 7700.0),
        ("jungfrau", 1050.0),
        ("jungfrau-2khz", 2100.0),
        ("jungfrau-4m", 8400.0),
        ("jungfrau-4m-2khz", 16_800.0),
        ("jungfrau-9m", 37_700.0),
        ("lwa-drx", 79.0),
        ("meerkat-digitiser", 2140.0),
        ("meerkat-visibilities", 136.3),
        ("orca-lightning", 2600.0),
        ("pco-edge-42", 839.0),
        ("pco-edge-55", 1110.0),
        ("pco-panda", 336.0),
        ("photon-ii", 31.5),
        ("pilatus-100k", 37.0),
        ("pilatus3-6m", 2490.0),
        ("pilatus3-6m-cbf", 600.0),
        ("romanis", 200.0),
        ("sarnoff-512", 180.0),
        ("vlbi-flexbuff", 4000.0),
        ("vlbi-mark6", 2000.0),
    ];
    for (name, stated) in stated {
        let rate = builtin(name).unwrap().required_bytes_per_second() / 1e6;
        assert!((rate / stated - 1.0).abs() < 0.012, "{name}: {rate} MB/s, stated are {stated}");
    }
}

#[test]
fn bursts_of_protodune_give_its_average_and_its_peak() {
    let profile = builtin("protodune").unwrap();
    assert!((profile.peak_bytes_per_second() / 6.3e9 - 1.0).abs() < 0.01);
    let mean = profile.required_bytes_per_second();
    assert!((1.2e9..1.35e9).contains(&mean), "{mean}");
}

#[test]
fn supernova_dump_and_acoustic_camera_need_the_stated_space() {
    assert_eq!(builtin("dune-supernova").unwrap().space_needed().0, 1_000_000_000_000);
    let romanis = builtin("romanis").unwrap();
    assert_eq!((romanis.streams, romanis.volumes), (54, 54));
}

#[test]
fn what_is_extended_is_inherited_and_what_is_restated_is_not() {
    let (csl, old) = (builtin("csl").unwrap(), builtin("csl-old").unwrap());
    assert_eq!((old.event, old.drain, old.duration), (csl.event, csl.drain, csl.duration));
    assert!(old.rate < csl.rate);
    assert_eq!(old.description, "");
    let about = |what: &str| old.references.iter().filter(|reference| reference.what == what).count();
    assert_eq!((about("rate"), about("event size"), about("drain")), (1, 1, 1));
    let compressed = builtin("pilatus3-6m-cbf").unwrap();
    assert_eq!(
        (compressed.element, compressed.shape.len()),
        (None, 0),
        "a new size takes no part of the old"
    );
    assert_eq!(compressed.transport, Transport::File);
}

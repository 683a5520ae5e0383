//! Errors with file, key and line; chains of profiles; files on disk.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::units::Bytes;

const MINIMAL: &str = "name = \"x\"\ntitle = \"t\"\n[event]\nsize = \"1 MB\"\n[source]\nrate = \"10 /s\"\n";

fn alone(name: &str) -> Result<String, ProfileError> {
    text_of(name)
}

fn complaint(text: &str) -> String {
    match parse(text, "profiles/x.toml", &alone) {
        Ok(profile) => panic!("accepted: {profile:?}"),
        Err(error) => Cause::of(&error).to_text(),
    }
}

#[test]
fn a_minimal_profile_has_defaults() {
    let profile = parse(MINIMAL, "profiles/x.toml", &alone).unwrap();
    assert_eq!((profile.streams, profile.connections, profile.volumes), (1, 1, 1));
    assert_eq!((profile.block, profile.segment), (Bytes(1 << 20), None));
    assert_eq!((profile.headroom, profile.loss_allowed, profile.drain), (1.3, 0, None));
    assert_eq!(profile.required_bytes_per_second(), 1e7);
}

#[test]
fn a_wrong_unit_is_reported_with_file_line_and_key() {
    let text = complaint(&MINIMAL.replace("10 /s", "80 Mb/s"));
    assert!(
        text.starts_with("profiles/x.toml:6: source.rate: cannot read \"80 Mb/s\" as an event rate"),
        "{text}"
    );
    let text = complaint(&MINIMAL.replace("1 MB", "1 Mb"));
    assert!(text.starts_with("profiles/x.toml:4: event.size: cannot read \"1 Mb\" as a size"), "{text}");
    assert!(text.lines().last().unwrap().starts_with("hint: "), "{text}");
}

#[test]
fn unknown_keys_wrong_types_and_bad_toml_are_reported_with_their_line() {
    let text = complaint(&format!("{MINIMAL}rats = 3\n"));
    assert!(text.starts_with("profiles/x.toml:7: source.rats: unknown field `rats`"), "{text}");
    let text = complaint(&format!("{MINIMAL}streams = \"two\"\n"));
    assert!(text.starts_with("profiles/x.toml:7: source.streams: invalid type"), "{text}");
    let text = complaint(&format!("{MINIMAL}transport = \"pigeon\"\n"));
    assert!(text.starts_with("profiles/x.toml:7: source.transport: unknown variant `pigeon`"), "{text}");
    let text = complaint(&format!("{MINIMAL}streams = = 1\n"));
    assert!(text.starts_with("profiles/x.toml:7: "), "{text}");
    let text = complaint(&format!("{MINIMAL}[[reference]]\nwhat = \"rate\"\n"));
    assert!(text.starts_with("profiles/x.toml:7: reference: missing field `value`"), "{text}");
}

#[test]
fn impossible_values_are_reported_with_the_line_of_their_key() {
    let text = complaint(&format!("{MINIMAL}streams = 0\n"));
    assert_eq!(text, "profiles/x.toml:7: source.streams: 0 is not 1 to 65535");
    let text = complaint(&format!("{MINIMAL}[require]\nheadroom = 0.5\n"));
    assert!(text.starts_with("profiles/x.toml:8: require.headroom: 0.5 is less than 1"), "{text}");
    let text = complaint(&MINIMAL.replace("1 MB", "0 B"));
    assert_eq!(text, "profiles/x.toml:4: event.size: an event of zero bytes carries nothing");
}

#[test]
fn what_is_missing_is_reported_with_the_line_of_its_table() {
    let text = complaint(&MINIMAL.replace("rate = \"10 /s\"\n", ""));
    assert_eq!(text, "profiles/x.toml:5: source.rate: it is missing");
    let text = complaint("name = \"x\"\ntitle = \"t\"\n");
    assert_eq!(text, "profiles/x.toml: event.size: it is missing");
}

#[test]
fn keys_of_another_distribution_are_refused() {
    let text = complaint(&MINIMAL.replace("size = \"1 MB\"", "size = \"1 MB\"\nmax = \"2 MB\""));
    assert_eq!(text, "profiles/x.toml:5: event.max: it needs event.distribution");
    let event = "distribution = \"uniform\"\nmin = \"1 B\"\nmax = \"2 B\"\nsigma = 0.5";
    let text = complaint(&MINIMAL.replace("size = \"1 MB\"", event));
    assert_eq!(text, "profiles/x.toml:7: event.sigma: it has no place in a uniform distribution");
    let text =
        complaint(&MINIMAL.replace("size = \"1 MB\"", "distribution = \"lognormal\"\nmedian = \"1 MB\""));
    assert_eq!(text, "profiles/x.toml:3: event.sigma: it is missing");
}

#[test]
fn a_shape_gives_the_size_and_must_agree_with_one_that_is_given() {
    let array = "element = \"u16\"\nshape = [512, 1024]";
    let profile = parse(&MINIMAL.replace("size = \"1 MB\"", array), "x", &alone).unwrap();
    assert_eq!(profile.event.max(), Bytes(1 << 20));
    let text = complaint(&MINIMAL.replace("size = \"1 MB\"", &format!("size = \"1 MB\"\n{array}")));
    assert_eq!(text, "profiles/x.toml:6: event.shape: the array is 1048576 B, but event.size is 1000000 B");
}

#[test]
fn compressed_images_have_a_shape_and_a_size_of_their_own() {
    let array = "element = \"u16\"\nshape = [512, 1024]\ncompression = \"bslz4\"";
    let event = |text: &str| MINIMAL.replace("size = \"1 MB\"", text);
    let profile = parse(&event(&format!("size = \"200 kB\"\n{array}")), "x", &alone).unwrap();
    assert_eq!((profile.event.max(), profile.uncompressed()), (Bytes(200_000), Some(Bytes(1 << 20))));
    assert_eq!(complaint(&event(array)), "profiles/x.toml:3: event.size: it is missing");
    let text = complaint(&event(&format!("size = \"2 MB\"\n{array}")));
    assert!(text.starts_with("profiles/x.toml:4: event.size: 2.00 MB is not between 1 % of"), "{text}");
    let text = complaint(&event("size = \"1 MB\"\ncompression = \"zip\""));
    assert!(text.starts_with("profiles/x.toml:5: event.compression: ") && text.contains("bslz4"), "{text}");
}

#[test]
fn a_file_is_named_like_its_profile() {
    let error = parse(MINIMAL, "profiles/y.toml", &alone).unwrap_err().to_string();
    assert_eq!(error, "profiles/y.toml:1: name: \"x\" is not the name of its file, \"y\"");
    let text = complaint(&MINIMAL.replace("name = \"x\"\n", ""));
    assert_eq!(text, "profiles/x.toml: name: it is missing");
}

#[test]
fn an_impossible_sum_is_reported_where_the_key_stands() {
    let text = complaint("name = \"x\"\nextends = \"romanis\"\n[source]\nstreams = 2\nconnections = 2\n");
    assert!(text.starts_with("romanis:"), "{text}");
    assert!(text.contains(": record.placement: of 54 volumes some would stay empty"), "{text}");
    let text = complaint("name = \"x\"\nextends = \"csl\"\n\n[record]\nsegment = \"1 kB\"\n");
    assert!(text.starts_with("profiles/x.toml:5: record.segment: "), "{text}");
}

#[test]
fn chains_are_bounded_and_cycles_refused() {
    let link = |name: &str| {
        let n: u32 = name[1..].parse().unwrap();
        Ok(format!("name = \"{name}\"\nextends = \"p{}\"\n", n + 1))
    };
    let first = "name = \"p0\"\nextends = \"p1\"\n";
    let error = parse(first, "p0", &link).unwrap_err().to_string();
    assert_eq!(error, "p7:2: extends: more than 8 profiles in a chain");
    let end = |name: &str| if name == "p7" { Ok(MINIMAL.to_owned()) } else { link(name) };
    assert_eq!(parse(first, "p0", &end).unwrap().name, "p0");
    let cycle = |name: &str| Ok(format!("name = \"{name}\"\nextends = \"p1\"\n"));
    let error = parse(first, "p0", &cycle).unwrap_err().to_string();
    assert_eq!(error, "p1:2: extends: \"p1\" would extend itself");
    let itself = |name: &str| Ok(format!("name = \"{name}\"\nextends = \"{name}\"\n"));
    let error = parse("name = \"p0\"\nextends = \"p0\"\n", "p0", &itself).unwrap_err().to_string();
    assert_eq!(error, "p0:2: extends: \"p0\" would extend itself");
}

#[test]
fn a_file_may_bear_the_name_of_what_it_extends() {
    let mine = parse("name = \"csl\"\nextends = \"csl\"\n", "mine/csl.toml", &alone).unwrap();
    assert_eq!(mine.rate, builtin("csl").unwrap().rate);
}

#[test]
fn unknown_names_are_answered_with_close_ones() {
    let error = Cause::of(&load("romnis").unwrap_err()).to_text();
    let start =
        "cannot find profile \"romnis\": no built-in profile has this name\nhint: did you mean romanis? ";
    assert_eq!(error, format!("{start}`keepup profile list` shows all of them"));
    let error = Cause::of(&load("spectrometer").unwrap_err()).to_text();
    assert!(error.ends_with("\nhint: `keepup profile list` shows all of them"), "{error}");
    let text = complaint("name = \"x\"\nextends = \"cls\"\n");
    assert!(text.starts_with("profiles/x.toml:2: extends: cannot find profile \"cls\""), "{text}");
}

#[test]
fn files_are_loaded_with_what_they_extend() {
    let folder = std::env::temp_dir().join(format!("keepup-plan-load-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let base = MINIMAL.replace("\"x\"", "\"base\"");
    fs::write(folder.join("base.toml"), base).unwrap();
    fs::write(
        folder.join("mine.toml"),
        "name = \"mine\"\nextends = \"base.toml\"\n[run]\nduration = \"10 s\"\n",
    )
    .unwrap();
    fs::write(folder.join("fast.toml"), "name = \"fast\"\nextends = \"csl\"\n[source]\nrate = \"1 kHz\"\n")
        .unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let mine = load(&path("mine.toml"));
    let fast = load(&path("fast.toml"));
    let absent = load(&path("absent.toml"));
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(mine.unwrap().space_needed(), Bytes(100_000_000));
    assert_eq!(fast.unwrap().required_bytes_per_second(), 262_144_000.0);
    let error = Cause::of(&absent.unwrap_err()).to_text();
    assert!(error.contains("absent.toml: No such file") && error.contains("\nhint: "), "{error}");
}

#[test]
fn an_endless_file_is_refused_by_its_size() {
    let error = load("/dev/zero").unwrap_err();
    assert!(
        error.to_string().starts_with("cannot read profile /dev/zero: more than 1048576 bytes"),
        "{error}"
    );
}

proptest! {
    /// Any input gives an error or a valid profile that round-trips, never a panic.
    #[test]
    fn mutilated_profiles_never_panic(
        name in 0..builtin_names().count(), at in 0..2000usize, length in 0..30usize,
        put in "\\PC{0,12}",
    ) {
        let text = text_of(builtin_names().nth(name).unwrap()).unwrap();
        let characters: Vec<char> = text.chars().collect();
        let start = at % characters.len();
        let end = (start + length).min(characters.len());
        let mut text: String = characters[..start].iter().collect();
        text.push_str(&put);
        text.extend(&characters[end..]);
        if let Ok(profile) = parse(&text, "x", &alone) {
            prop_assert!(profile.validate().is_ok());
            prop_assert_eq!(parse(&profile.to_toml(), "x", &alone).unwrap(), profile);
        }
    }
}

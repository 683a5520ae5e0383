//! Parsing and validation of profiles, and which accesses they allow.
use keepup_error::Cause;
use proptest::prelude::*;

use super::*;

fn edu() -> String {
    BUILT_IN[0].1.to_owned()
}

fn refusal(text: &str) -> String {
    TargetProfile::parse("card.toml", text).unwrap_err().to_string()
}

#[test]
fn the_built_in_profile_matches_the_qemu_documentation() {
    let profile = TargetProfile::find("edu").unwrap();
    assert_eq!((profile.name.as_str(), profile.id.as_deref()), ("edu", Some("1234:11e8")));
    assert_eq!(profile.identity, Some(Identity { offset: 0, value: 0x0100_00ed, width: 32 }));
    assert!(profile.may_write(4, Width::Bits32) && profile.may_write(0x98, Width::Bits64));
    assert!(profile.may_write(4, Width::Bits64), "4 and 8 are adjacent");
    for (offset, width) in [(0, 32), (0xc, 8), (8, 64), (0xa0, 8), (0x20, 32), (u64::MAX, 16)] {
        assert!(!profile.may_write(offset, Width::of_bits(width).unwrap()), "{offset:#x}");
    }
    let dma = profile.dma.unwrap();
    assert!(dma.memory_bytes <= 4092 && dma.transfer_max <= 4092, "QEMU 7.2 aborts at 4096");
    assert_eq!((dma.bus_address(), dma.address_bits), (0x800_0000, 28));
    profile.check_within(1 << 20).unwrap();
    assert!(profile.check_within(0x90).unwrap_err().contains("is beyond the 144 bytes"));
}

#[test]
fn inconsistent_profiles_are_refused_with_a_reason() {
    for (old, new, words) in [
        ("name = \"edu\"", "name = \" \"", "name: must not be empty"),
        ("name = \"edu\"", "", "missing field `name`"),
        ("name = \"edu\"", "name = \"edu\"\ncolour = 1", "line 3: unknown field `colour`"),
        ("1234:11e8", "1234-11e8", "id: not of the form"),
        ("to = 0x9f", "to = 0x7f", "write: empty range from 0x80 to 0x7f"),
        ("to = 0x9f", "to = 0x97", "dma.command: write does not list 0x98"),
        ("to = 0x9f", "upto = 0x9f", "line 6"),
        ("0x98, width = 32", "0x98, width = 24", "dma.command: width must be 8"),
        ("0x98, width = 32", "0x96, width = 32", "dma.command: 0x96 is not aligned"),
        ("busy = 0x1", "busy = 0x0", "dma.busy: zero"),
        ("start = 0x1", "start = 0x100000000", "dma.start: zero, or wider"),
        ("alignment = 4", "alignment = 3", "dma.alignment: must be a power of two"),
        ("memory-bytes = 4092", "memory-bytes = 0", "dma.memory-bytes: must be 1 to"),
        ("memory-bytes = 4092", "memory-bytes = 4093", "must be multiples of the alignment"),
        ("memory = 0x40000", "memory = 0xfffffffc", "dma.memory: its end exceeds"),
        ("transfer-max = 4092", "transfer-max = 4094", "dma.transfer-max: must be a multiple"),
        ("address-bits = 28", "address-bits = 33", "dma.address-bits: must be 16 to 48"),
        ("memory-bytes = 4092", "memory-bytes = 0x1000000", ""),
        ("value = 0x010000ed", "value = -1", "line 4"),
    ] {
        let text = edu();
        assert!(text.contains(old), "{old}");
        let changed = text.replacen(old, new, 1);
        match words {
            "" => drop(TargetProfile::parse("card.toml", &changed).unwrap()),
            _ => {
                let why = refusal(&changed);
                assert!(why.contains(words) && why.contains("card.toml"), "{new}: {why}");
            }
        }
    }
    let narrow = edu().replace("address-bits = 28", "address-bits = 16").replace("= 4092", "= 0x9000");
    assert!(refusal(&narrow).contains("too few to transfer"));
}

#[test]
fn an_unknown_profile_lists_the_built_in_ones() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["edo", "/nowhere/card.toml", directory.path().to_str().unwrap()] {
        let why = Cause::of(&TargetProfile::find(name).unwrap_err()).to_text();
        assert!(why.contains(name) && why.contains("hint:") && why.contains("edu"), "{why}");
    }
    let path = directory.path().join("card.toml");
    std::fs::write(&path, "name = \"card\"\nread-to-clear = [0x20]\n").unwrap();
    let profile = TargetProfile::find(path.to_str().unwrap()).unwrap();
    assert!(profile.dma.is_none() && !profile.may_write(0, Width::Bits8));
}

#[test]
fn reads_that_would_change_a_register_are_found() {
    let text = "name = \"card\"\nread-to-clear = [0x20, { from = 0x100, to = 0x1ff }]";
    let profile = TargetProfile::parse("card.toml", text).unwrap();
    let span = |offset, count, is_fifo| Span { offset, count, width: Width::Bits32, is_fifo };
    for (span, allowed, found) in [
        (span(0, 8, false), &[][..], None),
        (span(0, 9, false), &[], Some(0x20)),
        (span(0x24, 55, false), &[], None),
        (span(0, 1 << 20, false), &[0x20], Some(0x100)),
        (span(0, 1 << 20, false), &[0x20, 0x1fc], None),
        (span(0x180, 1, false), &[], Some(0x180)),
        (span(0x1c, 100, true), &[], None),
        (span(0x20, 100, true), &[], Some(0x20)),
        (span(0, u64::MAX, false), &[0x20], Some(0x100)),
    ] {
        assert_eq!(profile.first_cleared(&span, allowed), found, "{span:?} {allowed:?}");
    }
}

proptest! {
    /// A register is writable exactly if the profile lists each of its bytes.
    #[test]
    fn only_listed_bytes_are_writable(
        ranges in prop::collection::vec((0..64u64, 0..16u64), 0..4), offset in 0..96u64,
        bits in prop::sample::select(vec![8u32, 16, 32, 64]),
    ) {
        let written: Vec<String> =
            ranges.iter().map(|(from, more)| format!("{{ from = {from}, to = {} }}", from + more)).collect();
        let text = format!("name = \"card\"\nwrite = [{}]", written.join(", "));
        let profile = TargetProfile::parse("card.toml", &text).unwrap();
        let width = Width::of_bits(bits).unwrap();
        let is_listed = |at: u64| ranges.iter().any(|(from, more)| (*from..=from + more).contains(&at));
        let all = (offset..offset + width.bytes() as u64).all(is_listed);
        prop_assert_eq!(profile.may_write(offset, width), all);
    }

    #[test]
    fn no_text_makes_the_parser_panic(
        text in "(name = \"x\"\n)?[a-z\\-]{0,8} ?=? ?[0-9a-fx\\[\\]{}\", ]{0,20}",
    ) {
        let _ = TargetProfile::parse("any", &text);
    }
}

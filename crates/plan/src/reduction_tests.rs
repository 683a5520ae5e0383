//! Parsing and formatting of reductions.
use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> Reduction {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn user_input_is_parsed() {
    let spectrum = Step::Spectrum { window: Window::Hann, size: None };
    let both = parsed("streams=0-507,600 keep=both: spectrum window=hann | lz4");
    assert_eq!(both.streams, Streams::Listed(vec![0..=507, 600..=600]));
    assert_eq!((both.keep, both.steps), (Keep::Both, vec![spectrum, Step::Lz4]));
    let plain = parsed(" bin by=2x4|lz4 ");
    assert_eq!((plain.streams, plain.keep), (Streams::All, Keep::Reduced));
    assert_eq!(plain.steps, [Step::Bin { rows: 2, columns: 4 }, Step::Lz4]);
    assert_eq!(parsed("streams=all: lz4"), parsed("lz4"));
    assert!(both.streams.contains(507) && both.streams.contains(600) && !both.streams.contains(508));
}

#[test]
fn invalid_reductions_are_refused_with_the_reason() {
    for (text, why) in [
        ("", "no step"),
        ("streams=0:", "no step"),
        ("fft", "no step"),
        ("lz4 | bin by=2", "last"),
        ("lz4 | lz4", "last"),
        ("streams=5-2: lz4", "range"),
        ("streams=70000: lz4", "65535"),
        ("streams=: lz4", "range"),
        ("streams=1 streams=2: lz4", "twice"),
        ("keep=raw: lz4", "keep=both"),
        ("decimate", "by=N is missing"),
        ("decimate by=1", "from 2"),
        ("bin by=1", "changes nothing"),
        ("bin by=2x", "whole number"),
        ("threshold", "at=VALUE is missing"),
        ("threshold at=inf", "not a number"),
        ("spectrum window=blackman", "neither none nor hann"),
        ("spectrum size=2 size=4", "too much"),
        ("lz4 level=9", "not known"),
        ("bin by=2 |bin by=2 |bin by=2 |bin by=2 |bin by=2 |bin by=2 |bin by=2 |bin by=2 |lz4", "at most 8"),
    ] {
        let error = text.parse::<Reduction>().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn two_reductions_of_one_stream_are_refused() {
    let list = |texts: &[&str]| texts.iter().map(|text| parsed(text)).collect::<Vec<_>>();
    assert_eq!(check_apart(&list(&["streams=0-3: lz4", "streams=4-7: bin by=2"])), Ok(()));
    let error = check_apart(&list(&["streams=0-3: lz4", "streams=8,2-5: bin by=2"])).unwrap_err();
    assert!(error.to_string().starts_with("cannot reduce stream 2: it has two reductions"), "{error}");
    assert!(error.hint().unwrap().starts_with("streams=LIST"));
    assert!(check_apart(&list(&["lz4", "streams=9: lz4"])).is_err());
}

#[test]
fn a_stream_finds_its_reduction() {
    let list = [parsed("streams=0-3: lz4"), parsed("streams=4-7: bin by=2")];
    assert_eq!(reduction_of(&list, 4), Some(&list[1]));
    assert_eq!(reduction_of(&list, 8), None);
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (2..=1024u64).prop_map(|by| Step::Decimate { by }),
        (1..1000u64, 2..1000u64).prop_map(|(rows, columns)| Step::Bin { rows, columns }),
        any::<i32>().prop_map(|at| Step::Threshold { at: f64::from(at) / 8.0 }),
        (any::<bool>(), proptest::option::of(2..1u64 << 24)).prop_map(|(hann, size)| Step::Spectrum {
            window: if hann { Window::Hann } else { Window::None },
            size,
        }),
    ]
}

fn streams() -> impl Strategy<Value = Streams> {
    let range = (0..30_000u32, 0..30_000u32).prop_map(|(first, more)| first..=first + more);
    prop_oneof![Just(Streams::All), proptest::collection::vec(range, 1..4).prop_map(Streams::Listed),]
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        streams in streams(),
        both in any::<bool>(),
        mut steps in proptest::collection::vec(step(), 1..7),
        lz4 in any::<bool>(),
    ) {
        if lz4 {
            steps.push(Step::Lz4);
        }
        let keep = if both { Keep::Both } else { Keep::Reduced };
        let reduction = Reduction { streams, keep, steps };
        prop_assert_eq!(&reduction.to_string().parse::<Reduction>().unwrap(), &reduction);
        prop_assert_eq!(&Reduction::from_table(&reduction.table()).unwrap(), &reduction);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ a-z0-9=:|,x.-]{0,40}") {
        if let Ok(reduction) = text.parse::<Reduction>() {
            prop_assert!(!reduction.steps.is_empty());
        }
    }

    #[test]
    fn two_lists_have_a_common_stream_when_some_id_is_in_both(a in streams(), b in streams()) {
        let common = (0..=STREAM_ID_MAX).find(|&id| a.contains(id) && b.contains(id));
        prop_assert_eq!(a.common(&b), common);
    }
}

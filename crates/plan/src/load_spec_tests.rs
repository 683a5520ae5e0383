//! Parsing and formatting of load specifications.
use keepup_error::Cause;
use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> LoadSpec {
    text.parse().unwrap_or_else(|e| panic!("{e}"))
}

fn mb(rate: f64) -> ByteRate {
    ByteRate::new(rate * 1e6).unwrap()
}

#[test]
fn user_input_is_parsed() {
    assert_eq!(parsed("net=50MB/s"), LoadSpec::Net { rate: mb(50.0), from: None });
    let from = Some("daq1:7620".to_owned());
    assert_eq!(parsed("net = 50 MB/s@daq1:7620"), LoadSpec::Net { rate: mb(50.0), from });
    assert_eq!(parsed("memory=2 GB/s"), LoadSpec::Memory { rate: mb(2000.0) });
    assert_eq!(parsed("cpu=0.5"), LoadSpec::Cpu { cores: 0.5 });
    let disk = |directory: &str, way, size| LoadSpec::Disk {
        rate: mb(25.0),
        directory: directory.into(),
        way,
        size: Bytes(size),
    };
    assert_eq!(parsed("disk=25MB/s@/data/a"), disk("/data/a", DiskWay::Read, 1 << 30));
    assert_eq!(parsed("disk=25MB/s@a,b,write"), disk("a,b", DiskWay::Write, 1 << 30));
    assert_eq!(parsed("disk=25MB/s@a,size=64 MiB,read"), disk("a", DiskWay::Read, 64 << 20));
    assert_eq!(parsed("disk=25MB/s@a@b,read,write"), disk("a@b,read", DiskWay::Write, 1 << 30));
}

#[test]
fn invalid_loads_are_refused_with_the_accepted_form() {
    for (text, why) in [
        ("net", "no \"=\""),
        ("gpu=1", "no kind of load"),
        ("net=50", "the unit is missing"),
        ("net=200 Mbit/s", "25 MB/s"),
        ("net=0 B/s", "no load"),
        ("net=1MB/s@daq1", "the port is missing"),
        ("net=1MB/s@:7620", "the host is missing"),
        ("net=1MB/s@::1:7620", "brackets"),
        ("net=1MB/s@daq1:0", "from 1 to 65535"),
        ("disk=25MB/s", "where"),
        ("disk=25MB/s@,read", "where"),
        ("disk=25MB/s@/a,size=1 MiB", "too small"),
        ("disk=25MB/s@/a,size=1", "unit is missing"),
        ("cpu=0", "number of cores"),
        ("cpu=-1", "number of cores"),
        ("cpu=inf", "number of cores"),
        ("memory=fast", "begin with a number"),
    ] {
        let error = Cause::of(&text.parse::<LoadSpec>().unwrap_err()).to_text();
        assert!(error.contains(why), "{text}: {error}");
    }
}

fn spec() -> impl Strategy<Value = LoadSpec> {
    let rate = || (1.0..1e13f64).prop_map(|rate| ByteRate::new(rate).unwrap());
    let way = prop_oneof![Just(DiskWay::Read), Just(DiskWay::Write)];
    let directory = proptest::collection::vec(
        prop_oneof!["[a-z/@= ]{1,4}", Just(",read".to_owned()), Just(",size=1 GiB".to_owned())],
        1..4,
    );
    // A name that begins with a comma has no directory before it.
    let directory = directory.prop_map(|parts| format!("d{}", parts.concat()));
    prop_oneof![
        (rate(), proptest::option::of("[a-z0-9.-]{1,9}:[1-9][0-9]{0,3}"))
            .prop_map(|(rate, from)| LoadSpec::Net { rate, from }),
        (rate(), directory, way, FILE_BYTES_MIN..u64::MAX).prop_map(|(rate, directory, way, size)| {
            LoadSpec::Disk { rate, directory: directory.into(), way, size: Bytes(size) }
        }),
        rate().prop_map(|rate| LoadSpec::Memory { rate }),
        (0.001..CORES_MAX).prop_map(|cores| LoadSpec::Cpu { cores }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_reads_back_as_the_same(spec in spec()) {
        prop_assert_eq!(spec.to_string().parse::<LoadSpec>(), Ok(spec));
    }

    #[test]
    fn no_text_breaks_the_reader(text in "(net|disk|cpu|memory|x)?=?.{0,30}") {
        if let Ok(spec) = text.parse::<LoadSpec>() {
            prop_assert!(spec.asked() > 0.0);
            prop_assert_eq!(spec.to_string().parse::<LoadSpec>(), Ok(spec));
        }
    }
}

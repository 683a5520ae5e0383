//! Machines of the papers against what was published, bad files, and settings.
use proptest::prelude::*;

use super::*;
use crate::solve::solve;

/// MB/s of a path of a built-in machine after settings.
fn rate(name: &str, path: &str, settings: &[&str]) -> f64 {
    let mut machine = machine(name).unwrap();
    settings.iter().for_each(|setting| machine.with(setting).unwrap());
    solve(&machine.system(path, None, &mut |figure| figure.value).unwrap()).bytes_per_second / 1e6
}

/// What limits a path.
fn bottleneck(name: &str, path: &str, settings: &[&str]) -> String {
    let mut machine = machine(name).unwrap();
    settings.iter().for_each(|setting| machine.with(setting).unwrap());
    let system = machine.system(path, None, &mut |figure| figure.value).unwrap();
    solve(&system).limits[0].name.clone()
}

#[test]
fn every_machine_loads_and_every_path_has_a_rate_and_reads_back() {
    for name in machine_names() {
        let machine = machine(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.name, name);
        for path in machine.path.keys() {
            let operation = machine.path[path].operation.is_none().then_some(1e6);
            for mut end in [|f: &Ranged| f.value, |f: &Ranged| f.low, |f: &Ranged| f.high] {
                let system = machine.system(path, operation, &mut end).unwrap();
                let rate = solve(&system).bytes_per_second;
                assert!(rate > 0.0 && rate.is_finite(), "{name} {path}: {rate}");
            }
        }
        let text = machine.to_toml().unwrap();
        let back = Machine::parse(&text, "again").unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(back, machine, "{text}");
    }
}

#[test]
fn romanis_grows_by_the_disk_until_the_loop_is_full() {
    for path in ["write", "write-tl"] {
        let with = |disks: u32| rate("papers/romanis", path, &[&format!("disks={disks}")]);
        let each = with(1);
        assert_eq!(each, 18.0);
        for disks in 1..=5 {
            assert!((with(disks) / each / f64::from(disks) - 1.0).abs() < 1e-9, "{path}: {disks} disks");
        }
        // The knee: the limit over the rate of a disk.
        let limit = with(8);
        let knee = limit / each;
        assert!((5.0..6.0).contains(&knee), "{path}: the knee is at {knee}");
        assert_eq!(with(6), limit);
    }
    let (isp, tl) = (rate("papers/romanis", "write", &[]), rate("papers/romanis", "write-tl", &[]));
    assert!((isp / tl - 1.0).abs() < 0.05, "both chips are alike: {isp} {tl}");
}

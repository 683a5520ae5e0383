//! How long ratings last, what is subtracted from them, and what is said of worn disks.
use keepup_measure::environment::Reading;
use proptest::prelude::*;

use super::*;

const DAY: f64 = 86_400.0;
const HOUR: f64 = 3600.0;

/// 40 MB/s on each volume, runs of 8 h.
fn usage(required_seconds: f64) -> Usage {
    Usage { written_each: 40e6, run_seconds: 8.0 * HOUR, required_seconds }
}

fn disk(name: &str, used_percent: u8, written_bytes: Option<u64>) -> DiskWear {
    DiskWear {
        disk: name.into(),
        used_percent,
        spare_percent: 100,
        spare_threshold_percent: 10,
        is_degraded: false,
        written_bytes,
    }
}

/// A volume on disks, of which some could be asked.
fn volume(path: &str, disks: &[(&str, Option<DiskWear>)]) -> VolumeDisks {
    let reading = |wear: &Option<DiskWear>| {
        wear.clone().map_or_else(|| Reading::NotReadable("no permission".into()), Reading::Value)
    };
    let disks = disks.iter().map(|(name, wear)| ((*name).to_owned(), reading(wear)));
    VolumeDisks { path: path.into(), disks: disks.collect() }
}

fn tb(tb: u64) -> u64 {
    tb * 1_000_000_000_000
}

#[test]
fn a_rating_lasts_for_what_it_leaves_to_write() {
    let fresh = volume("/data/a", &[("nvme0n1", Some(disk("nvme0n1", 12, Some(tb(80)))))]);
    let wear = Wear::of(&[fresh], &[tb(600)], &usage(1826.25 * DAY));
    let endurance = wear.endurance.as_ref().unwrap();
    // 520 TB at 40 MB/s.
    assert_eq!(endurance.seconds, 13e6);
    assert_eq!(endurance.runs, 13e6 / 28_800.0);
    assert_eq!(
        wear.limits(),
        ["the rated endurance of /data/a (600 TB, 80.0 TB already written) lasts 150 days of continuous \
          recording at the required rate, 451 runs of 8 h; the profile requires 1826 days"]
    );
    let enough = Wear::of(&[volume("/data/a", &[])], &[tb(600)], &usage(8.0 * HOUR));
    assert_eq!((enough.limits(), enough.endurance.unwrap().written_bytes), (vec![], None));
}

#[test]
fn the_volume_that_is_worn_out_first_decides() {
    let volumes = [volume("/data/a", &[]), volume("/data/b", &[])];
    let first = |rated: [u64; 2]| Wear::of(&volumes, &rated, &usage(0.0)).endurance.unwrap().path;
    assert_eq!(first([tb(600), tb(300)]), "/data/b");
    assert_eq!(first([tb(300), tb(600)]), "/data/a");
    assert_eq!(Wear::of(&volumes, &[], &usage(DAY)), Wear::default());
}

#[test]
fn bytes_of_a_shared_disk_or_of_several_are_not_subtracted() {
    let known = |name: &'static str| (name, Some(disk(name, 1, Some(tb(100)))));
    let written = |volumes: &[VolumeDisks]| {
        Wear::of(volumes, &vec![tb(600); volumes.len()], &usage(0.0)).endurance.unwrap().written_bytes
    };
    assert_eq!(written(&[volume("/data/a", &[known("nvme0n1")])]), Some(tb(100)));
    assert_eq!(written(&[volume("/data/a", &[known("nvme0n1"), known("nvme1n1")])]), None);
    let shared = [volume("/data/a", &[known("nvme0n1")]), volume("/data/b", &[known("nvme0n1")])];
    assert_eq!(written(&shared), None);
    assert_eq!(Wear::of(&shared, &[], &usage(0.0)).disks.len(), 1);
    assert_eq!(written(&[volume("/data/a", &[("nvme0n1", None)])]), None);
    // More written than rated leaves nothing.
    let over = volume("/data/a", &[("nvme0n1", Some(disk("nvme0n1", 130, Some(tb(700)))))]);
    assert_eq!(Wear::of(&[over], &[tb(600)], &usage(0.0)).endurance.unwrap().seconds, 0.0);
}

#[test]
fn a_worn_disk_is_named_with_its_figures() {
    let said = |change: fn(&mut DiskWear)| {
        let mut wear = disk("nvme0n1", 12, None);
        change(&mut wear);
        Wear::of(&[volume("/data/a", &[("nvme0n1", Some(wear))])], &[], &usage(0.0)).limits()
    };
    assert_eq!(said(|_| {}), Vec::<String>::new());
    assert_eq!(said(|d| d.used_percent = 99), Vec::<String>::new());
    assert_eq!(said(|d| d.used_percent = 100), ["disk nvme0n1 reports wear: 100 % of its rated life used"]);
    assert_eq!(said(|d| d.spare_percent = 10), Vec::<String>::new());
    assert_eq!(
        said(|d| (d.spare_percent, d.is_degraded) = (9, true)),
        ["disk nvme0n1 reports wear: spare of 9 %, below its threshold of 10 %, degraded reliability"]
    );
}

proptest! {
    #[test]
    fn a_higher_rating_never_lasts_shorter_and_a_higher_rate_never_longer(
        rated in 1u64..1 << 60, more in 0u64..1 << 60, written in 0u64..1 << 60, faster in 1.0f64..100.0,
    ) {
        let lasts = |rated, written_each| {
            let disks = [("nvme0n1", Some(disk("nvme0n1", 1, Some(written))))];
            let usage = Usage { written_each, ..usage(DAY) };
            Wear::of(&[volume("/data/a", &disks)], &[rated], &usage).endurance.unwrap().seconds
        };
        let base = lasts(rated, 40e6);
        prop_assert!(base >= 0.0 && base.is_finite());
        prop_assert!(lasts(rated + more, 40e6) >= base);
        prop_assert!(lasts(rated, 40e6 * faster) <= base);
    }
}

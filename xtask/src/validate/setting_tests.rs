//! The machine files of a validation, with the ceilings of journal 0020.
use keepup_model::{Ask, Machine, predict};

use super::super::Ceilings;
use super::{Load, SETTINGS, Setting};

fn ceilings() -> Ceilings {
    Ceilings {
        pipeline: 3086e6,
        loopback: 3500e6,
        disk: 1500e6,
        disks: 1500e6,
        seconds_per_gb: 0.63,
        throttled: vec![(60, 58.8e6), (200, 198.5e6)],
        links: vec![(400, 49.9e6), (1000, 124.8e6), (1600, 199.6e6)],
    }
}

fn rate(setting: &Setting) -> f64 {
    let text = setting.machine(&ceilings()).unwrap();
    let machine = Machine::parse(&text, "machine.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let ask = Ask {
        path: None,
        operation_bytes: Some(1_048_576.0),
        event_bytes: None,
        required_bytes_per_second: None,
        headroom: 1.0,
        outstanding: None,
        stall_seconds: Vec::new(),
        stall_every_seconds: None,
        buffer_bytes: None,
        samples: 0,
        seed: 1,
    };
    predict(&machine, &ask, "").unwrap_or_else(|error| panic!("{error}\n{text}")).bytes_per_second
}

#[test]
fn every_configuration_is_predicted() {
    for setting in SETTINGS {
        let found = rate(setting);
        assert!((40e6..500e6).contains(&found), "{}: {found}", setting.name);
    }
}

#[test]
fn a_load_on_the_recorders_disk_gets_its_part_of_the_queue() {
    let setting = SETTINGS.iter().find(|setting| matches!(setting.load, Some(Load::Disk(_)))).unwrap();
    // Measured: 58.2 to 58.8 MB/s. Equal shares would leave 38.8.
    let found = rate(setting);
    assert!((found / 58.8e6 - 1.0).abs() < 0.05, "{found}");
}

//! Command line of a guest. The behaviour of guests is tested with keepup in
//! `tests/registers/guest.rs`.
use super::*;

fn arguments(guest: &Guest<'_>) -> String {
    let scratch = Scratch { directory: tempfile::tempdir().unwrap(), shared: None };
    guest.arguments(&scratch).join(" ")
}

#[test]
fn an_iommu_and_counting_are_there_only_when_asked_for() {
    let store = Store::at_its_place().unwrap();
    let plain = arguments(&Guest::new(&store, Machine::Pc));
    assert!(plain.contains("-machine pc "), "{plain}");
    assert!(!plain.contains("iommu") && !plain.contains("icount"), "{plain}");
    let full = arguments(&Guest::new(&store, Machine::Q35).counting_instructions());
    assert!(full.contains("-device intel-iommu") && full.contains("intel_iommu=on"), "{full}");
    assert!(full.contains("-icount shift=3,sleep=off"), "{full}");
}

#[test]
fn every_device_stands_at_its_address() {
    let store = Store::at_its_place().unwrap();
    let all = arguments(&Guest::new(&store, Machine::Pc).devices(&Device::ALL));
    for device in Device::ALL {
        let slot = device.address().strip_prefix("0000:00:0").and_then(|rest| rest.strip_suffix(".0"));
        assert!(device.option().ends_with(&format!(",addr={}", slot.unwrap())), "{device:?}");
        assert!(all.contains(device.option()), "{all}");
    }
}

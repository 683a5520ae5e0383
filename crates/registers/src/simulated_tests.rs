//! Simulated devices are found by their PCI number, once they are bound to vfio-pci.
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn a_simulated_device_is_ready_once_it_is_bound() {
    let root = tempfile::tempdir().unwrap();
    let function = |name: &str, device: &str| {
        let path = root.path().join("sys/bus/pci/devices").join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("vendor"), "0x1234\n").unwrap();
        std::fs::write(path.join("device"), device).unwrap();
        path
    };
    assert_eq!(simulated_devices(root.path()), []);
    let [card, _, screen] =
        [("0000:00:05.0", "0x11e8\n"), ("0000:00:04.0", "0x11e8\n"), ("0000:00:02.0", "0x1111\n")]
            .map(|(name, device)| function(name, device));
    assert_eq!(simulated_devices(root.path()), []);
    for path in [card, screen] {
        symlink("../../../bus/pci/drivers/vfio-pci", path.join("driver")).unwrap();
    }
    let found = simulated_devices(root.path());
    assert_eq!(
        found,
        [SimulatedDevice { target: "vfio:0000:00:05.0/bar0".into(), profile: Some("edu".into()) }]
    );
    let target: Target = found[0].target.parse().unwrap();
    assert!(matches!(target, Target::Vfio { bar: 0, .. }));
}

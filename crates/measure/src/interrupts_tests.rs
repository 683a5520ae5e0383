//! Interrupts are counted for the adapters of disks only.
use std::fs;
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn interrupts_of_the_adapters_of_disks_are_added() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    // Two disks of one adapter with three interrupts, a disk on a pin, a network card, and a loop device.
    for disk in ["host0/target0/sda", "host0/target1/sdb"] {
        fs::create_dir_all(path("sys/devices/pci0/0000:01:00.0").join(disk)).unwrap();
    }
    for number in ["40", "41", "42"] {
        fs::create_dir_all(path("sys/devices/pci0/0000:01:00.0/msi_irqs").join(number)).unwrap();
    }
    fs::create_dir_all(path("sys/devices/pci0/0000:02:00.0/ata1/sdc")).unwrap();
    fs::write(path("sys/devices/pci0/0000:02:00.0/irq"), "16\n").unwrap();
    fs::create_dir_all(path("sys/block/loop0")).unwrap();
    for (disk, device) in [
        ("sda", "0000:01:00.0/host0/target0/sda"),
        ("sdb", "0000:01:00.0/host0/target1/sdb"),
        ("sdc", "0000:02:00.0/ata1/sdc"),
    ] {
        fs::create_dir_all(path("sys/block").join(disk)).unwrap();
        symlink(path("sys/devices/pci0").join(device), path("sys/block").join(disk).join("device")).unwrap();
    }
    assert_eq!(storage_interrupts(root.path()), None);
    fs::create_dir_all(path("proc")).unwrap();
    let lines = " CPU0 CPU1\n 16: 3 4 IO-APIC ahci\n 40: 9 0 PCI-MSI hba-config\n 41: 100 20 PCI-MSI hba-0\n \
                 42: 0 1000 PCI-MSI hba-1\n 50: 7 7 PCI-MSI eth0\nLOC: 5 5 Local timer interrupts\n";
    fs::write(path("proc/interrupts"), lines).unwrap();
    assert_eq!(storage_interrupts(root.path()), Some(7 + 120 + 1000));
}

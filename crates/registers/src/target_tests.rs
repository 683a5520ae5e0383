//! Parsing of target names.
use keepup_error::Cause;
use proptest::prelude::*;

use super::*;

#[test]
fn target_names_are_parsed_and_printed() {
    for name in [
        "ram",
        "pci:0000:00:04.0/bar0",
        "pci:10ab:ff:1f.7/bar5",
        "pci-config:0000:00:02.0",
        "vfio:0000:00:04.0/bar0",
        "uio:0",
        "uio:7/map4",
        "uio:0000:00:04.0/bar2",
        "vme:/dev/bus/vme/m0",
        "vme:/dev/bus/vme/m1,address=0x10000,size=0x1000,space=A24,cycle=BLT+SUPER+DATA,width=16",
        "xdma:/x:y",
        "ipbus://[::1]:1",
    ] {
        assert_eq!(name.parse::<Target>().unwrap().to_string(), name);
    }
    assert_eq!("ram:".parse::<Target>().unwrap().to_string(), "ram");
    assert_eq!("pci:00:04.0/bar2".parse::<Target>().unwrap().to_string(), "pci:0000:00:04.0/bar2");
    assert_eq!("uio:/dev/uio3/bar1".parse::<Target>().unwrap().to_string(), "uio:3/bar1");
    assert_eq!("vfio:00:1F.3/bar0".parse::<Target>().unwrap().function(), Some("0000:00:1f.3"));
    assert_eq!("uio:/dev/uio3".parse::<Target>().unwrap().function(), None);
    assert_eq!("pci-config:00:1F.3".parse::<Target>().unwrap().to_string(), "pci-config:0000:00:1f.3");
}

#[test]
fn invalid_target_names_are_refused_with_a_reason() {
    for (name, word) in [
        ("", "kind"),
        ("ram:x", "kind"),
        ("usb:1", "kind"),
        ("xdma:", "kind"),
        ("ipbus:host", "HOST:PORT"),
        ("ipbus://", "HOST:PORT"),
        ("pci:0000:00:04.0", "no BAR"),
        ("pci:0000:00:04.0/bar6", "0 to 5"),
        ("pci:0000:00:04.0/bar", "0 to 5"),
        ("pci:0000:00:04.8/bar0", "lspci"),
        ("pci:../../etc.0/bar0", "lspci"),
        ("pci-config:0000:0:04.0", "lspci"),
        ("pci:0000:00:04.0/bar00", "0 to 5"),
        ("vfio:0000:00:04.0", "no BAR"),
        ("vfio:4/bar0", "lspci"),
        ("uio:", "/dev/uio0"),
        ("uio:0/map5", "0 to 4"),
        ("uio:0/bar6", "0 to 5"),
        ("uio:0/resource0", "/map0 or /bar0"),
        ("vme:", "kind"),
        ("vme:/dev/bus/vme/m0,size=0x1000", "address"),
    ] {
        let why = Cause::of(&name.parse::<Target>().unwrap_err()).to_text();
        assert!(why.contains(word) && why.contains("hint: ram |"), "{name}: {why}");
    }
}

proptest! {
    #[test]
    fn printing_and_parsing_a_target_round_trips(
        name in "(pci:|pci-config:|xdma:|vfio:|uio:|vme:)?[0-9a-f:./barmp]{0,24}",
    ) {
        if let Ok(target) = name.parse::<Target>() {
            prop_assert_eq!(target.to_string().parse::<Target>().unwrap(), target);
        }
    }
}

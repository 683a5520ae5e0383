//! Binding and restoring of a function in a simulated sysfs, and refusal while it is in use.
use std::os::unix::fs::symlink;

use keepup_error::Cause;

use super::*;

const FUNCTION: &str = "0000:00:04.0";

/// A function bound to `igb`, with an interface and a disk below it, and three drivers.
fn machine() -> (tempfile::TempDir, PathBuf) {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    let put = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let device = root.join("sys/devices/pci0000:00").join(FUNCTION);
    for driver in ["igb", "vfio-pci", "picky"] {
        put(&format!("sys/bus/pci/drivers/{driver}/bind"), "");
        put(&format!("sys/bus/pci/drivers/{driver}/unbind"), "");
    }
    put("sys/bus/pci/drivers_probe", "");
    let below = format!("sys/devices/pci0000:00/{FUNCTION}");
    put(&format!("{below}/driver_override"), "(null)\n");
    put(&format!("{below}/net/eth7/flags"), "0x1002\n");
    put(&format!("{below}/block/sdq/dev"), "65:0\n");
    put(&format!("{below}/block/sdq/holders/.keep"), "");
    fs::remove_file(root.join(&below).join("block/sdq/holders/.keep")).unwrap();
    put("sys/devices/virtual/net/lo/flags", "0x9\n");
    for (class, name, place) in [
        ("net", "eth7", format!("{below}/net/eth7")),
        ("net", "lo", "sys/devices/virtual/net/lo".into()),
        ("block", "sdq", format!("{below}/block/sdq")),
    ] {
        fs::create_dir_all(root.join("sys/class").join(class)).unwrap();
        symlink(root.join(place), root.join("sys/class").join(class).join(name)).unwrap();
    }
    fs::create_dir_all(root.join("sys/bus/pci/devices")).unwrap();
    symlink(&device, root.join("sys/bus/pci/devices").join(FUNCTION)).unwrap();
    symlink(root.join("sys/bus/pci/drivers/igb"), device.join("driver")).unwrap();
    put("proc/swaps", "Filename Type Size Used Priority\n");
    put("proc/self/mountinfo", "1 0 0:1 / / rw - tmpfs tmpfs rw\n");
    (tree, device)
}

/// Simulates the kernel's reaction to a write. The driver `picky` accepts no function.
fn kernel(path: &Path, text: &str) -> io::Result<()> {
    write_existing(path, text)?;
    let sys = path.ancestors().find(|path| path.ends_with("sys")).unwrap().to_owned();
    let device = sys.join("bus/pci/devices").join(FUNCTION);
    let give = |driver: &str| match driver {
        "picky" => Err(io::Error::from_raw_os_error(19)),
        _ => symlink(sys.join("bus/pci/drivers").join(driver), device.join("driver")),
    };
    match path.file_name().unwrap().to_str().unwrap() {
        "driver_override" => fs::write(path, text),
        "unbind" => fs::remove_file(device.join("driver")),
        "bind" => give(path.parent().unwrap().file_name().unwrap().to_str().unwrap()),
        "drivers_probe" => {
            let wanted = fs::read_to_string(device.join("driver_override")).unwrap();
            // A driver that refuses the function causes no error of probing.
            if wanted.trim() != "picky" { give(wanted.trim()) } else { Ok(()) }
        }
        other => panic!("{other}"),
    }
}

fn target() -> Target {
    format!("vfio:{FUNCTION}/bar0").parse().unwrap()
}

fn driver(device: &Path) -> Option<String> {
    link_name(&device.join("driver"))
}

#[test]
fn a_function_is_bound_and_restored() {
    let (tree, device) = machine();
    let binding = Binding::with_writer(&target(), tree.path(), "vfio-pci", kernel).unwrap().unwrap();
    assert_eq!(driver(&device).as_deref(), Some("vfio-pci"));
    assert_eq!((binding.function(), binding.previous_driver()), (FUNCTION, Some("igb")));
    assert!(
        Binding::with_writer(&target(), tree.path(), "vfio-pci", kernel).unwrap().is_none(),
        "bound already"
    );
    assert_eq!(binding.restore().unwrap(), "igb");
    assert_eq!(driver(&device).as_deref(), Some("igb"));
    assert_eq!(fs::read_to_string(device.join("driver_override")).unwrap(), "\n");
    // A function without a driver but with an override; restored on drop.
    fs::remove_file(device.join("driver")).unwrap();
    fs::write(device.join("driver_override"), "picky\n").unwrap();
    drop(Binding::with_writer(&target(), tree.path(), "vfio-pci", kernel).unwrap().unwrap());
    assert_eq!(driver(&device), None);
    assert_eq!(fs::read_to_string(device.join("driver_override")).unwrap(), "picky");
}

#[test]
fn a_failed_binding_restores_the_previous_driver() {
    let (tree, device) = machine();
    let why =
        Cause::of(&Binding::with_writer(&target(), tree.path(), "picky", kernel).unwrap_err()).to_text();
    assert!(why.contains("driver refused it") && why.contains("dmesg"), "{why}");
    assert_eq!(driver(&device).as_deref(), Some("igb"));
    assert_eq!(fs::read_to_string(device.join("driver_override")).unwrap(), "\n");
    for wrong in ["nvme", "", "..", "../igb"] {
        let why =
            Cause::of(&Binding::with_writer(&target(), tree.path(), wrong, kernel).unwrap_err()).to_text();
        assert!(why.contains("no PCI driver") && why.contains("modprobe"), "{why}");
    }
    let ram = "ram:".parse().unwrap();
    let why = Binding::with_writer(&ram, tree.path(), "picky", kernel).unwrap_err().to_string();
    assert!(why.contains("names none"), "{why}");
    fn forbidden(_: &Path, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
    let why = Cause::of(&Binding::with_writer(&target(), tree.path(), "vfio-pci", forbidden).unwrap_err())
        .to_text();
    assert!(why.contains("driver_override") && why.contains("hint: use sudo"), "{why}");
}

#[test]
fn a_failed_restore_hints_at_the_manual_command() {
    let (tree, _) = machine();
    let binding = Binding::with_writer(&target(), tree.path(), "vfio-pci", kernel).unwrap().unwrap();
    fs::remove_dir_all(tree.path().join("sys/bus/pci/drivers/igb")).unwrap();
    let why = Cause::of(&binding.restore().unwrap_err()).to_text();
    assert!(why.contains("to igb failed") && why.contains("hint: echo 0000:00:04.0 | sudo tee"), "{why}");
}

#[test]
fn a_function_in_use_is_refused() {
    let mount = |number: &str, source: &str| format!("7 1 {number} / /data rw - xfs {source} rw\n");
    for (file, text, words) in [
        ("sys/class/net/eth7/flags", "0x1003\n".to_owned(), "eth7 is up"),
        ("proc/self/mountinfo", mount("0:44", "/dev/sdq"), "/dev/sdq is mounted at /data"),
        ("proc/self/mountinfo", mount("65:0", "/dev/root"), "/dev/sdq is mounted"),
        ("proc/swaps", "/dev/sdq partition 8 0 -2\n".into(), "/dev/sdq is swap"),
        ("sys/class/block/sdq/holders/md0", String::new(), "/dev/sdq is part of another device"),
    ] {
        let (tree, device) = machine();
        fs::write(tree.path().join(file), text).unwrap();
        let refused =
            Binding::with_writer(&target(), tree.path(), "vfio-pci", |_, _| panic!("written")).unwrap_err();
        let why = Cause::of(&refused).to_text();
        assert!(why.contains(words) && why.contains("is in use") && why.contains("hint:"), "{why}");
        assert_eq!(driver(&device).as_deref(), Some("igb"));
    }
    assert_eq!(multipath_head("nvme0c1n1").as_deref(), Some("nvme0n1"));
    assert_eq!(
        (multipath_head("nvme0n1"), multipath_head("sdc"), multipath_head("nvmecn")),
        (None, None, None)
    );
}

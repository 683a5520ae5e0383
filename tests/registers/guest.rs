//! keepup in a virtual machine with test devices and drivers. `cargo xtask guest prepare` creates the guest.
use std::time::Duration;

use keepup_testkit::guest::{Device, Drivers, Guest, GuestOutput, Machine, available};

use crate::common::directory;

/// Runs a script that must succeed.
pub(crate) fn run(guest: &Guest<'_>, script: &str) -> GuestOutput {
    let output = guest.run(script).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(output.status, 0, "{output:#?}");
    output
}

/// Ends a script at its first failed command.
pub(crate) const STRICT: &str = "set -e\n";

/// Checks the identity and registers of every device, UIO and VME.
const LOOK: &str = r#"
part version keepup --version
part doctor sh -c 'keepup doctor --json || [ $? = 1 ]'
for device in 04 05 06; do
    cd /sys/bus/pci/devices/0000:00:$device.0
    part config$device hexdump -n 4 -e '4/1 "%02x"' config
    part bars$device cat resource
    echo 1 >enable
    cd /
done
edu=$(bar 0000:00:04.0 0)
part identity devmem $edu 32
# The second register gives the complement of what was written.
devmem $((edu + 4)) 32 0x12345678
part complement devmem $((edu + 4)) 32
shared=$(bar 0000:00:06.0 2)
devmem $((shared + 0x1000)) 32 0xCAFEF00D
part shared devmem $((shared + 0x1000)) 32
# The same registers by keepup.
few="--trials 5 --time 5s --json"
part edu keepup register read pci:0000:00:04.0/bar0 --depth 1 --identity 0=0x010000ed $few
part slow keepup register read pci-config:0000:00:04.0 --depth 1,4 $few
part ports keepup register read pci:0000:00:05.0/bar1 --width 8 --depth 1 $few
part memory keepup register compare pci:0000:00:06.0/bar2 $few
part another sh -c 'keepup register read pci:0000:00:04.0/bar0 --depth 1 --identity 0=1 2>&1 || true'
bind 0000:00:04.0 uio_pci_generic
test -c /dev/uio0
part uio cat /sys/class/uio/uio0/name
test -c /dev/bus/vme/ctl
vme_window 0x10000 0x10000
printf 'over the bus' | dd of=/dev/bus/vme/m0 bs=12 seek=3
part slave dd if=/dev/bus/vme/s0 bs=12 skip=3 count=1
part master dd if=/dev/bus/vme/m0 bs=12 skip=3 count=1
"#;

#[test]
#[ignore = "system"]
fn every_device_and_driver_of_the_guest_works() {
    let Some(store) = available("every_device_and_driver_of_the_guest_works") else { return };
    let _place = directory();
    let guest = Guest::new(&store, Machine::Pc).devices(&Device::ALL).drivers(&[Drivers::Uio, Drivers::Vme]);
    let output = run(&guest, &format!("{STRICT}{LOOK}"));
    let part = |name: &str| output.part(name).stdout.as_str();
    assert_eq!(part("version"), format!("keepup {}\n", env!("CARGO_PKG_VERSION")));
    let doctor: serde_json::Value = serde_json::from_str(part("doctor")).unwrap();
    assert_eq!(doctor["command"], "keepup doctor --json");
    // Vendor and device, in memory order.
    let identities = ["config04", "config05", "config06"].map(part);
    assert_eq!(identities, ["3412e811", "361b0500", "f41a1011"]);
    // Flags of BARs: 0x200 memory, 0x100 I/O ports, 0x2000 prefetchable.
    let bar = |name: &str, n: usize| {
        let line = part(name).lines().nth(n).unwrap().to_owned();
        let numbers = line.split(' ').map(|text| u64::from_str_radix(&text[2..], 16).unwrap());
        let [start, end, flags] = numbers.collect::<Vec<_>>()[..] else { panic!("{line}") };
        (end + 1 - start, flags & 0x2300)
    };
    assert_eq!(bar("bars04", 0), (1 << 20, 0x200), "{output:#?}");
    assert_eq!(bar("bars05", 0).1, 0x200, "{output:#?}");
    assert_eq!(bar("bars05", 1).1, 0x100, "{output:#?}");
    assert_eq!(bar("bars06", 2), (4 << 20, 0x2200), "{output:#?}");
    assert_eq!(part("identity"), "0x010000ED\n");
    assert_eq!(part("complement"), "0xEDCBA987\n");
    assert_eq!(part("shared"), "0xCAFEF00D\n");
    assert_eq!(output.shared[0x1000..0x1004], 0xCAFE_F00D_u32.to_le_bytes());
    assert_eq!(part("uio"), "uio_pci_generic\n");
    registers(&part);
    assert_eq!((part("slave"), part("master")), ("over the bus", "over the bus"));
}

/// Checks the results of keepup in the guest.
fn registers<'a>(part: &impl Fn(&str) -> &'a str) {
    let found = |name: &str| -> serde_json::Value { serde_json::from_str(part(name)).unwrap() };
    let median = |found: &serde_json::Value, method: usize, point: usize| {
        let all = found["run"]["methods"][method]["points"][point]["seconds"].as_array().unwrap();
        let mut all: Vec<f64> = all.iter().map(|seconds| seconds.as_f64().unwrap()).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let names = |found: &serde_json::Value| {
        let methods = found["run"]["methods"].as_array().unwrap();
        methods.iter().map(|method| method["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (edu, slow, ports, memory) = (found("edu"), found("slow"), found("ports"), found("memory"));
    assert_eq!(edu["run"]["device"]["id"], "1234:11e8");
    assert_eq!(edu["run"]["device"]["is_virtual"], true, "results of a guest are labelled");
    assert_eq!((names(&edu), names(&slow)), (vec!["mmap".to_owned()], vec!["pread".to_owned()]));
    assert_eq!(
        (names(&ports), names(&memory)),
        (vec!["pread".into()], vec!["mmap".into(), "mmap-wc".into()])
    );
    // A system call per register costs many loads.
    assert!(median(&slow, 0, 0) > 3.0 * median(&edu, 0, 0), "{slow:#} {edu:#}");
    // Loads have no set-up: the time is proportional to the length. What else the host runs may stretch every
    // pass of one length for as long as it takes, but not the fastest pass of three lengths.
    let each = |point: usize| {
        let point = &memory["run"]["methods"][0]["points"][point];
        let seconds = point["seconds"].as_array().unwrap().iter().map(|seconds| seconds.as_f64().unwrap());
        seconds.fold(f64::INFINITY, f64::min) / point["depth"].as_f64().unwrap()
    };
    let fastest = |points: std::ops::RangeInclusive<usize>| points.map(each).fold(f64::INFINITY, f64::min);
    let (short, long) = (fastest(3..=5), fastest(7..=9));
    assert!(long < 3.0 * short && short < 10.0 * long, "{memory:#}");
    assert!(part("another").contains("reads 0x10000ed instead of 0x1"), "{}", part("another"));
}

#[test]
#[ignore = "system"]
fn failures_in_a_guest_are_reported_outside() {
    let Some(store) = available("failures_in_a_guest_are_reported_outside") else { return };
    let _place = directory();
    let guest = Guest::new(&store, Machine::Pc).limit(Duration::from_secs(60));
    let failed =
        guest.run("echo before; part bad sh -c 'printf half; exit 3'; echo why >&2; exit 7").unwrap();
    assert_eq!((failed.status, failed.stdout.as_str()), (7, "before\n"), "{failed:#?}");
    assert_eq!((failed.part("bad").status, failed.part("bad").stdout.as_str()), (3, "half"));
    assert!(failed.console.contains("why\n"), "{failed:#?}");
    let hung = guest.run("echo before; part endless sh -c 'echo within; sleep 1000'").unwrap_err();
    for text in ["ended at its limit of 60 s", "before\n", "begin endless\nwithin\n"] {
        assert!(hung.contains(text), "{hung}");
    }
    let gone = guest.run("echo before; poweroff -f; sleep 1000").unwrap_err();
    assert!(gone.contains("went down before its script ended") && gone.contains("before\n"), "{gone}");
}

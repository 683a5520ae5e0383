//! keepup in a virtual machine with every access method that needs a driver: VFIO with the card's DMA,
//! UIO, VME. One boot for all successful accesses, one for all errors.
use std::path::Path;

use keepup_testkit::guest::{Device, Drivers, Guest, GuestOutput, Machine, available};
use serde_json::Value;

use crate::common::directory;

/// Start of both scripts. A failed command ends them, except commands run by `why`, which captures the error.
const BEGIN: &str = r#"set -e
edu=0000:00:04.0
card=vfio:$edu/bar0
few="--trials 5 --time 12s --json"
why() { part "$1" sh -c "shift; keepup register \"\$@\" 2>&1 || true" sh "$@"; }
driver() { basename "$(readlink "/sys/bus/pci/devices/$1/driver")"; }
"#;

/// VFIO, bound on request; UIO; VME.
const WORKS: &str = r#"
# Not bound before and afterwards.
part identity keepup register get $card --bind vfio-pci
test ! -e /sys/bus/pci/devices/$edu/driver
part set keepup register set $card 0x4=0x12345678 --profile edu --bind vfio-pci
bind $edu uio_pci_generic
part vfio keepup register read $card --bind vfio-pci --profile edu --method mmap,pread --depth 1,0x100 $few
[ "$(driver $edu)" = uio_pci_generic ]
[ "$(cat /sys/bus/pci/devices/$edu/driver_override)" = uio_pci_generic ]

# Bound permanently: the group exists, and both methods read the same.
bind $edu vfio-pci
group=$(basename "$(readlink /sys/bus/pci/devices/$edu/iommu_group)")
part group ls /dev/vfio/$group /sys/kernel/iommu_groups/$group/devices
for method in mmap pread; do
    part values_$method keepup register get $card --count 16 --method $method --json
done
part write keepup register compare $card --profile edu --method mmap --write 4=0x12345678 $few
part written keepup register get $card --offset 4
before=$(hexdump -s 4 -n 2 -e '1/2 "%04x"' /sys/bus/pci/devices/$edu/config)
part dma keepup register compare $card --profile edu --method mmap,dma $few
part filled keepup register get $card --profile edu --method dma --count 1023 --json
sed 's/transfer-max = 4092/transfer-max = 512/; /may-fill/d' /edu.toml >/tmp/parts.toml
part parts keepup register get $card --profile /tmp/parts.toml --method dma --count 1023 --json
part table sh -c "keepup register read $card --profile edu --depth 1 --trials 5"
[ "$(hexdump -s 4 -n 2 -e '1/2 "%04x"' /sys/bus/pci/devices/$edu/config)" = "$before" ]
part ports keepup register read vfio:0000:00:05.0/bar1 --bind vfio-pci --width 8 --depth 1 $few

# Interrupted while bound.
bind $edu uio_pci_generic
keepup register read $card --bind vfio-pci --depth 1 --trials 10000 --time 60s >/tmp/stopped &
until [ "$(driver $edu)" = vfio-pci ]; do sleep 0.1; done
sleep 1
kill -INT $!
stopped=0
wait $! || stopped=$?
echo "stopped $stopped $(driver $edu)"

# UIO: a driver's map, the BAR without the driver, and a driver for another card.
part uio keepup register read uio:/dev/uio0 --profile edu --depth 1,0x100 $few
part uio_bar keepup register get uio:0/bar0 --profile edu
part uio_set keepup register set uio:$edu/map0 4=1 --profile edu
why no_map get uio:0/map3
shared=0000:00:06.0
echo 1 >/sys/bus/pci/devices/$shared/enable
devmem $(($(bar $shared 2) + 0x2004)) 32 0xCAFEF00D
part uio_map keepup register get uio:$shared/map1 --bind hilscher --offset 0x2000 --count 2
part uio_compare keepup register read uio:$shared/map1 --bind hilscher --depth 1,0x100 $few

# VME: the master windows read what was written through the slave window. The driver has 128 KiB for a slave
# window, and writes beyond them if the window is larger.
vme_window 0x10000 0x20000
n=0
while [ $n -lt 64 ]; do n=$((n + 1)); printf 'register %06d ' $n; done >/tmp/data
dd if=/tmp/data of=/dev/bus/vme/s0 bs=1024 count=1
printf 'the last' | dd of=/dev/bus/vme/s0 bs=8 seek=16383 count=1
for method in single block; do
    part vme_$method keepup register get vme:/dev/bus/vme/m0 --count 256 --method $method --json
done
large=vme:/dev/bus/vme/m1,address=0x10000,size=0x40000,space=A32
part vme_last keepup register get $large --count 0x10000 --method block --json
# Windows start at multiples of 64 KiB.
printf 'narrower' | dd of=/dev/bus/vme/s0 bs=8 seek=8192 count=1
window=address=0x20000,size=0x10000,space=A32
part vme_narrow keepup register get vme:/dev/bus/vme/m1,$window,width=16 --width 16
why vme_closed get vme:/dev/bus/vme/m1
part vme keepup register compare $large --identity 0=0x72656769 $few

# The paper is reproduced with these simulated devices.
bind $edu vfio-pci
ifconfig lo 127.0.0.1 up
cd /tmp
part paper keepup reproduce cern-vme --scale 0.01 --json
"#;

/// Missing, forbidden and mismatched targets.
const FAILS: &str = r#"
part no_device sh -c 'keepup register get vfio:0000:00:1e.0/bar0 2>&1 || echo "status $?"'
why unbound get $card
bind $edu uio_pci_generic
why other_driver get $card
why no_driver get $card --bind no_such_driver
why not_taken get $card --bind pcieport
[ "$(driver $edu)" = uio_pci_generic ]
bind $edu vfio-pci
why no_bar get vfio:$edu/bar2
why too_deep read $card --depth 0x80000
why unaligned get $card --offset 2
why too_wide set $card 4=0x100000000 --profile edu
again="$card --write 0xc=1 --profile edu"
part forbidden_again sh -c "keepup register read $again 2>&1 || echo \"status \$?\""
why written_by_calls read $card --write 4=1 --profile edu --method pread
part forbidden sh -c "keepup register set $card 0xc=1 --profile edu 2>&1 || echo \"status \$?\""
why not_meant get vfio:0000:00:05.0/bar0 --bind vfio-pci --profile edu
printf 'name = "card"\nread-to-clear = [0x24]\n' >/tmp/card.toml
why cleared read $card --profile /tmp/card.toml --depth 16
part spared keepup register get $card --profile /tmp/card.toml --offset 0x24 --read-to-clear 0x24
part ones keepup register read $card --offset 0x200 --depth 16 --trials 5 --time 5s --json
why bad_profile get $card --profile /card
mkdir -p /etc
echo 'user:x:1000:1000::/tmp:/bin/sh' >/etc/passwd
part no_rights su user -c "keepup register get $card 2>&1 || true"
part no_rights_vme su user -c "keepup register get vme:/dev/bus/vme/m0 2>&1 || true"
why vme_closed get vme:/dev/bus/vme/m0
why vme_refused get vme:/dev/bus/vme/m0,address=0,size=0x1000,space=A32,width=64,cycle=MBLT
why no_window get vme:/dev/bus/vme/m9
why no_vme get vme:/dev/null
why no_uio get uio:0
rmmod vfio-pci
part rebound sh -c '[ ! -e /sys/bus/pci/devices/0000:00:04.0/driver ] && echo no driver'
why gone get $card --bind vfio-pci
"#;

fn run(guest: &Guest<'_>, script: &str) -> GuestOutput {
    let output = guest.run(&format!("{BEGIN}{script}")).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(output.status, 0, "{output:#?}");
    output
}

fn parsed(output: &GuestOutput, name: &str) -> Value {
    let text = &output.part(name).stdout;
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{name}: {why}: {text}\n{}", output.console))
}

fn values(output: &GuestOutput, name: &str) -> Vec<u64> {
    let found = parsed(output, name);
    found["values"].as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
}

fn names(found: &Value) -> Vec<&str> {
    let methods = found["run"]["methods"].as_array().unwrap();
    methods.iter().map(|method| method["name"].as_str().unwrap()).collect()
}

/// Median time of a transfer, s.
fn median(found: &Value, method: usize, point: usize) -> f64 {
    let all = found["run"]["methods"][method]["points"][point]["seconds"].as_array().unwrap();
    let mut all: Vec<f64> = all.iter().map(|seconds| seconds.as_f64().unwrap()).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
#[ignore = "system"]
fn registers_are_read_through_every_driver() {
    let Some(store) = available("registers_are_read_through_every_driver") else { return };
    let _place = directory();
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles/registers/edu.toml");
    let guest = Guest::new(&store, Machine::Q35).devices(&Device::ALL).drivers(&Drivers::ALL);
    let guest = guest.file("edu.toml", Path::new(profile));
    let output = run(&guest, WORKS);
    let part = |name: &str| output.part(name).stdout.as_str();
    assert_eq!(part("identity"), "0x0: 0x010000ed\n");
    assert!(part("set").ends_with("wrote 0x12345678, reads 0xedcba987\n"), "{}", part("set"));
    let vfio = parsed(&output, "vfio");
    assert_eq!(names(&vfio), ["mmap", "pread"]);
    let device = &vfio["run"]["device"];
    assert_eq!((&device["id"], &device["driver"]), (&"1234:11e8".into(), &"vfio-pci".into()));
    assert!(device["iommu_group"].is_string() && device["is_virtual"] == true, "{device:#}");
    for point in [0, 1] {
        let ratio = median(&vfio, 1, point) / median(&vfio, 0, point);
        assert!(ratio > 3.0, "a call per register costs many loads: {ratio} {vfio:#}");
    }
    assert!(part("group").contains("/dev/vfio/") && part("group").contains("0000:00:04.0"), "{output:#?}");
    let read = values(&output, "values_mmap");
    assert_eq!((read.len(), read[0]), (16, 0x0100_00ed));
    assert_eq!(read, values(&output, "values_pread"));
    writes(&output);
    dma(&output);
    assert_eq!(names(&parsed(&output, "ports")), ["pread"], "I/O ports cannot be mapped");
    assert!(output.lines().any(|line| line == "stopped 130 uio_pci_generic"), "{output:#?}");
    assert!(output.console.contains("bound 0000:00:04.0 back to uio_pci_generic"), "{output:#?}");
    uio(&output);
    vme(&output);
    paper(&output);
}

/// Checks the measurement of writes to the complement register, and their effect.
fn writes(output: &GuestOutput) {
    let found = parsed(output, "write");
    assert_eq!(names(&found), ["mmap", "write", "write+read"]);
    let methods = found["run"]["methods"].as_array().unwrap();
    let flags: Vec<bool> = methods.iter().map(|method| method["writes"].as_bool().unwrap()).collect();
    assert_eq!(flags, [false, true, true]);
    // Of all points, because a long one may meet another program on each of its few trials.
    let points = methods[2]["points"].as_array().unwrap().len();
    let mut ratios: Vec<f64> =
        (0..points).map(|point| median(&found, 2, point) / median(&found, 1, point)).collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[points / 2];
    assert!(ratio > 1.3, "writes that are read back take longer: {ratio} {found:#}");
    assert_eq!(found["break_evens"].as_array().unwrap().len(), 0, "reads and writes are not compared");
    assert_eq!(output.part("written").stdout, "0x4: 0xedcba987\n");
}

/// Checks the card's DMA.
fn dma(output: &GuestOutput) {
    let found = parsed(output, "dma");
    assert_eq!(names(&found), ["mmap", "dma"]);
    let method = &found["run"]["methods"][1];
    assert_eq!(method["words_max"], 1023);
    let points = method["points"].as_array().unwrap();
    assert!(points.len() >= 4, "{method:#}");
    // Set by the device's timer; an emulator may be late, never early.
    let set_up = found["fits"][1]["elapsed"]["set_up_seconds"].as_f64().unwrap();
    assert!(set_up > 0.09, "{found:#}");
    let cpu = found["fits"][1]["cpu"]["set_up_seconds"].as_f64().unwrap();
    assert!(cpu > 0.5 * set_up, "the command register is polled: {found:#}");
    let pair = &found["break_evens"][0];
    assert_eq!((&pair["simple"], &pair["way"]), (&"mmap".into(), &"dma".into()), "{pair:#}");
    assert_eq!(pair["elapsed"]["verdict"], "never", "{pair:#}");
    assert_eq!(pair["cpu"]["verdict"], "never", "{pair:#}");
    // The card's memory keeps the data that keepup filled it with. One transfer and eight read the same.
    let (filled, parts) = (values(output, "filled"), values(output, "parts"));
    assert_eq!(filled.len(), 1023);
    assert_eq!(filled, parts);
    assert!(filled.windows(2).filter(|pair| pair[0] != pair[1]).count() > 1000, "random data");
    assert!(output.part("table").stdout.contains("dma"), "{output:#?}");
}

/// Checks the page of the paper about register access.
fn paper(output: &GuestOutput) {
    let page = &parsed(output, "paper")["paper"];
    let tables = page["tables"].as_array().unwrap_or_else(|| panic!("{page:#}"));
    let rows = || tables.iter().flat_map(|table| table["rows"].as_array().unwrap());
    for name in [
        "vfio:0000:00:04.0/bar0 (virtual machine), dma",
        "ipbus:self (simulated), block",
        "vme:/dev/bus/vme/m0 (simulated), generic",
        "vme:/dev/bus/vme/m0 (simulated), block",
    ] {
        assert!(rows().any(|row| row["name"] == name && row["cells"][0]["value"].is_number()), "{page:#}");
    }
}

fn uio(output: &GuestOutput) {
    let part = |name: &str| output.part(name).stdout.as_str();
    let found = parsed(output, "uio");
    assert_eq!((names(&found), &found["run"]["target"]), (vec!["mmap"], &"uio:0".into()));
    assert_eq!(part("uio_bar"), "0x0: 0x010000ed\n");
    assert_eq!(found["run"]["device"]["driver"], "uio_pci_generic");
    assert!(part("uio_set").ends_with("wrote 0x1, reads 0xfffffffe\n"), "{}", part("uio_set"));
    assert!(part("no_map").contains("offers no such map\nhint: choose one of map0"), "{}", part("no_map"));
    assert_eq!(part("uio_map"), "0x2000: 0x00000000\n0x2004: 0xcafef00d\n");
    let found = parsed(output, "uio_compare");
    assert_eq!((names(&found), &found["run"]["device"]["driver"]), (vec!["mmap"], &"hilscher".into()));
}

fn vme(output: &GuestOutput) {
    let written: String = (1..=64).map(|n| format!("register {n:06} ")).collect();
    let word = |bytes: &[u8]| u64::from(u32::from_be_bytes(bytes.try_into().unwrap()));
    let expected: Vec<u64> = written.as_bytes()[..1024].chunks_exact(4).map(word).collect();
    assert_eq!(values(output, "vme_single"), expected);
    assert_eq!(values(output, "vme_block"), expected);
    let last = values(output, "vme_last");
    // Around the largest transfer of one call, 32768 words, where the slave window ends and the bus
    // returns ones.
    let ones = u64::from(u32::MAX);
    assert_eq!((last.len(), &last[0x7ffe..0x8001]), (0x10000, &[word(b"the "), word(b"last"), ones][..]));
    assert!(last[0x8000..].iter().all(|value| *value == ones) && last[..256] == expected);
    // Its window starts at another address, and is disabled again afterwards.
    assert_eq!(output.part("vme_narrow").stdout, "0x0: 0x6e61\n");
    let closed = &output.part("vme_closed").stdout;
    assert!(
        closed.contains("the window is disabled\nhint:") && closed.contains("address=0x10000"),
        "{closed}"
    );
    let found = parsed(output, "vme");
    assert_eq!(names(&found), ["single", "block"]);
    assert_eq!((&found["run"]["device"]["is_simulated"], &found["failure"]), (&true.into(), &Value::Null));
    let block = &found["run"]["methods"][1];
    assert_eq!(block["words_max"], 32768);
    let deepest = block["points"].as_array().unwrap().len() - 1;
    assert_eq!(block["points"][deepest]["depth"], 0x10000);
    let single = found["run"]["methods"][0]["points"].as_array().unwrap();
    let shared = single.len() - 1;
    let ratio = median(&found, 0, shared) / median(&found, 1, shared);
    assert!(ratio > 3.0, "a block takes less time than one call per register: {ratio} {found:#}");
}

#[test]
#[ignore = "system"]
fn errors_of_every_driver_are_reported_with_hints() {
    let Some(store) = available("errors_of_every_driver_are_reported_with_hints") else { return };
    let _place = directory();
    let guest = Guest::new(&store, Machine::Q35).devices(&Device::ALL).drivers(&Drivers::ALL);
    let output = run(&guest, FAILS);
    let card = "vfio:0000:00:04.0/bar0";
    for (name, target, words) in [
        ("no_device", "vfio:0000:00:1e.0/bar0", "\nhint: list the functions with lspci -D"),
        ("no_device", "", "status 4"),
        ("unbound", card, "not bound to vfio-pci, or to any driver\nhint: run modprobe vfio-pci"),
        ("other_driver", card, "bound to uio_pci_generic, not to vfio-pci\nhint: run modprobe vfio-pci"),
        ("no_driver", card, "no PCI driver \"no_such_driver\" is loaded\nhint: run modprobe no_such_driver"),
        ("not_taken", card, "binding the function to pcieport failed: the driver refused it\nhint:"),
        ("no_bar", "vfio:0000:00:04.0/bar2", "the function has no BAR 2\nhint: list the function's BARs"),
        ("too_deep", card, "beyond its 1048576 bytes"),
        ("unaligned", card, "0x2 is not a multiple of 4 bytes"),
        ("too_wide", card, "does not fit into the 32 bits"),
        ("forbidden", card, "profile edu does not list the 32 bits at 0xc as writable\nhint:"),
        ("forbidden", "", "status 3"),
        ("forbidden_again", card, "profile edu does not list the 32 bits at 0xc as writable\nhint:"),
        ("forbidden_again", "", "status 3"),
        ("written_by_calls", card, "none of the selected methods can write registers\nhint:"),
        ("not_meant", "vfio:0000:00:05.0/bar0", "profile edu is for 1234:11e8, and this device is 1b36:0005"),
        ("cleared", card, "would change the one at 0x24, according to profile card\nhint:"),
        ("bad_profile", "", "profile /card: "),
        ("no_rights", card, "ermission denied"),
        ("no_rights_vme", "vme:/dev/bus/vme/m0", "ermission denied"),
        ("no_rights", "", "hint: use sudo"),
        ("vme_closed", "vme:/dev/bus/vme/m0", "the window is disabled"),
        ("vme_refused", "vme:/dev/bus/vme/m0", "the bridge refuses address=0x0"),
        ("no_window", "vme:/dev/bus/vme/m9", "modprobe vme_user"),
        ("no_vme", "vme:/dev/null", "not a master window of vme_user"),
        ("no_uio", "uio:0", "hint: list the devices with ls /sys/class/uio"),
        ("gone", card, "no PCI driver \"vfio-pci\""),
    ] {
        let found = &output.part(name).stdout;
        assert!(found.contains(words) && found.contains(target), "{name}: {found}\n{}", output.console);
    }
    assert_eq!(output.part("spared").stdout, "0x24: 0x00000000\n");
    assert_eq!(output.part("rebound").stdout, "no driver\n");
    let ones = parsed(&output, "ones");
    assert_eq!((&ones["run"]["all_ones"], &ones["failure"]), (&true.into(), &Value::Null), "{ones:#}");
}

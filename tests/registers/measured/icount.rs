//! Timing in a guest that counts instructions is reproducible.
use keepup_testkit::guest::{Device, Guest, GuestOutput, Machine, Store, available};
use keepup_testkit::rule::{TWO_OF_SEVEN, good_if};

use crate::common::busy_directory;
use crate::registers::guest::{STRICT, run};

/// Defect: keepup reads another clock than the guest's, so that runs differ.
#[test]
#[ignore = "measured"]
fn a_guest_that_counts_instructions_is_reproducible() {
    let Some(store) = available("a_guest_that_counts_instructions_is_reproducible") else { return };
    let _place = busy_directory();
    // The kernel's clock in ns, before and after some work.
    let script = "now() { sed -n 's/now at //p' /proc/timer_list; }
        now
        n=0; while [ $n -lt 2000 ]; do n=$((n + 1)); done
        now
        keepup --version
        now
        echo 1 >/sys/bus/pci/devices/0000:00:04.0/enable
        part figures keepup register compare pci:0000:00:04.0/bar0 --trials 5 --time 2s --json
        part page keepup register read ram --depth 1,0x100 --trials 5";
    let once = |store: &Store| {
        let guest = Guest::new(store, Machine::Pc).devices(&[Device::Edu]).counting_instructions();
        run(&guest, &format!("{STRICT}{script}"))
    };
    // The measurements are identical to the nanosecond, and derived numbers to the last digit.
    let figures = |output: &GuestOutput| -> serde_json::Value {
        let found: serde_json::Value = serde_json::from_str(&output.part("figures").stdout).unwrap();
        serde_json::json!([found["run"], found["fits"], found["break_evens"]])
    };
    let lines_of = |output: &GuestOutput| {
        assert_eq!(output.stdout.lines().count(), 4, "{output:#?}");
        // The first line contains the result's identifier.
        let page: Vec<&str> = output.part("page").stdout.lines().skip(1).collect();
        (output.stdout.clone(), figures(output), page.join("\n"))
    };
    // The emulator's devices use host time: if its thread was delayed, an interrupt arrives at another point.
    let mut seen = vec![lines_of(&once(&store))];
    assert!(seen[0].1[0]["methods"][0]["points"][0]["seconds"][0].as_f64().unwrap() > 0.0, "{seen:#?}");
    TWO_OF_SEVEN.check("the same as one before", || {
        let now = lines_of(&once(&store));
        let is_known = seen.contains(&now);
        seen.push(now.clone());
        good_if(is_known, now)
    });
}

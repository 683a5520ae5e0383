//! Agents of one host, one after the other.
use std::sync::mpsc;

use keepup_error::Diagnostic as _;
use keepup_measure::clock::SystemClock;

use super::*;

const LONG: Duration = Duration::from_secs(60);

/// Name of a fleet that no other test has, also not one of another process.
fn fleet(test: &str) -> String {
    format!("{test} {}", std::process::id())
}

fn take(fleet: &str, name: &str) -> HostClaim {
    let taken = HostClaim::take(fleet, name, LONG, &SystemClock, &|| false, &mut || panic!("it waits"));
    taken.unwrap().unwrap()
}

#[test]
fn each_host_of_each_fleet_has_a_claim_of_its_own() {
    let one = fleet("apart");
    let _claims = [take(&one, "r0"), take(&one, "r1"), take(&fleet("other"), "r0")];
    // The same text together.
    let _alike = [take(&format!("{one} a"), "b"), take(&one, "a b")];
    // A long name, of which the address has a digest.
    let _long = take(&one, &"r".repeat(1_000));
}

#[test]
fn an_agent_waits_until_the_earlier_one_has_ended() {
    let fleet = fleet("waits");
    let earlier = take(&fleet, "r0");
    let (sender, waits) = mpsc::channel();
    let same = fleet.clone();
    let later = std::thread::spawn(move || {
        let mut count = 0;
        let mut on_wait = || {
            count += 1;
            sender.send(()).unwrap();
        };
        let taken = HostClaim::take(&same, "r0", LONG, &SystemClock, &|| false, &mut on_wait);
        (taken.unwrap().is_some(), count)
    });
    waits.recv().unwrap();
    drop(earlier);
    assert_eq!(later.join().unwrap(), (true, 1));
    take(&fleet, "r0");
}

#[test]
fn an_agent_that_is_stopped_does_not_wait() {
    let fleet = fleet("stopped");
    let _earlier = take(&fleet, "r0");
    let taken = HostClaim::take(&fleet, "r0", LONG, &SystemClock, &|| true, &mut || ());
    assert!(taken.unwrap().is_none());
}

#[test]
fn an_agent_gives_up_when_the_earlier_one_does_not_end() {
    let fleet = fleet("hangs");
    let _earlier = take(&fleet, "r0");
    let (limit, mut waits) = (Duration::from_millis(200), 0);
    let error =
        HostClaim::take(&fleet, "r0", limit, &SystemClock, &|| false, &mut || waits += 1).unwrap_err();
    let why = "cannot join the fleet: an earlier agent of this host has not ended within 0.2 s";
    assert_eq!((error.to_string().as_str(), waits), (why, 1));
    assert!(error.hint().unwrap().contains("--name r0"));
}

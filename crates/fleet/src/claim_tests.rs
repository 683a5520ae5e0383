//! Agents of one host, one after the other.
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc;

use keepup_measure::clock::SystemClock;

use super::*;

/// An address that no other test has.
fn controller() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn take(controller: SocketAddr, name: &str) -> HostClaim {
    let taken = HostClaim::take(controller, name, &SystemClock, &|| false, &mut || panic!("it waits"));
    taken.unwrap().unwrap()
}

#[test]
fn hosts_and_controllers_have_claims_of_their_own() {
    let ((_one, one), (_other, other)) = (controller(), controller());
    let _claims = [take(one, "r0"), take(one, "r1"), take(other, "r0")];
    // A long name, of which the address has a digest.
    let _long = take(one, &"r".repeat(1_000));
}

#[test]
fn an_agent_waits_until_the_earlier_one_has_ended() {
    let (_listener, controller) = controller();
    let earlier = take(controller, "r0");
    let (sender, waits) = mpsc::channel();
    let later = std::thread::spawn(move || {
        let mut count = 0;
        let mut on_wait = || {
            count += 1;
            sender.send(()).unwrap();
        };
        let taken = HostClaim::take(controller, "r0", &SystemClock, &|| false, &mut on_wait);
        (taken.unwrap().is_some(), count)
    });
    waits.recv().unwrap();
    drop(earlier);
    assert_eq!(later.join().unwrap(), (true, 1));
    take(controller, "r0");
}

#[test]
fn an_agent_that_is_stopped_does_not_wait() {
    let (_listener, controller) = controller();
    let _earlier = take(controller, "r0");
    let taken = HostClaim::take(controller, "r0", &SystemClock, &|| true, &mut || ());
    assert!(taken.unwrap().is_none());
}

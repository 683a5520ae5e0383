//! What every link does, on the local one; messages for the tests of others.
use super::local::Network;
use super::*;
use crate::message::{Counters, Goal, HostState, VERSION};

const LONG: Duration = Duration::from_secs(60);
const NOW: Duration = Duration::ZERO;

/// A heartbeat of an idle host.
pub(super) fn heartbeat(host: HostId, number: u64) -> Heartbeat {
    Heartbeat {
        version: VERSION,
        host,
        incarnation: 7,
        number,
        sent_ns: 1,
        state: HostState::Idle,
        epoch: 0,
        clock: None,
        counters: Counters::default(),
        health: None,
    }
}

/// An order to do nothing.
pub(super) fn order(host: HostId, number: u64) -> Order {
    Order {
        controller: 1,
        host,
        incarnation: 7,
        number,
        echo_ns: 1,
        received_ns: 2,
        sent_ns: 3,
        goal: Goal::Idle,
        epoch: 0,
        view: None,
    }
}

/// Ten rounds of an order to all hosts and their answers.
pub(super) fn exchange(lead: &mut impl ControllerLink, hosts: &mut [impl AgentLink]) {
    let count = hosts.len();
    for number in 1..=10 {
        for (host, link) in (0..).zip(hosts.iter_mut()) {
            lead.send(&order(host, number));
            assert_eq!(link.receive(LONG), Some(FromController::Order(Box::new(order(host, number)))));
            link.send(&heartbeat(host, number));
        }
        let mut heard: Vec<Heartbeat> = (0..count)
            .map(|_| match lead.receive(LONG) {
                Some(FromHost::Heartbeat(heartbeat)) => *heartbeat,
                other => panic!("{other:?}"),
            })
            .collect();
        heard.sort_by_key(|heartbeat| heartbeat.host);
        assert_eq!(heard, (0..).take(count).map(|host| heartbeat(host, number)).collect::<Vec<_>>());
    }
    let all = lead.traffic();
    assert_eq!(all.sent.messages, 10 * count as u64);
    let sum = |count: fn(Traffic) -> Count| hosts.iter().map(|host| count(host.traffic()).bytes).sum::<u64>();
    assert_eq!(all.sent.bytes, sum(|traffic| traffic.received));
    assert_eq!(all.received.bytes, sum(|traffic| traffic.sent));
}

fn secret() -> Secret {
    Secret::new("secret of the link tests")
}

fn join(network: &Network, host: HostId) -> local::LocalAgent {
    network.join(host, 7, &secret().token(host).unwrap())
}

#[test]
fn messages_pass_in_both_directions_and_are_counted() {
    let (network, mut lead) = Network::new(&secret(), 3).unwrap();
    let mut hosts: Vec<_> = (0..3).map(|host| join(&network, host)).collect();
    exchange(&mut lead, &mut hosts);
}

#[test]
fn an_end_that_goes_is_noticed() {
    let (network, mut lead) = Network::new(&secret(), 2).unwrap();
    let (mut stays, goes) = (join(&network, 0), join(&network, 1));
    drop(goes);
    assert_eq!(lead.receive(LONG), Some(FromHost::Closed { host: 1, incarnation: 7 }));
    drop(lead);
    assert_eq!(stays.receive(LONG), Some(FromController::Closed));
}

#[test]
fn an_order_for_a_host_that_is_not_there_is_lost() {
    let (network, mut lead) = Network::new(&secret(), 2).unwrap();
    lead.send(&order(0, 1));
    lead.send(&order(9, 1));
    assert_eq!(lead.receive(NOW), Some(FromHost::Refused { host: Some(9), why: Refusal::UnknownHost }));
    assert_eq!(join(&network, 0).receive(NOW), None);
}

#[test]
fn garbage_and_a_wrong_token_are_refused() {
    let (network, mut lead) = Network::new(&secret(), 2).unwrap();
    let refused = |host, why| Some(FromHost::Refused { host, why });
    network.inject(0, b"garbage");
    assert_eq!(lead.receive(NOW), refused(Some(0), Refusal::Foreign));
    network.inject(7, b"garbage");
    assert_eq!(lead.receive(NOW), refused(None, Refusal::UnknownHost));
    let mut wrong = network.join(0, 7, &Secret::new("another").token(0).unwrap());
    wrong.send(&heartbeat(0, 1));
    assert_eq!(lead.receive(NOW), refused(Some(0), Refusal::Token));
    lead.send(&order(0, 1));
    assert_eq!(wrong.receive(NOW), Some(FromController::Refused(Refusal::Token)));
    let mut liar = join(&network, 1);
    liar.send(&heartbeat(0, 1));
    assert_eq!(lead.receive(NOW), refused(Some(1), Refusal::OtherHost(0)));
}

#[test]
fn a_message_that_is_too_long_is_reported_by_its_sender() {
    let (network, mut lead) = Network::new(&secret(), 1).unwrap();
    let mut host = join(&network, 0);
    let state = HostState::Failed { run: 1, why: "x".repeat(HEARTBEAT_BYTES_MAX) };
    host.send(&Heartbeat { state, ..heartbeat(0, 1) });
    let refused = host.receive(NOW);
    assert!(matches!(refused, Some(FromController::Refused(Refusal::TooLong { .. }))), "{refused:?}");
    assert_eq!(lead.receive(NOW), None);
}

#[test]
fn a_waker_ends_a_wait() {
    let (network, mut lead) = Network::new(&secret(), 1).unwrap();
    let mut host = join(&network, 0);
    lead.waker().wake();
    assert_eq!(lead.receive(LONG), None);
    host.waker().wake();
    assert_eq!(host.receive(LONG), None);
}

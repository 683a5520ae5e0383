//! Every datagram is received, attributed to a layer, or unexplained, exactly once.
use keepup_results::NetMoved;
use proptest::prelude::*;

use super::*;

fn sender(due: u64, sent: u64) -> FlowReport {
    let moved = Some(NetMoved { bytes: 1_000_000, messages: sent, seconds: 1.0, tenths: Vec::new() });
    FlowReport {
        sent: Some(Sent { number: 0, due, sent, refused: due - sent }),
        moved,
        ..FlowReport::default()
    }
}

fn receiver(received: Datagrams) -> FlowReport {
    FlowReport { received: Some(received), ..FlowReport::default() }
}

fn layer(ledger: &NetLedger, layer: NetLayer) -> Option<(u64, u64)> {
    ledger.losses.iter().find(|loss| loss.layer == layer).map(|loss| (loss.datagrams, loss.counted))
}

#[test]
fn losses_are_attributed_to_layers_and_the_rest_to_the_network() {
    let sender = sender(1010, 1000);
    let came = Datagrams {
        unique: 700,
        duplicates: 3,
        dropped: 200,
        longest_pause_ns: 500_000_000,
        ..Datagrams::default()
    };
    let receiver = receiver(came);
    let counted = Counted { softirq_dropped: 40, buffer_full: 999, ..Counted::default() };
    let pairs = [Pair { sender: &sender, receiver: &receiver }];
    let found = ledger(&pairs, &[], &[counted], 1);
    assert_eq!((found.due, found.unsent, found.sent, found.received, found.lost), (1010, 10, 1000, 700, 300));
    assert_eq!(found.refused, 10);
    assert_eq!(layer(&found, NetLayer::SocketBuffer), Some((200, 200)));
    assert_eq!(layer(&found, NetLayer::Softirq), Some((40, 40)));
    assert_eq!((found.unexplained, found.duplicates, found.buffer_needed_bytes), (60, 3, 500_000));
}

#[test]
fn joined_datagrams_are_dropped_together() {
    let sender = sender(1000, 1000);
    let receiver =
        receiver(Datagrams { unique: 540, dropped: 10, longest_train: 46, ..Datagrams::default() });
    let found = ledger(&[Pair { sender: &sender, receiver: &receiver }], &[], &[], 46);
    assert_eq!((layer(&found, NetLayer::SocketBuffer), found.unexplained), (Some((460, 10)), 0));
}

proptest! {
    #[test]
    fn the_parts_are_the_whole(
        sent in 0..10_000u64, unique in 0..10_000u64, late in 0..50u64, dropped in 0..5_000u64,
        truncated in 0..500u64, counters in prop::array::uniform4(0..5_000u64), train in 0..70u64,
    ) {
        let unique = unique.min(sent);
        let sender = sender(sent, sent);
        let came = Datagrams { unique, too_late: late, dropped, truncated, ..Datagrams::default() };
        let came = Datagrams { longest_train: train, ..came };
        let receiver = receiver(came);
        let [softirq_dropped, reassembly_failed, interface_dropped_in, interface_dropped_out] = counters;
        let counted = Counted {
            softirq_dropped, reassembly_failed, interface_dropped_in, interface_dropped_out, buffer_full: 0,
        };
        let found = ledger(&[Pair { sender: &sender, receiver: &receiver }], &[counted], &[counted], train);
        prop_assert_eq!(found.sent, found.received + found.lost);
        let explained: u64 = found.losses.iter().map(|loss| loss.datagrams).sum();
        prop_assert_eq!(found.lost, explained + found.unexplained);
        prop_assert!(found.received >= unique);
    }
}

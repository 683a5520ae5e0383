//! Loss ledger of a run: datagrams sent minus received, attributed layer by layer. Pure.
//!
//! Invariants: sent = received + lost; lost = the sum of all layers + unexplained; nothing counts
//! twice, even if foreign traffic increased the counters.
use keepup_measure::sum::Sums;
use keepup_results::{NetLayer, NetLedger, NetLoss};

use super::wire::{Counted, Datagrams, FlowReport, Sent};

/// The two reports of one datagram flow.
pub(super) struct Pair<'a> {
    pub(super) sender: &'a FlowReport,
    pub(super) receiver: &'a FlowReport,
}

/// Sums all flows. `senders` and `receivers` are the machines' counters where readable; `train` is
/// the number of datagrams per segmentation-offload train, which lower layers count as one.
pub(super) fn ledger(
    pairs: &[Pair<'_>],
    senders: &[Counted],
    receivers: &[Counted],
    train: u64,
) -> NetLedger {
    let sent = pairs.iter().filter_map(|pair| pair.sender.sent).fold(Sent::default(), |sum, flow| Sent {
        number: 0,
        due: sum.due + flow.due,
        sent: sum.sent + flow.sent,
        refused: sum.refused + flow.refused,
    });
    let came = pairs.iter().filter_map(|pair| pair.receiver.received).fold(Datagrams::default(), plus);
    // A datagram too late to be distinguished from a duplicate must not count as missing more than
    // once.
    let received = (came.unique + came.too_late).min(sent.sent).max(came.unique);
    let lost = sent.sent.saturating_sub(received);
    let sum = |of: &[Counted], counter: fn(&Counted) -> u64| of.iter().map(counter).saturating_sum::<u64>();
    let joined = came.longest_train.max(1);
    let train = train.max(joined);
    // Counters specific to these flows are attributed first. A layer that counts trains may have
    // lost a whole train of datagrams per count.
    let layers = [
        (NetLayer::SocketBuffer, came.dropped, joined),
        (NetLayer::Program, came.truncated, joined),
        (NetLayer::Softirq, sum(receivers, |counted| counted.softirq_dropped), train),
        (NetLayer::Ip, sum(receivers, |counted| counted.reassembly_failed), 1),
        (NetLayer::Interface, sum(receivers, |counted| counted.interface_dropped_in), train),
        (NetLayer::SenderInterface, sum(senders, |counted| counted.interface_dropped_out), train),
    ];
    let mut unexplained = lost;
    let mut losses = Vec::new();
    for (layer, counted, each) in layers.into_iter().filter(|(_, counted, _)| *counted > 0) {
        let datagrams = counted.saturating_mul(each).min(unexplained);
        unexplained -= datagrams;
        losses.push(NetLoss { layer, datagrams, counted });
    }
    losses.sort_by_key(|loss| loss.layer);
    NetLedger {
        due: sent.due,
        unsent: sent.due.saturating_sub(sent.sent),
        refused: sent.refused,
        sent: sent.sent,
        received,
        duplicates: came.duplicates,
        reordered: came.reordered,
        lost,
        losses,
        unexplained,
        foreign: came.foreign,
        longest_pause_ns: came.longest_pause_ns,
        buffer_needed_bytes: pairs.iter().map(buffer_needed).max().unwrap_or(0),
    }
}

fn plus(a: Datagrams, b: Datagrams) -> Datagrams {
    Datagrams {
        unique: a.unique + b.unique,
        duplicates: a.duplicates + b.duplicates,
        reordered: a.reordered + b.reordered,
        too_late: a.too_late + b.too_late,
        foreign: a.foreign + b.foreign,
        truncated: a.truncated + b.truncated,
        longest_train: a.longest_train.max(b.longest_train),
        dropped: a.dropped + b.dropped,
        longest_pause_ns: a.longest_pause_ns.max(b.longest_pause_ns),
    }
}

/// Payload that arrives during the receiver's longest pause, bytes.
fn buffer_needed(pair: &Pair<'_>) -> u64 {
    let rate = pair.sender.moved.as_ref().and_then(keepup_results::NetMoved::bytes_per_second);
    let pause_ns = pair.receiver.received.map_or(0, |came| came.longest_pause_ns);
    (rate.unwrap_or(0.0) * pause_ns as f64 / 1e9).ceil() as u64
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;

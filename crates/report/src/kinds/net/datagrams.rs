//! Datagram ledger: datagrams and losses of each layer.

use keepup_measure::sum::Sums;
use keepup_results::{NetLayer, NetLedger, NetLoss, NetRun, NetSummary};
use serde_json::json;

use super::NAME_CHARACTERS_MAX;
use crate::chart::{Axis, BAD, Chart, Mark, Series, TEXT, plot};
use crate::format::{bytes, fixed, number, seconds, shorten};
use crate::kinds::common;
use crate::page::{Block, Item};
use crate::table::{Cell, Table, Tone, left, right};

/// Losses that no layer counted.
const UNEXPLAINED: &str = "network, not counted by either host";

/// Datagrams lost at a layer over all runs, and the counter of the layer, which includes other traffic.
struct Layer {
    name: &'static str,
    lost: u64,
    counted: Option<u64>,
}

pub(super) fn block(summary: &NetSummary) -> Option<Block> {
    let of: Vec<(&NetRun, &NetLedger)> =
        summary.runs.iter().filter_map(|run| Some((run, run.ledger.as_ref()?))).collect();
    let mut items = vec![Item::Table(ledgers(&of))];
    let layers = layers(&of);
    if layers.iter().any(|layer| layer.lost > 0) {
        let row = |layer: &Layer| -> Vec<Cell> {
            let counted = layer.counted.map_or_else(|| "-".to_owned(), number);
            vec![layer.name.into(), number(layer.lost).into(), counted.into()]
        };
        let columns = vec![left("lost in"), right("datagrams"), right("counter of the layer")];
        items.push(Item::Table(Table { columns, rows: layers.iter().map(row).collect() }));
        items.push(common::item(chart(&layers)));
    }
    items.push(Item::List(notes(&of)));
    (!of.is_empty()).then(|| Block::new("Datagram ledger", items))
}

fn ledgers(of: &[(&NetRun, &NetLedger)]) -> Table {
    let row = |(run, ledger): &(&NetRun, &NetLedger)| -> Vec<Cell> {
        let tone = if ledger.lost > 0 { Tone::Bad } else { Tone::Plain };
        vec![
            shorten(&run.name, NAME_CHARACTERS_MAX).into(),
            number(ledger.due).into(),
            number(ledger.unsent.saturating_sub(ledger.refused)).into(),
            number(ledger.refused).into(),
            number(ledger.sent).into(),
            number(ledger.received).into(),
            Cell::toned(number(ledger.lost), tone),
            fixed(Some(ledger.lost as f64 * 100.0 / ledger.sent.max(1) as f64), 3).into(),
        ]
    };
    let columns = vec![
        left("run"),
        right("due"),
        right("late"),
        right("refused"),
        right("sent"),
        right("received"),
        right("lost"),
        right("lost, %"),
    ];
    Table { columns, rows: of.iter().map(row).collect() }
}

fn layers(of: &[(&NetRun, &NetLedger)]) -> Vec<Layer> {
    let mut layers: Vec<Layer> = Vec::new();
    let mut add = |name: &'static str, lost: u64, counted: Option<u64>| match layers
        .iter_mut()
        .find(|layer| layer.name == name)
    {
        Some(layer) => {
            layer.lost += lost;
            layer.counted = layer.counted.zip(counted).map(|(a, b)| a + b);
        }
        None => layers.push(Layer { name, lost, counted }),
    };
    for (_, ledger) in of {
        let mut of = |loss: &NetLoss| add(layer(loss.layer), loss.datagrams, Some(loss.counted));
        ledger.losses.iter().for_each(&mut of);
        add(UNEXPLAINED, ledger.unexplained, None);
    }
    layers
}

/// Duplicates, reordered and foreign datagrams, and the longest receiver pause.
fn notes(of: &[(&NetRun, &NetLedger)]) -> Vec<String> {
    let sum = |pick: fn(&NetLedger) -> u64| of.iter().map(|(_, ledger)| pick(ledger)).saturating_sum::<u64>();
    let (twice, odd, foreign) =
        (sum(|ledger| ledger.duplicates), sum(|ledger| ledger.reordered), sum(|ledger| ledger.foreign));
    let mut notes = Vec::new();
    if twice + odd + foreign > 0 {
        notes.push(format!(
            "{} duplicates, {} out of order, {} from other senders",
            number(twice),
            number(odd),
            number(foreign)
        ));
    }
    let longest = of.iter().map(|(_, ledger)| *ledger).max_by_key(|ledger| ledger.longest_pause_ns);
    notes.extend(longest.map(|ledger| {
        format!(
            "longest receiver pause with datagrams waiting: {}, bridged by {} of buffer",
            seconds(ledger.longest_pause_ns as f64 / 1e9),
            bytes(ledger.buffer_needed_bytes)
        )
    }));
    notes
}

fn chart(layers: &[Layer]) -> Chart {
    let bar = |layer: &Layer| {
        json!({ "value": layer.lost, "label": { "show": true, "position": "right",
            "formatter": number(layer.lost), "color": TEXT, "fontSize": 11 } })
    };
    let series = [Series::new("", BAD, Mark::Bars, layers.iter().map(bar).collect())];
    let names: Vec<String> = layers.iter().map(|layer| layer.name.to_owned()).collect();
    let rows = layers.iter().map(|layer| vec![layer.name.into(), number(layer.lost).into()]).collect();
    Chart {
        title: "Datagrams lost at each layer, all runs".into(),
        note: "In the order of the receive path.".into(),
        table: Table { columns: vec![left("layer"), right("datagrams")], rows },
        is_in_table: true,
        ..plot(
            &Axis::linear("datagrams").with_zero(),
            &Axis::category("", names.clone()).reversed(),
            &series,
            27 * names.len() as u32,
        )
        .with_right_margin(60)
    }
}

fn layer(layer: NetLayer) -> &'static str {
    match layer {
        NetLayer::SenderInterface => "sending interface",
        NetLayer::Interface => "receiving interface (ring full or errors)",
        NetLayer::Softirq => "packet queue of a core (net.core.netdev_max_backlog)",
        NetLayer::Ip => "IP reassembly (datagrams larger than the MTU)",
        NetLayer::SocketBuffer => "socket receive buffer (net.core.rmem_max, --receive-buffer)",
        NetLayer::Program => "receiver (datagrams longer than its buffer)",
    }
}

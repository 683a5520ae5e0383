//! Built-in profiles, machine parts and machines, by `profile list` and `predict parts` and `machines`.

use keepup_model::{Direction, Machine, Part, Ranged};
use keepup_plan::Profile;

use super::render;
use crate::Style;
use crate::format::{bytes, rate};
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Table, left, right};

/// Lists profiles with their required rates.
#[must_use]
pub fn profiles(profiles: &[Profile], style: Style) -> String {
    let row = |profile: &Profile| -> Vec<Cell> {
        vec![
            profile.name.as_str().into(),
            rate(profile.required_bytes_per_second()).into(),
            bytes(profile.event.mean_bytes() as u64).into(),
            profile.streams.to_string().into(),
            profile.title.as_str().into(),
        ]
    };
    let columns = vec![left("profile"), right("rate"), right("event"), right("streams"), left("detector")];
    let table = Table { columns, rows: profiles.iter().map(row).collect() };
    render(vec![Block::new("", vec![Item::Table(table)])], style)
}

/// Lists machine parts by family, with their payload rates.
#[must_use]
pub fn parts(parts: &[&Part], style: Style) -> String {
    let mut blocks: Vec<Block> = Vec::new();
    for family in parts.chunk_by(|part, next| part.family == next.family) {
        let row = |part: &&Part| -> Vec<Cell> {
            vec![part.name.as_str().into(), payload(part).into(), part.title.as_str().into()]
        };
        let columns = vec![left(""), right(""), left("")];
        let table = Table { columns, rows: family.iter().map(row).collect() };
        let title = family.first().map(|part| part.family.clone()).unwrap_or_default();
        blocks.push(Block::new(title, vec![Item::Table(table)]));
    }
    render(blocks, style)
}

/// Lists the figures of a machine part with their sources.
#[must_use]
pub fn part(part: &Part, style: Style) -> String {
    let mut items = Vec::new();
    let rates = payload(part);
    if !rates.is_empty() {
        items.push(Item::Facts(vec![Fact::new("payload, read and written", rates)]));
    }
    let row = |(name, figure): (&String, &Ranged)| -> Vec<Cell> {
        let source = format!("{:?}", figure.source).to_lowercase();
        vec![name.as_str().into(), figure.to_string().into(), format!("{source}: {}", figure.from).into()]
    };
    let columns = vec![left("figure"), left("value"), left("source")];
    items.push(Item::Table(Table { columns, rows: part.figures.iter().map(row).collect() }));
    let title = format!("{}: {} ({})", part.name, part.title, part.family);
    render(vec![Block::new(title, items)], style)
}

/// Lists machines with their paths.
#[must_use]
pub fn machines(machines: &[Machine], style: Style) -> String {
    let fact = |machine: &Machine| {
        let paths: Vec<&str> = machine.path.keys().map(String::as_str).collect();
        let title = Fact::new(&machine.name, &machine.title);
        [title, Fact::new("", format!("paths: {}", paths.join(", ")))]
    };
    render(vec![Block::new("", vec![Item::Facts(machines.iter().flat_map(fact).collect())])], style)
}

/// Payload rate in both directions, if the part has one.
fn payload(part: &Part) -> String {
    let of = |direction| part.payload_rate(direction).ok().flatten().map(rate);
    match (of(Direction::Read), of(Direction::Write)) {
        (Some(read), Some(write)) if read == write => read,
        (Some(read), Some(write)) => format!("{read}, {write}"),
        _ => String::new(),
    }
}

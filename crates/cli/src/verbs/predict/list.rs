//! Text output of the catalogue.
use keepup_model::{Direction, Part, catalogue, machine, machine_names};
use keepup_plan::units::ByteRate;

use crate::exit::Exit;
use crate::output::result;

/// Lists all parts, or those with `name` in their name; prints the figures if there is only one.
pub(super) fn parts(name: Option<&str>) -> anyhow::Result<Exit> {
    let all = catalogue()?;
    let name = name.unwrap_or_default();
    let found: Vec<&Part> = all.iter().filter(|part| part.name.contains(name)).collect();
    if let [one] = found[..] {
        result(&figures(one));
        return Ok(Exit::Done);
    }
    match all.iter().find(|part| part.name == name) {
        Some(part) => result(&figures(part)),
        // A name such as pcie3x8 combines a part and a width. For other names the error lists similar ones.
        None if found.is_empty() => result(&figures(&keepup_model::part(name)?)),
        None => result(&table(&found)),
    }
    Ok(Exit::Done)
}

fn table(parts: &[&Part]) -> String {
    let mut lines = Vec::new();
    let mut family = "";
    for part in parts {
        if part.family != family {
            family = &part.family;
            lines.push(format!("{}{family}", if lines.is_empty() { "" } else { "\n" }));
        }
        lines.push(format!("  {:<22} {:>22}  {}", part.name, rates(part), part.title));
    }
    lines.join("\n")
}

/// Payload rate in both directions, if the part has one.
fn rates(part: &Part) -> String {
    let rate = |direction| {
        let rate = part.payload_rate(direction).ok().flatten()?;
        ByteRate::new(rate).ok().map(|rate| rate.to_string())
    };
    match (rate(Direction::Read), rate(Direction::Write)) {
        (Some(read), Some(write)) if read == write => read,
        (Some(read), Some(write)) => format!("{read}, {write}"),
        _ => String::new(),
    }
}

fn figures(part: &Part) -> String {
    let mut lines = vec![format!("{}: {} ({})", part.name, part.title, part.family)];
    let rates = rates(part);
    if !rates.is_empty() {
        lines.push(format!("payload, read and written: {rates}"));
    }
    for (name, figure) in &part.figures {
        let source = format!("{:?}", figure.source).to_lowercase();
        lines.push(format!("  {name:<14} {figure:<44} {source}: {}", figure.from));
    }
    lines.join("\n")
}

/// Lists all machines, or prints one as a file.
pub(super) fn machines(name: Option<&str>) -> anyhow::Result<Exit> {
    if let Some(name) = name {
        result(super::machines::load(name)?.to_toml()?.trim_end());
        return Ok(Exit::Done);
    }
    let mut lines = Vec::new();
    for name in machine_names() {
        let machine = machine(name)?;
        let paths: Vec<&str> = machine.path.keys().map(String::as_str).collect();
        lines.push(format!("{name:<26} {}\n{:26} paths: {}", machine.title, "", paths.join(", ")));
    }
    result(&lines.join("\n"));
    Ok(Exit::Done)
}

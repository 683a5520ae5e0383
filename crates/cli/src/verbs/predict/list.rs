//! Lists of the catalogue: parts and machines.
use keepup_model::{Machine, ModelError, Part, catalogue, machine, machine_names};
use keepup_report::listing;

use crate::exit::Exit;
use crate::output::{print_listing, result};

/// Lists all parts, or those with `name` in their name; prints the figures if there is only one.
pub(super) fn parts(name: Option<&str>) -> anyhow::Result<Exit> {
    let all = catalogue()?;
    let name = name.unwrap_or_default();
    let found: Vec<&Part> = all.iter().filter(|part| part.name.contains(name)).collect();
    let print = |part: &Part| print_listing(|style| listing::part(part, style));
    match (&found[..], all.iter().find(|part| part.name == name)) {
        ([one], _) => print(one),
        (_, Some(one)) => print(one),
        // A name such as pcie3x8 combines a part and a width. For other names the error lists similar ones.
        ([], None) => print(&keepup_model::part(name)?),
        (found, None) => print_listing(|style| listing::parts(found, style)),
    }
    Ok(Exit::Done)
}

/// Lists all machines, or prints one as a file.
pub(super) fn machines(name: Option<&str>) -> anyhow::Result<Exit> {
    if let Some(name) = name {
        result(super::machines::load(name)?.to_toml()?.trim_end());
        return Ok(Exit::Done);
    }
    let machines = machine_names().map(machine).collect::<Result<Vec<Machine>, ModelError>>()?;
    print_listing(|style| listing::machines(&machines, style));
    Ok(Exit::Done)
}

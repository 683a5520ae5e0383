//! Rules for the names of hosts and fleets, addresses and programs.
use keepup_error::Cause;

/// Longest name of a host or fleet.
const NAME_MAX: usize = 63;
/// Longest address of a host.
const ADDRESS_MAX: usize = 255;
/// Longest path of the agent's program.
const PROGRAM_MAX: usize = 512;

/// Checks the name of a host or fleet.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), Cause> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_good = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_inside);
    let hint = format!(
        "1 to {NAME_MAX} letters, digits, dots, underscores and hyphens, with a letter or digit first"
    );
    match is_good && name.len() <= NAME_MAX {
        true => Ok(()),
        false => Err(Cause::new(format!("{what} {name:?} is not a valid name")).with_hint(hint)),
    }
}

/// Checks the address of a host for its launcher. It must not look like an option.
pub(super) fn check_address(host: &str, address: &str) -> Result<(), Cause> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "._-@:%[]/".contains(c);
    let is_good = !address.is_empty() && !address.starts_with('-') && address.chars().all(is_inside);
    match is_good && address.len() <= ADDRESS_MAX {
        true => Ok(()),
        false => Err(Cause::new(format!("host {host}: the address {address:?} is not valid"))
            .with_hint("such as \"daq1\", \"user@daq1\" or \"192.168.1.2\"")),
    }
}

/// Checks the program of the agents. ssh passes it to a shell, so it must not need quoting.
pub(super) fn check_program(program: &str) -> Result<(), Cause> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "._-+/".contains(c);
    let is_good = !program.is_empty() && !program.starts_with('-') && program.chars().all(is_inside);
    match is_good && program.len() <= PROGRAM_MAX {
        true => Ok(()),
        false => Err(Cause::new(format!("launcher: the program {program:?} is not valid"))
            .with_hint("letters, digits and . _ - + / only, such as \"/usr/local/bin/keepup\"")),
    }
}

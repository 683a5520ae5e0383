//! `keepup register set`: write of one register with read-back.
use std::path::Path;

use keepup_registers::{Target, TargetProfile, Width, set};

use super::read::{pair, width, with_driver};
use crate::exit::Exit;
use crate::output::result;

/// Write one register that the device profile allows
///
/// Only registers in the profile's list `write` can be written, and only on the device that the profile
/// describes. The register is read before and afterwards, unless a read changes it.
#[derive(clap::Args)]
#[command(after_help = "Example:
  sudo keepup register set pci:0000:00:04.0/bar0 0x4=0x12345678 --profile edu")]
pub(super) struct Args {
    /// Target: pci:, vfio: or uio:
    target: Target,
    /// Offset in bytes and value
    #[arg(value_name = "OFFSET=VALUE", value_parser = pair)]
    register: (u64, u64),
    /// Device profile: a TOML file or the built-in profile `edu`
    #[arg(long, value_name = "FILE|NAME")]
    profile: String,
    /// Width of the register in bits
    #[arg(long, default_value = "32", value_parser = width)]
    width: Width,
    /// Bind the function to this driver during the access
    #[arg(long, value_name = "DRIVER")]
    bind: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let profile = TargetProfile::find(&args.profile)?;
    let (offset, value) = args.register;
    let written = with_driver(&args.target, args.bind.as_deref(), || {
        set(&args.target, Path::new("/"), &profile, (offset, args.width), value)
    })??;
    let read = |value: Option<u64>| value.map_or_else(|| "not read".into(), |value| format!("{value:#x}"));
    result(&format!(
        "{}: {offset:#x} was {}, wrote {value:#x}, reads {}",
        args.target,
        read(written.before),
        read(written.after)
    ));
    Ok(Exit::Done)
}

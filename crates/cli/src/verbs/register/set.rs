//! `keepup register set`: writes one register that a profile allows, and reads it back.
use std::path::Path;

use keepup_registers::{Target, TargetProfile, Width, set};

use super::read::{bound, pair, width};
use crate::exit::Exit;
use crate::output::result;

/// Write one register that a profile of the device allows
///
/// The profile's list `write` names what may be written; without a profile nothing is. The device must be the
/// one that the profile is for. The register is read before and afterwards, unless reading changes it.
#[derive(clap::Args)]
#[command(after_help = "Example:
  sudo keepup register set pci:0000:00:04.0/bar0 0x4=0x12345678 --profile edu")]
pub(super) struct Args {
    /// What to write to: pci:, vfio: or uio:
    target: Target,
    /// Where, bytes, and what
    #[arg(value_name = "OFFSET=VALUE", value_parser = pair)]
    register: (u64, u64),
    /// What is known of the device: a file in TOML, or a built-in profile (edu)
    #[arg(long, value_name = "FILE|NAME")]
    profile: String,
    /// Width of the register in bits
    #[arg(long, default_value = "32", value_parser = width)]
    width: Width,
    /// Bind the function to this driver meanwhile, and to its own again afterwards
    #[arg(long, value_name = "DRIVER")]
    bind: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let profile = TargetProfile::find(&args.profile)?;
    let (offset, value) = args.register;
    let written = bound(&args.target, args.bind.as_deref(), || {
        set(&args.target, Path::new("/"), &profile, (offset, args.width), value)
    })??;
    let read = |value: Option<u64>| value.map_or_else(|| "not read".into(), |value| format!("{value:#x}"));
    result(&format!(
        "{}: {offset:#x} was {}, {value:#x} was written, it reads {}",
        args.target,
        read(written.before),
        read(written.after)
    ));
    Ok(Exit::Done)
}

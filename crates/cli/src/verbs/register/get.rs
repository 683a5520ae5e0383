//! `keepup register get`: register values.
use std::path::Path;

use anyhow::Context;
use keepup_registers::{ReadRequest, Span, Target, TargetProfile, Width, get};

use super::read::{number, width, with_driver};
use crate::exit::Exit;
use crate::output::{json, result};

/// Print the values of registers, read by one access method
#[derive(clap::Args)]
#[command(after_help = "Example:
  keepup register get vme:/dev/bus/vme/m0 --offset 0x100 --count 4 --method block")]
pub(super) struct Args {
    /// Target, as in `register read`
    target: Target,
    /// Offset of the first register, in bytes
    #[arg(long, default_value = "0", value_parser = number, value_name = "BYTES")]
    offset: u64,
    /// Number of registers
    #[arg(long, default_value = "1", value_parser = number, value_name = "N")]
    count: u64,
    /// Width of a register in bits
    #[arg(long, default_value = "32", value_parser = width)]
    width: Width,
    /// Access method [default: the first of the target]
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// Read the same register repeatedly
    #[arg(long)]
    fifo: bool,
    /// Device profile: a TOML file or the built-in profile `edu`
    #[arg(long, value_name = "FILE|NAME")]
    profile: Option<String>,
    /// Registers to read although a read changes them
    #[arg(long, value_name = "OFFSETS", value_delimiter = ',', value_parser = number, requires = "profile")]
    read_to_clear: Vec<u64>,
    /// Bind the function to this driver during the access
    #[arg(long, value_name = "DRIVER")]
    bind: Option<String>,
    /// Print the values as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let profile = args.profile.as_deref().map(TargetProfile::find).transpose()?;
    let span = Span { offset: args.offset, count: args.count, width: args.width, is_fifo: args.fifo };
    let read = ReadRequest {
        span,
        method: args.method.as_deref(),
        profile: profile.as_ref(),
        read_to_clear: &args.read_to_clear,
    };
    let values =
        with_driver(&args.target, args.bind.as_deref(), || get(&args.target, Path::new("/"), &read))??;
    if args.json {
        let object = serde_json::json!({
            "target": args.target.to_string(),
            "offset": args.offset,
            "width_bits": args.width.bits(),
            "fifo": args.fifo,
            "values": values,
        });
        json(&serde_json::to_value(object).context("cannot encode the values")?);
        return Ok(Exit::Done);
    }
    let step = if args.fifo { 0 } else { args.width.bytes() as u64 };
    let digits = 2 + 2 * args.width.bytes();
    let line = |(index, value): (u64, &u64)| format!("{:#x}: {value:#0digits$x}", args.offset + index * step);
    result(&(0..).zip(&values).map(line).collect::<Vec<_>>().join("\n"));
    Ok(Exit::Done)
}

//! How bytes get to the disk: flags that every test of streams has.
use clap::ValueEnum;
use keepup_error::Cause;
use keepup_workload::disk::mode::{Access, Durability, EngineChoice, Mode, Pattern, Space};

use crate::args::AccessArg;
use crate::exit::{UsageError, usage};

/// The flags.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ModeArgs {
    /// Past the page cache, or through it
    #[arg(long, value_enum, default_value_t)]
    access: AccessArg,
    /// A write ends only when it is durable (O_DSYNC)
    #[arg(long)]
    dsync: bool,
    /// How requests are made
    #[arg(long, value_enum, default_value_t)]
    engine: DiskEngineArg,
    /// This part of what is written can be compressed away
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(..=100),
    )]
    compressible: u8,
    /// This part of the pages is written more than once
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(..=100),
    )]
    duplicate: u8,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum DiskEngineArg {
    /// io_uring where the kernel allows it, else plain calls
    #[default]
    Auto,
    /// io_uring or nothing
    Ring,
    /// Plain calls, one at a time
    Plain,
    /// Copies to and from a mapping of the file
    Mmap,
}

/// What lies where a writer writes.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum SpaceArg {
    /// Nothing: files grow
    New,
    /// Space that was reserved
    #[default]
    Preallocated,
    /// Older data
    Overwritten,
}

/// What lies where something is written for the first time.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum FirstSpaceArg {
    /// Nothing: files grow
    New,
    /// Space that was reserved
    #[default]
    Preallocated,
}

impl FirstSpaceArg {
    pub(super) fn space(self) -> Space {
        match self {
            Self::New => Space::New,
            Self::Preallocated => Space::Preallocated,
        }
    }
}

/// Requests under way: 1 to 1024.
pub(super) fn depth(text: &str) -> Result<usize, String> {
    let depth = text.trim().parse().ok().filter(|depth| (1..=1024).contains(depth));
    depth.ok_or_else(|| format!("{text:?} is not a depth from 1 to 1024"))
}

/// Size of a request, in bytes: a multiple of 512 up to 64 MiB.
pub(super) fn request(text: &str) -> Result<usize, UsageError> {
    let bytes = crate::args::size(text)?;
    match (512..=64 << 20).contains(&bytes) && bytes % 512 == 0 {
        true => Ok(bytes as usize),
        false => {
            let why = format!("{bytes} bytes is not a multiple of 512 from 512 B to 64 MiB");
            Err(UsageError::new(why))
        }
    }
}

impl SpaceArg {
    pub(super) fn space(self) -> Space {
        match self {
            Self::New => Space::New,
            Self::Preallocated => Space::Preallocated,
            Self::Overwritten => Space::Overwritten,
        }
    }
}

impl ModeArgs {
    /// The mode; refuses what cannot be together.
    pub(super) fn mode(&self, space: Space) -> anyhow::Result<Mode> {
        let access = self.access.access();
        let engine = match self.engine {
            DiskEngineArg::Auto => EngineChoice::Auto,
            DiskEngineArg::Ring => EngineChoice::Ring,
            DiskEngineArg::Plain => EngineChoice::Plain,
            DiskEngineArg::Mmap => EngineChoice::Mapped,
        };
        if engine == EngineChoice::Mapped && access == Access::Direct {
            let why = Cause::new("cannot map a file with direct access: it is always in the page cache");
            return Err(usage(why.with_hint("add --access buffered")));
        }
        if engine == EngineChoice::Mapped && self.dsync {
            return Err(usage("a copy into a mapping cannot wait for the disk: leave --dsync out"));
        }
        let pattern = Pattern { compressible: self.compressible, duplicate: self.duplicate };
        let durability = if self.dsync { Durability::EachWrite } else { Durability::Flushed };
        Ok(Mode { access, durability, engine, pattern, space })
    }
}

/// The settings as they stand in a result.
pub(super) fn described(mode: &Mode) -> serde_json::Value {
    let engine = match mode.engine {
        EngineChoice::Auto => "auto",
        EngineChoice::Ring => "io_uring",
        EngineChoice::Plain => "plain calls",
        EngineChoice::Mapped => "mmap",
    };
    let space = match mode.space {
        Space::New => "new",
        Space::Preallocated => "preallocated",
        Space::Overwritten => "overwritten",
    };
    serde_json::json!({
        "access": if mode.access == Access::Direct { "direct" } else { "buffered" },
        "dsync": mode.durability == Durability::EachWrite, "engine": engine, "space": space,
        "compressible_percent": mode.pattern.compressible, "duplicate_percent": mode.pattern.duplicate,
    })
}

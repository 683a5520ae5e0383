//! Flags for the I/O mode of stream tests.
use clap::ValueEnum;
use keepup_error::Cause;
use keepup_workload::disk::mode::{Access, Durability, EngineChoice, Mode, Pattern, Space};

use crate::args::AccessArg;
use crate::exit::{UsageError, usage};

/// I/O mode.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ModeArgs {
    /// Page cache use
    #[arg(long, value_enum, default_value_t)]
    access: AccessArg,
    /// Wait for each write to be durable (O_DSYNC)
    #[arg(long)]
    dsync: bool,
    /// I/O engine: io_uring, or blocking system calls (sync)
    #[arg(long, value_enum, default_value_t)]
    engine: DiskEngineArg,
    /// Compressible share of the data, in percent
    #[arg(
        long,
        value_name = "PCT",
        default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(..=100),
    )]
    compressible: u8,
    /// Share of duplicate pages, in percent
    #[arg(
        long,
        value_name = "PCT",
        default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(..=100),
    )]
    duplicate: u8,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum DiskEngineArg {
    /// io_uring if available, else system calls
    #[default]
    Auto,
    /// io_uring only
    #[value(name = "io_uring", alias = "ring")]
    Ring,
    /// Blocking system calls, one at a time
    #[value(name = "sync", alias = "plain")]
    Plain,
    /// Copies to and from a file mapping
    Mmap,
}

/// State of the space before it is written.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum SpaceArg {
    /// Unallocated: files grow
    New,
    /// Preallocated, not written
    #[default]
    Preallocated,
    /// Existing data
    Overwritten,
}

/// State of the space before its first write.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum FirstSpaceArg {
    /// Unallocated: files grow
    New,
    /// Preallocated, not written
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

/// Parses a queue depth from 1 to 1024.
pub(super) fn depth(text: &str) -> Result<usize, String> {
    let depth = text.trim().parse().ok().filter(|depth| (1..=1024).contains(depth));
    depth.ok_or_else(|| format!("{text:?} is not a queue depth from 1 to 1024"))
}

/// Parses a request size in bytes, a multiple of 512 up to 64 MiB.
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
    /// I/O mode; contradicting flags are an error.
    pub(super) fn mode(&self, space: Space) -> anyhow::Result<Mode> {
        let access = self.access.access();
        let engine = match self.engine {
            DiskEngineArg::Auto => EngineChoice::Auto,
            DiskEngineArg::Ring => EngineChoice::Ring,
            DiskEngineArg::Plain => EngineChoice::Plain,
            DiskEngineArg::Mmap => EngineChoice::Mapped,
        };
        if engine == EngineChoice::Mapped && access == Access::Direct {
            let why =
                Cause::new("cannot use --engine mmap with direct access: a mapping uses the page cache");
            return Err(usage(why.with_hint("--access buffered")));
        }
        if engine == EngineChoice::Mapped && self.dsync {
            return Err(usage(
                "cannot use --dsync with --engine mmap: a copy into a mapping cannot wait for the disk",
            ));
        }
        let pattern = Pattern { compressible: self.compressible, duplicate: self.duplicate };
        let durability = if self.dsync { Durability::EachWrite } else { Durability::Flushed };
        Ok(Mode { access, durability, engine, pattern, space })
    }
}

/// Settings as stored in a result.
pub(super) fn described(mode: &Mode) -> serde_json::Value {
    let engine = match mode.engine {
        EngineChoice::Auto => "auto",
        EngineChoice::Ring => "io_uring",
        EngineChoice::Plain => "sync",
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

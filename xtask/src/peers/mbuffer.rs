//! mbuffer: a ring of memory between a socket and a file, fed by the bare sender.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::contestant::{Contestant, Run, RunLimits};
use super::loopback::free_address;
use super::sender;
use super::tools::Tool;
use super::transfer::{Pair, transfer};

/// The program.
pub(super) const TOOL: Tool = Tool { program: "mbuffer", package: "mbuffer" };

/// As much memory as the recorder's pool has, in blocks of the size that is sent.
const BUFFER: [&str; 4] = ["-m", "512M", "-s", "256k"];

/// A receiver that writes through the page cache or past it.
pub(super) struct Mbuffer {
    name: &'static str,
    direct: bool,
}

impl Mbuffer {
    /// Writes through the page cache.
    pub(super) fn buffered() -> Self {
        Self { name: "mbuffer", direct: false }
    }

    /// Writes with O_DIRECT, which is what mbuffer does unless told otherwise; its `--direct` is about
    /// something else, the file that can take the place of its memory.
    pub(super) fn direct() -> Self {
        Self { name: "mbuffer-direct", direct: true }
    }

    fn flags(&self) -> impl Iterator<Item = &'static str> {
        ["-q"].into_iter().chain(BUFFER).chain((!self.direct).then_some("--no-direct"))
    }
}

impl Contestant for Mbuffer {
    fn name(&self) -> &str {
        self.name
    }

    fn command(&self) -> String {
        let flags: Vec<&str> = self.flags().collect();
        format!("`mbuffer {} -I ADDR -o FILE` (then fsync), from a bare TCP sender", flags.join(" "))
    }

    fn tool(&self) -> Option<&'static Tool> {
        Some(&TOOL)
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        let address = free_address()?;
        let file = limits.directory.join("mbuffer");
        let mut receiver = Command::new(TOOL.program);
        receiver.args(self.flags()).args(["-I", &address.to_string(), "-o"]).arg(&file);
        let sender = sender::command(address, limits.bytes)?;
        let port = address.port();
        let pair = Pair { receiver, port, sender, file: Some(file.clone()), limit: limits.time };
        let transfer = transfer(pair)?;
        let bytes = file.metadata().with_context(|| format!("look at {}", file.display()))?.len();
        ensure!(bytes == limits.bytes, "mbuffer wrote {bytes} of {} bytes", limits.bytes);
        Ok(vec![transfer.run(bytes, sender::accepted(&transfer.sender_said, bytes))])
    }
}

//! mbuffer: memory ring between a socket and a file, fed by the plain TCP sender.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::contestant::{Contestant, Run, RunLimits};
use super::loopback::free_address;
use super::sender;
use super::tools::Tool;
use super::transfer::{Pair, transfer};

/// Program.
pub(super) const TOOL: Tool = Tool { program: "mbuffer", package: "mbuffer" };

/// Memory of the size of the recorder pool, in blocks of the size sent.
const BUFFER: [&str; 4] = ["-m", "512M", "-s", "256k"];

/// Receiver that writes with or without the page cache.
pub(super) struct Mbuffer {
    name: &'static str,
    direct: bool,
}

impl Mbuffer {
    /// Writes through the page cache.
    pub(super) fn buffered() -> Self {
        Self { name: "mbuffer", direct: false }
    }

    /// Writes with O_DIRECT, the default of mbuffer. Its `--direct` is unrelated: it concerns the file that
    /// can replace its memory.
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

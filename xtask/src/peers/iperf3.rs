//! iperf3: single-use server, with or without a file, and its client.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::contestant::{Contestant, Run, RunLimits};
use super::loopback::free_address;
use super::tools::Tool;
use super::transfer::{Pair, transfer};

/// Program.
pub(super) const TOOL: Tool = Tool { program: "iperf3", package: "iperf3" };

/// Receiving server, with or without an output file.
pub(super) struct Iperf3 {
    name: &'static str,
    to_file: bool,
}

impl Iperf3 {
    /// Writes the data to a file.
    pub(super) fn to_file() -> Self {
        Self { name: "iperf3", to_file: true }
    }

    /// Discards the data.
    pub(super) fn dropping() -> Self {
        Self { name: "iperf3-drop", to_file: false }
    }
}

impl Contestant for Iperf3 {
    fn name(&self) -> &str {
        self.name
    }

    fn command(&self) -> String {
        let file = if self.to_file { " -F FILE` (then fsync)" } else { "`" };
        format!("`iperf3 -s -1{file}, from `iperf3 -c -l 256K`")
    }

    fn tool(&self) -> Option<&'static Tool> {
        Some(&TOOL)
    }

    fn run(&self, limits: &RunLimits<'_>) -> Result<Vec<Run>> {
        let address = free_address()?;
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let file = self.to_file.then(|| limits.directory.join("iperf3"));
        let mut receiver = Command::new(TOOL.program);
        receiver.args(["-s", "-1", "-B", &host, "-p", &port]);
        if let Some(file) = &file {
            receiver.arg("-F").arg(file);
        }
        let mut sender = Command::new(TOOL.program);
        let bytes = limits.bytes.to_string();
        sender.args(["-c", &host, "-p", &port, "-l", "256K", "-n", &bytes, "-J"]);
        let port = address.port();
        let pair = Pair { receiver, port, sender, file: file.clone(), limit: limits.time };
        let transfer = transfer(pair)?;
        let (mut bytes, accepted) = received(&transfer.sender_said)?;
        if let Some(file) = &file {
            bytes = file.metadata().with_context(|| format!("look at {}", file.display()))?.len();
        }
        Ok(vec![transfer.run(bytes, Some(accepted))])
    }
}

/// Bytes received by the server and bytes per second, from the JSON of the client. The server stops reading
/// when the client finishes and drops data in flight, which does not count.
fn received(json: &str) -> Result<(u64, f64)> {
    let report: Value = serde_json::from_str(json).context("read what iperf3 printed")?;
    if let Some(why) = report["error"].as_str() {
        bail!("iperf3 failed: {why}");
    }
    let sum = &report["end"]["sum_received"];
    let figures = sum["bytes"].as_u64().zip(sum["bits_per_second"].as_f64());
    let (bytes, bits_per_second) = figures.context("iperf3 did not say what it received")?;
    Ok((bytes, bits_per_second / 8.0))
}

#[cfg(test)]
#[path = "iperf3_tests.rs"]
mod tests;

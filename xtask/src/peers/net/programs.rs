//! keepup, iperf3 and nuttcp at both ends of a wire, and parsers of their output.

use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use keepup_measure::sum::Sums;
use serde_json::Value;

use super::ends::{ClientReport, Ends};
use super::wire::Wire;
use crate::peers::iperf3;
use crate::peers::tools::Tool;

/// nuttcp.
pub(super) const NUTTCP: Tool = Tool { program: "nuttcp", package: "nuttcp" };
/// Ports of the servers.
const KEEPUP_PORT: u16 = 7613;
const IPERF3_PORT: u16 = 5201;
const NUTTCP_PORT: u16 = 5000;

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// keepup; `kind` is `tcp` or `udp`.
pub(super) fn keepup(
    program: &Path,
    name: &'static str,
    wire: &Rc<Wire>,
    kind: &str,
    flags: &[&str],
    seconds: u64,
) -> Ends {
    let address = wire.server();
    let server = words(&format!("net serve --listen {address}:{KEEPUP_PORT}"));
    let mut client = words(&format!("net {kind} {address}:{KEEPUP_PORT} --json --ramp 0s --time {seconds}s"));
    client.extend(flags.iter().map(|flag| (*flag).to_owned()));
    Ends {
        name,
        program: program.to_path_buf(),
        tool: None,
        wire: Rc::clone(wire),
        server,
        port: KEEPUP_PORT,
        stays: true,
        client,
        read: read_keepup,
    }
}

/// iperf3 with additional flags.
pub(super) fn iperf3(name: &'static str, wire: &Rc<Wire>, flags: &str, seconds: u64) -> Ends {
    let address = wire.server();
    Ends {
        name,
        program: iperf3::TOOL.program.into(),
        tool: Some(&iperf3::TOOL),
        wire: Rc::clone(wire),
        server: words(&format!("-s -1 -B {address}")),
        port: IPERF3_PORT,
        stays: false,
        client: words(&format!("-c {address} -J -t {seconds} {flags}")),
        read: read_iperf3,
    }
}

/// nuttcp with additional flags.
pub(super) fn nuttcp(name: &'static str, wire: &Rc<Wire>, flags: &str, seconds: u64) -> Ends {
    Ends {
        name,
        program: NUTTCP.program.into(),
        tool: Some(&NUTTCP),
        wire: Rc::clone(wire),
        server: words("-4 -S --nofork -1"),
        port: NUTTCP_PORT,
        stays: false,
        client: words(&format!("-4 -T {seconds} -fparse {flags} {}", wire.server())),
        read: read_nuttcp,
    }
}

/// Parses the output of a keepup client.
fn read_keepup(said: &str) -> Result<ClientReport> {
    let summary: Value = serde_json::from_str(said).context("parse the output of keepup")?;
    if let Some(failure) = summary["failure"].as_str() {
        bail!("keepup failed: {failure}");
    }
    let run = &summary["runs"][0];
    let flows = run["flows"].as_array().context("no flows in the output of keepup")?;
    let sum = |key: &str| {
        let counts: Option<Vec<u64>> = flows.iter().map(|flow| flow["received"][key].as_u64()).collect();
        Some(counts?.iter().saturating_sum::<u64>())
    };
    let seconds = flows.first().and_then(|flow| flow["received"]["seconds"].as_f64());
    let (bytes, seconds) = sum("bytes").zip(seconds).context("no received bytes in the output of keepup")?;
    let ledger = &run["ledger"];
    let of = |key: &str| ledger[key].as_f64();
    let lost = of("due").zip(of("received")).map(|(due, received)| (due - received).max(0.0) / due.max(1.0));
    let datagrams = lost.and(sum("messages"));
    Ok(ClientReport { bytes, datagrams, lost, seconds })
}

/// Parses the output of an iperf3 client: received bytes for TCP, sent minus lost bytes for UDP.
fn read_iperf3(said: &str) -> Result<ClientReport> {
    let report: Value = serde_json::from_str(said).context("parse the output of iperf3")?;
    if let Some(why) = report["error"].as_str() {
        bail!("iperf3 failed: {why}");
    }
    let end = &report["end"];
    let of = |sum: &Value, key: &str| sum[key].as_f64();
    let sum = &end["sum"];
    if let Some((packets, lost)) = of(sum, "packets").zip(of(sum, "lost_packets")) {
        let figures = of(sum, "bytes").zip(of(sum, "seconds"));
        let (bytes, seconds) = figures.context("no sent bytes in the output of iperf3")?;
        let arrived = (packets - lost).max(0.0);
        let share = lost / packets.max(1.0);
        let bytes = (bytes * (1.0 - share)) as u64;
        return Ok(ClientReport { bytes, datagrams: Some(arrived as u64), lost: Some(share), seconds });
    }
    let sum = &end["sum_received"];
    let figures = sum["bytes"].as_u64().zip(of(sum, "seconds"));
    let (bytes, seconds) = figures.context("no received bytes in the output of iperf3")?;
    Ok(ClientReport { bytes, datagrams: None, lost: None, seconds })
}

/// Parses the `name=value` output of a nuttcp client.
fn read_nuttcp(said: &str) -> Result<ClientReport> {
    let value = |name: &str| {
        let word =
            said.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
        word.parse::<f64>().ok()
    };
    let figures = value("megabytes").zip(value("real_seconds"));
    let (megabytes, seconds) = figures.context("no bytes in the output of nuttcp")?;
    // Its megabytes are 2^20 bytes.
    let bytes = (megabytes * 1_048_576.0) as u64;
    Ok(ClientReport { bytes, datagrams: None, lost: None, seconds })
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;

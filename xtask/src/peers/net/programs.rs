//! keepup, iperf3 and nuttcp at both ends of a wire, and what their clients say.

use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::ends::{Ends, Said};
use super::wire::Wire;
use crate::peers::iperf3;
use crate::peers::tools::Tool;

/// The third program.
pub(super) const NUTTCP: Tool = Tool { program: "nuttcp", package: "nuttcp" };
/// Ports of the servers.
const KEEPUP_PORT: u16 = 7613;
const IPERF3_PORT: u16 = 5201;
const NUTTCP_PORT: u16 = 5000;
pub(super) const TOKEN: &str = "a-token-for-peers";

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// keepup; `kind` is `tcp` or `udp`, `flags` what the test needs.
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
        read: of_keepup,
    }
}

/// iperf3 with the flags of the test.
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
        read: of_iperf3,
    }
}

/// nuttcp with the flags of the test.
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
        read: of_nuttcp,
    }
}

/// What keepup's client says of its only run.
fn of_keepup(said: &str) -> Result<Said> {
    let summary: Value = serde_json::from_str(said).context("read what keepup printed")?;
    if let Some(failure) = summary["failure"].as_str() {
        bail!("keepup was cut short: {failure}");
    }
    let run = &summary["runs"][0];
    let flows = run["flows"].as_array().context("keepup told of no flow")?;
    let sum = |key: &str| flows.iter().map(|flow| flow["received"][key].as_u64()).sum::<Option<u64>>();
    let seconds = flows.first().and_then(|flow| flow["received"]["seconds"].as_f64());
    let (bytes, seconds) = sum("bytes").zip(seconds).context("keepup did not say what arrived")?;
    let ledger = &run["ledger"];
    let of = |key: &str| ledger[key].as_f64();
    let lost = of("due").zip(of("received")).map(|(due, received)| (due - received).max(0.0) / due.max(1.0));
    let datagrams = lost.and(sum("messages"));
    Ok(Said { bytes, datagrams, lost, seconds })
}

/// What iperf3's client says: of TCP what the server received, of UDP what was sent less what was lost.
fn of_iperf3(said: &str) -> Result<Said> {
    let report: Value = serde_json::from_str(said).context("read what iperf3 printed")?;
    if let Some(why) = report["error"].as_str() {
        bail!("iperf3 failed: {why}");
    }
    let end = &report["end"];
    let of = |sum: &Value, key: &str| sum[key].as_f64();
    let sum = &end["sum"];
    if let Some((packets, lost)) = of(sum, "packets").zip(of(sum, "lost_packets")) {
        let figures = of(sum, "bytes").zip(of(sum, "seconds"));
        let (bytes, seconds) = figures.context("iperf3 did not say what it sent")?;
        let arrived = (packets - lost).max(0.0);
        let share = lost / packets.max(1.0);
        let bytes = (bytes * (1.0 - share)) as u64;
        return Ok(Said { bytes, datagrams: Some(arrived as u64), lost: Some(share), seconds });
    }
    let sum = &end["sum_received"];
    let figures = sum["bytes"].as_u64().zip(of(sum, "seconds"));
    let (bytes, seconds) = figures.context("iperf3 did not say what it received")?;
    Ok(Said { bytes, datagrams: None, lost: None, seconds })
}

/// What nuttcp's client says in its lines of `name=value`.
fn of_nuttcp(said: &str) -> Result<Said> {
    let value = |name: &str| {
        let word =
            said.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
        word.parse::<f64>().ok()
    };
    let figures = value("megabytes").zip(value("real_seconds"));
    let (megabytes, seconds) = figures.context("nuttcp did not say what it moved")?;
    // Its megabytes are 2^20 bytes.
    let bytes = (megabytes * 1_048_576.0) as u64;
    Ok(Said { bytes, datagrams: None, lost: None, seconds })
}

#[cfg(test)]
#[path = "programs_tests.rs"]
mod tests;

//! Loopback server for the address `self` of a network test.
//!
//! The server is a separate process, so that the CPU time of both ends is measured separately. It exits when
//! its standard input closes, which happens however the test ends.
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use keepup_workload::net::{Credentials, TOKEN_VARIABLE};

use crate::output::LOG_VARIABLE;
use crate::token;

/// Address of the loopback server on the command line and in results.
pub(super) const SELF: &str = "self";
/// Text before the address in the first line of the server.
pub(super) const LISTENING: &str = "listening on ";

/// Server process that ends when this value is dropped.
pub(super) struct LoopbackServer {
    process: Child,
    pub(super) address: SocketAddr,
    pub(super) credentials: Credentials,
}

impl LoopbackServer {
    /// Starts this executable as a server on a free loopback port, with a new token in its environment.
    pub(super) fn start() -> anyhow::Result<Self> {
        let credentials = token::new_net_credentials()?;
        let program =
            std::env::current_exe().context("cannot find the keepup executable to run the server")?;
        let process = Command::new(program)
            .args(["net", "serve", "--listen", "127.0.0.1:0", "--child"])
            .env(TOKEN_VARIABLE, credentials.token.reveal())
            .env_remove(LOG_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C must not end the server: the test still needs its final report.
            .process_group(0)
            .spawn()
            .context("cannot start the loopback server")?;
        // Owned before the next step can fail, so that it is always stopped.
        let mut server = Self { process, address: SocketAddr::from(([127, 0, 0, 1], 0)), credentials };
        server.address = server.listen()?;
        Ok(server)
    }

    /// Reads the address of the server. Its later output is discarded, so that the pipe never fills.
    fn listen(&mut self) -> anyhow::Result<SocketAddr> {
        let stderr = self.process.stderr.take().context("cannot read from the loopback server")?;
        let mut stderr = BufReader::new(stderr);
        let mut line = String::new();
        stderr.read_line(&mut line).context("cannot read from the loopback server")?;
        let address = line.trim().strip_prefix(LISTENING).and_then(|address| address.parse().ok());
        let address =
            address.with_context(|| format!("cannot start the loopback server: {}", line.trim()))?;
        let reading = std::thread::Builder::new().name("ku-own-server".into());
        let read_on = move || std::io::copy(&mut stderr, &mut std::io::sink());
        reading.spawn(read_on).context("cannot read from the loopback server")?;
        Ok(address)
    }
}

impl Drop for LoopbackServer {
    fn drop(&mut self) {
        // The server exits when its input closes. An error of `wait` cannot be handled here.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Sets `stop` when standard input closes, which happens when the parent process ends.
pub(super) fn end_with_parent(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let stop = Arc::clone(stop);
    let watching = std::thread::Builder::new().name("ku-parent".into());
    let watch = move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        stop.store(true, Ordering::Release);
    };
    watching.spawn(watch).context("cannot watch the parent")?;
    Ok(())
}

//! `self` as the address of a network test: a server of the test's own, over loopback.
//!
//! It is a process of its own, so that the CPU of both ends stays apart, and ends with the test however that
//! ends: its standard input is the test's, and closes with it.
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

/// The address that stands for it, and its name in results.
pub(super) const OWN: &str = "self";
/// What the server says before its address.
pub(super) const LISTENING: &str = "listening on ";

/// A server that ends with this value.
pub(super) struct OwnServer {
    process: Child,
    pub(super) address: SocketAddr,
    pub(super) credentials: Credentials,
}

impl OwnServer {
    /// Starts this program as a server on a free port of loopback, with a new token that only its environment
    /// has.
    pub(super) fn start() -> anyhow::Result<Self> {
        let credentials = Credentials { token: token::made_up()?, random: token::hex_digits };
        let program = std::env::current_exe().context("cannot find the program that is the server")?;
        let process = Command::new(program)
            .args(["net", "serve", "--listen", "127.0.0.1:0", "--child"])
            .env(TOKEN_VARIABLE, credentials.token.reveal())
            .env_remove(LOG_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C is for the test, which still has to hear from its server.
            .process_group(0)
            .spawn()
            .context("cannot start the server of the test's own")?;
        // In a value that ends it before anything can fail.
        let mut server = Self { process, address: SocketAddr::from(([127, 0, 0, 1], 0)), credentials };
        server.address = server.listen()?;
        Ok(server)
    }

    /// Where it says that it listens. What it says later is read, so that it never waits, and dropped.
    fn listen(&mut self) -> anyhow::Result<SocketAddr> {
        let said = self.process.stderr.take().context("cannot hear the server of the test's own")?;
        let mut said = BufReader::new(said);
        let mut line = String::new();
        said.read_line(&mut line).context("cannot hear the server of the test's own")?;
        let address = line.trim().strip_prefix(LISTENING).and_then(|address| address.parse().ok());
        let address = address
            .with_context(|| format!("the server of the test's own did not start: {}", line.trim()))?;
        let reading = std::thread::Builder::new().name("ku-own-server".into());
        let read_on = move || std::io::copy(&mut said, &mut std::io::sink());
        reading.spawn(read_on).context("cannot listen to the server of the test's own")?;
        Ok(address)
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        // It ends when its input does; that it cannot be waited for leaves nothing to be done.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Raises `stop` when standard input ends, as it does with the process that started this one.
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

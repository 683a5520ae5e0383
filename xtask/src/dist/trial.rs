//! Test of the archive in an empty root directory without libraries and `/proc`, with only `/etc/hosts`:
//! records from a source that uses a host name over loopback, and verifies the recording.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use keepup_measure::sum::Sums;
use serde_json::Value;

/// Host name that exists only in the hosts file of the root directory.
const HOST: &str = "recorder.keepup.test";
/// Timeout of a recording of two seconds.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Methods to change the root directory. The last one is for root without user namespaces.
const WAYS: [&[&str]; 2] = [&["unshare", "--user", "--map-root-user", "--wd", "/", "--root"], &["chroot"]];

/// Runs the test. Prints SKIPPED if the root directory cannot be changed.
pub(super) fn run(archive: &Path) -> Result<ExitCode> {
    let mut root = Root::unpack(archive)?;
    if let Err(why) = root.find_way() {
        println!("SKIPPED dist --test: the root directory cannot be changed here: {why:#}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("in an empty root: {}", root.finish(&["--version"])?.trim());
    let arguments = ["record", "--listen", "127.0.0.1:0", "--volume", "/disk", "--name", "run1"];
    let mut recorder = Recorder::start(&root, &arguments)?;
    let address = format!("{HOST}:{}", recorder.port()?);
    let flags = ["--time", "2s", "--buffer", "1 GB", "--json"];
    let source = root.finish(&[&["source", "csl", "--to", &address][..], &flags].concat())?;
    recorder.wait()?;
    // It ends with 0 only when everything is there and intact.
    let verified = root.finish(&["verify", "/disk/run1", "--json"])?;
    let (source, verified): (Value, Value) =
        (serde_json::from_str(&source)?, serde_json::from_str(&verified)?);
    let streams = verified["streams"].as_object().into_iter().flat_map(|streams| streams.values());
    let found: u64 = streams.filter_map(|stream| stream["recorded"]["events"].as_u64()).saturating_sum();
    let sent = source["sent"]["events"].as_u64().unwrap_or(0);
    ensure!(sent > 0 && found == sent, "{sent} events were sent to {address}, {found} verified");
    println!("{sent} events sent to {address}, all recorded and verified");
    Ok(ExitCode::SUCCESS)
}

/// Temporary root directory, removed when dropped.
struct Root {
    path: PathBuf,
    way: &'static [&'static str],
}

impl Root {
    fn unpack(archive: &Path) -> Result<Self> {
        let path = archive.with_file_name("empty-root");
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        let root = Self { path, way: WAYS[0] };
        for folder in ["etc", "disk"] {
            fs::create_dir_all(root.path.join(folder))?;
        }
        fs::write(root.path.join("etc/hosts"), format!("127.0.0.1 localhost {HOST}\n"))?;
        let mut tar = Command::new("tar");
        let done =
            tar.arg("-xf").arg(archive).arg("--strip-components=1").arg("-C").arg(&root.path).status()?;
        ensure!(done.success(), "cannot unpack {}", archive.display());
        let sums = Command::new("sha256sum")
            .args(["--quiet", "-c", "SHA256SUMS"])
            .current_dir(&root.path)
            .status()?;
        ensure!(sums.success(), "the archive's SHA256SUMS does not match its files");
        Ok(root)
    }

    /// Finds a working method to change the root directory.
    fn find_way(&mut self) -> Result<()> {
        let mut refusals = Vec::new();
        for way in WAYS {
            self.way = way;
            let tried =
                self.enter(&["--version"]).output().with_context(|| format!("cannot run {}", way[0]))?;
            let said = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
            // keepup's own failure is no reason to skip.
            if tried.status.success() || !said.starts_with(&format!("{}:", way[0])) {
                return Ok(());
            }
            refusals.push(said);
        }
        bail!(refusals.join("; "))
    }

    /// keepup in this root directory, without environment variables.
    fn enter(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.way[0]);
        command.args(&self.way[1..]).arg(&self.path).arg("/bin/keepup").args(arguments);
        command.env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    fn finish(&self, arguments: &[&str]) -> Result<String> {
        let done = self.enter(arguments).output().context("cannot run unshare")?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "keepup {} ended with {}:\n{said}", arguments.join(" "), done.status);
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // Leftovers are below `target/`; the next run removes them.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Running recorder, stopped when dropped.
struct Recorder(Child);

impl Recorder {
    fn start(root: &Root, arguments: &[&str]) -> Result<Self> {
        let mut command = root.enter(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(Self(command.spawn().context("cannot start the recorder")?))
    }

    /// Port in its messages. Later messages are forwarded.
    fn port(&mut self) -> Result<u16> {
        let mut lines = BufReader::new(self.0.stderr.take().context("no messages of the recorder")?).lines();
        let mut said = String::new();
        for line in lines.by_ref() {
            let line = line?;
            let after = line.split_once("127.0.0.1:").map(|(_, after)| after.to_owned());
            said.push_str(&line);
            let digits = |after: String| after.chars().take_while(char::is_ascii_digit).collect::<String>();
            if let Some(port) = after.map(digits).and_then(|port| port.parse().ok()) {
                std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
                return Ok(port);
            }
        }
        bail!("the recorder does not listen: {said}")
    }

    fn wait(&mut self) -> Result<()> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait()? {
                ensure!(status.success(), "the recorder ended with {status}");
                return Ok(());
            }
            ensure!(start.elapsed() < TIME_MAX, "the recorder did not end within {TIME_MAX:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

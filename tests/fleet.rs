//! Controller and agents of a fleet.
mod campaign;
mod doctor;
mod drain;
mod failures;
mod live;
mod local;
mod measured;
mod qualify;
mod record;
mod sets;

use std::path::Path;

use keepup_testkit::Program;
use serde_json::Value;

use crate::common::{json, keepup, until};

/// A fleet file, and the names of its hosts, which no other test has.
struct Fleet {
    hosts: Vec<String>,
}

impl Fleet {
    /// Writes `fleet.toml` for hosts that a line of the launcher starts.
    fn write(here: &Path, test: &str, hosts: usize, listen: &str, more: &str) -> Self {
        let hosts: Vec<String> =
            (0..hosts).map(|host| format!("{test}-{}-{host}", std::process::id())).collect();
        std::fs::create_dir_all(here.join("data")).unwrap();
        let data = here.join("data").canonicalize().unwrap();
        let mut text = format!("name = \"{test}\"\nlisten = \"{listen}\"\n{more}\n");
        for host in &hosts {
            text.push_str(&format!(
                "[[host]]\nname = \"{host}\"\nrole = \"recorder\"\nvolumes = [{:?}]\n",
                data.display().to_string()
            ));
        }
        std::fs::write(here.join("fleet.toml"), text).unwrap();
        Self { hosts }
    }

    /// Process of the agent of a host, if it runs.
    fn agent(&self, host: usize) -> Option<u32> {
        let name = self.hosts[host].as_bytes();
        let is_agent = |process: &Path| {
            let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
            let mut arguments = line.split(|byte| *byte == 0);
            arguments.any(|argument| argument == b"agent") && arguments.any(|argument| argument == name)
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let found = processes.into_iter().find(|process| is_agent(process))?;
        found.file_name()?.to_str()?.parse().ok()
    }

    /// No agent is left.
    fn gone(&self) -> bool {
        (0..self.hosts.len()).all(|host| self.agent(host).is_none())
    }

    fn signal(&self, host: usize, name: &str) {
        let agent = self.agent(host).unwrap().to_string();
        let sent = std::process::Command::new("kill").args(["-s", name, &agent]).status().unwrap();
        assert!(sent.success());
    }

    fn wait_for_all(&self, up: &mut Program) {
        for host in &self.hosts {
            up.line(&format!("{host} has joined"));
        }
    }
}

fn status(here: &Path) -> Value {
    json(&keepup(here, &["fleet", "status", "fleet.toml", "--json"]))
}

/// Number of hosts that the controller has as members.
fn members(here: &Path) -> usize {
    status(here)["hosts"].as_array().unwrap().iter().filter(|host| !host["report"].is_null()).count()
}

/// Ends a fleet; nothing may be left.
fn down(here: &Path, fleet: &Fleet, up: Program) -> String {
    let run = keepup(here, &["fleet", "down", "fleet.toml"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let run = up.wait();
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(run.stderr.contains("all agents have ended"), "{run:#?}");
    until("agents are left", || fleet.gone());
    run.stderr
}

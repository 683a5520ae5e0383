//! Hosts in network namespaces: agents that are killed, paused or cut off, and a controller that is killed.
use keepup_testkit::switch::Switch;
use keepup_testkit::{Program, root};

use super::{Fleet, down, members};
use crate::common::{TestDirectory, directory, json, keepup, until};

/// Three hosts and a controller, in namespaces of their own.
struct Site {
    switch: Switch,
    place: TestDirectory,
    fleet: Fleet,
    up: Program,
}

/// A site whose hosts have all joined; none without root.
fn site(test: &str, timing: &str) -> Option<Site> {
    if !root::allowed(test) {
        return None;
    }
    let place = directory();
    let here = place.path();
    let name = format!("ku{}{test}", std::process::id() % 100_000);
    let switch = Switch::create(&name, 4).unwrap();
    let launcher = format!("[launcher]\npreset = \"netns\"\nprogram = \"{}\"", env!("CARGO_BIN_EXE_keepup"));
    let listen = format!("{}:7650", Switch::address(0));
    let fleet = Fleet::write(here, test, 3, &listen, &format!("[timing]\n{timing}\n{launcher}"));
    // The names of the hosts are not those of their namespaces.
    let mut file = std::fs::read_to_string(here.join("fleet.toml")).unwrap();
    for (number, host) in fleet.hosts.iter().enumerate() {
        let name = format!("name = \"{host}\"");
        file = file.replace(&name, &format!("{name}\naddress = \"{}\"", switch.host(number + 1)));
    }
    std::fs::write(here.join("fleet.toml"), file).unwrap();
    let keepup = env!("CARGO_BIN_EXE_keepup");
    let arguments = ["netns", "exec", switch.host(0), keepup, "fleet", "up", "fleet.toml"];
    let mut up = Program::start("ip", &arguments, here);
    fleet.wait_for_all(&mut up);
    Some(Site { switch, place, fleet, up })
}

impl Site {
    /// Waits for a line about a host.
    fn line(&mut self, host: usize, text: &str) -> String {
        let wanted = format!("{}{text}", self.fleet.hosts[host]);
        self.up.line_that(|line| line.contains(&wanted), &wanted)
    }

    fn down(self) -> String {
        down(self.place.path(), &self.fleet, self.up)
    }
}

#[test]
#[ignore = "system"]
fn a_killed_agent_is_noticed_before_its_lease_ends() {
    let Some(mut site) = site("killed", "lease = \"60 s\"\norphan = \"60 s\"") else { return };
    site.fleet.signal(1, "KILL");
    site.line(1, ": the connection is closed");
    site.line(1, ": its agent has ended: signal: 9");
    let found = json(&keepup(site.place.path(), &["fleet", "status", "fleet.toml", "--json"]));
    assert!(!found["hosts"][1]["report"].is_null(), "its lease has not ended: {found:#}");
    let said = site.down();
    assert!(!said.contains("is lost"), "{said}");
}

#[test]
#[ignore = "system"]
fn a_paused_agent_is_lost_at_its_lease_and_returns() {
    let Some(mut site) = site("paused", "orphan = \"60 s\"") else { return };
    site.fleet.signal(2, "STOP");
    site.line(2, " is lost: no heartbeat for ");
    until("the others are lost too", || members(site.place.path()) == 2);
    site.fleet.signal(2, "CONT");
    until("it does not return", || members(site.place.path()) == 3);
    site.down();
}

#[test]
#[ignore = "system"]
fn a_host_that_is_cut_off_is_lost_and_returns() {
    let Some(mut site) = site("cut", "orphan = \"120 s\"") else { return };
    site.switch.unplug(1).unwrap();
    site.line(0, " is lost: no heartbeat for ");
    site.switch.plug(1).unwrap();
    until("it does not return", || members(site.place.path()) == 3);
    site.down();
}

#[test]
#[ignore = "system"]
fn a_host_that_stays_cut_off_ends_its_agent() {
    let Some(mut site) = site("orphan", "orphan = \"2 s\"") else { return };
    site.switch.unplug(3).unwrap();
    site.line(2, " is lost: no heartbeat for ");
    // Its standard error does not pass the network of the test.
    site.line(2, " ends: no order from the controller for 2 s");
    until("its agent runs", || site.fleet.agent(2).is_none());
    site.down();
}

#[test]
#[ignore = "system"]
fn a_killed_controller_leaves_no_agent() {
    let Some(site) = site("leader", "orphan = \"60 s\"") else { return };
    site.up.signal("KILL");
    until("agents are left", || site.fleet.gone());
    assert_eq!(site.up.wait().code(), -1);
    // Its socket is left and in nobody's way.
    let run = keepup(site.place.path(), &["fleet", "status", "fleet.toml"]);
    assert!(run.code() == 4 && run.stderr.contains("no controller runs for this file"), "{run:#?}");
}

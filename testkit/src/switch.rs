//! Network namespaces, one for each simulated host, connected by a bridge.
use crate::root::command;

/// Hosts on a bridge, removed when dropped.
#[derive(Debug)]
pub struct Switch {
    /// Namespace of the bridge.
    bridge: String,
    hosts: Vec<String>,
}

impl Switch {
    /// Creates `hosts` namespaces with name prefix `name`, at most 200.
    ///
    /// # Errors
    /// System error.
    pub fn create(name: &str, hosts: u8) -> Result<Self, String> {
        let bridge = format!("{name}-sw");
        let hosts = (0..hosts.min(200)).map(|host| format!("{name}-{host}")).collect();
        let switch = Self { bridge, hosts };
        command("ip", &["netns", "add", &switch.bridge])?;
        inside(&switch.bridge, &["link", "add", "switch", "type", "bridge"])?;
        inside(&switch.bridge, &["link", "set", "switch", "up"])?;
        for host in 0..switch.hosts.len() {
            switch.connect(host)?;
        }
        Ok(switch)
    }

    fn connect(&self, host: usize) -> Result<(), String> {
        let (name, port) = (self.host(host), port(host));
        command("ip", &["netns", "add", name])?;
        inside(name, &["link", "add", "eth", "type", "veth", "peer", "name", &port, "netns", &self.bridge])?;
        inside(name, &["address", "add", &format!("{}/24", Self::address(host)), "dev", "eth"])?;
        inside(name, &["link", "set", "lo", "up"])?;
        inside(name, &["link", "set", "eth", "up"])?;
        inside(&self.bridge, &["link", "set", &port, "master", "switch"])?;
        inside(&self.bridge, &["link", "set", &port, "up"])
    }

    /// Namespace of a host.
    pub fn host(&self, host: usize) -> &str {
        &self.hosts[host]
    }

    /// Address of a host.
    pub fn address(host: usize) -> String {
        format!("10.214.0.{}", host + 1)
    }

    /// Limits the rate at which a host sends to `megabits` per second, including packet headers.
    ///
    /// # Errors
    /// System error.
    pub fn shape(&self, host: usize, megabits: u32) -> Result<(), String> {
        let rate = format!("{megabits}mbit");
        let shape = ["tbf", "rate", &rate, "burst", "64kb", "limit", "768kb"];
        let into = ["netns", "exec", self.host(host), "tc", "qdisc", "replace", "dev", "eth", "root"];
        command("ip", &[&into[..], &shape].concat())
    }

    /// Takes the cable of a host out of the switch.
    ///
    /// # Errors
    /// System error.
    pub fn unplug(&self, host: usize) -> Result<(), String> {
        inside(&self.bridge, &["link", "set", &port(host), "down"])
    }

    /// Sets the MTU of a host's interface. Its port of the switch keeps its own.
    ///
    /// # Errors
    /// System error.
    pub fn set_mtu(&self, host: usize, bytes: u32) -> Result<(), String> {
        inside(self.host(host), &["link", "set", "eth", "mtu", &bytes.to_string()])
    }

    /// Prohibits a host from sending to TCP port `port` of others, as a firewall does.
    ///
    /// # Errors
    /// System error.
    pub fn prohibit(&self, host: usize, port: u16) -> Result<(), String> {
        let rule = ["rule", "add", "ipproto", "tcp", "dport", &port.to_string(), "prohibit"];
        inside(self.host(host), &rule)
    }

    /// Plugs it in again.
    ///
    /// # Errors
    /// System error.
    pub fn plug(&self, host: usize) -> Result<(), String> {
        inside(&self.bridge, &["link", "set", &port(host), "up"])
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for name in self.hosts.iter().chain([&self.bridge]) {
            drop(command("ip", &["netns", "del", name]));
        }
    }
}

fn port(host: usize) -> String {
    format!("port{host}")
}

fn inside(namespace: &str, arguments: &[&str]) -> Result<(), String> {
    command("ip", &[&["netns", "exec", namespace, "ip"], arguments].concat())
}

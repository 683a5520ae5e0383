//! Two network namespaces connected by a virtual cable (veth pair).
use crate::root::command;

/// Two connected network namespaces, removed when dropped.
#[derive(Debug)]
pub struct Cable {
    names: [String; 2],
}

/// Addresses of the two ends.
const ADDRESSES: [&str; 2] = ["10.213.0.1", "10.213.0.2"];

impl Cable {
    /// Creates and connects two namespaces with name prefix `name`.
    ///
    /// # Errors
    /// System error.
    pub fn lay(name: &str) -> Result<Self, String> {
        let cable = Self { names: [format!("{name}a"), format!("{name}b")] };
        for name in &cable.names {
            command("ip", &["netns", "add", name])?;
        }
        cable.connect()?;
        Ok(cable)
    }

    /// Connects the namespaces and gives both their address.
    fn connect(&self) -> Result<(), String> {
        let [a, b] = &self.names;
        let pair = ["link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b];
        command("ip", &pair)?;
        for (end, address) in ADDRESSES.iter().enumerate() {
            self.inside(end, "ip", &["address", "add", &format!("{address}/24"), "dev", "cable"])?;
            self.inside(end, "ip", &["link", "set", "lo", "up"])?;
            self.inside(end, "ip", &["link", "set", "cable", "up"])?;
        }
        Ok(())
    }

    /// Simulates a power failure of the machine at end 1: its sockets vanish without a word to their peers,
    /// and another network namespace takes over its address. No program may run there any more.
    ///
    /// # Errors
    /// What the system said.
    pub fn restart_machine(&self) -> Result<(), String> {
        let name = &self.names[1];
        command("ip", &["netns", "del", name])?;
        // The kernel removes a namespace, and this end of the cable with it, a little later.
        drop(self.inside(0, "ip", &["link", "del", "cable"]));
        command("ip", &["netns", "add", name])?;
        self.connect()
    }

    /// Address of an end, 0 or 1.
    pub fn address(end: usize) -> &'static str {
        ADDRESSES[end % 2]
    }

    /// Command prefix for running at an end.
    pub fn at(&self, end: usize) -> [&str; 4] {
        ["ip", "netns", "exec", &self.names[end % 2]]
    }

    /// Limits the rate of an end to `megabits` per second, including packet headers.
    ///
    /// # Errors
    /// System error.
    pub fn shape(&self, end: usize, megabits: u32) -> Result<(), String> {
        let rate = format!("{megabits}mbit");
        let shape = ["tbf", "rate", &rate, "burst", "64kb", "limit", "768kb"];
        self.inside(end, "tc", &[&["qdisc", "replace", "dev", "cable", "root"], &shape[..]].concat())
    }

    /// Sets the MTU of an end.
    ///
    /// # Errors
    /// System error.
    pub fn set_mtu(&self, end: usize, bytes: u32) -> Result<(), String> {
        self.inside(end, "ip", &["link", "set", "cable", "mtu", &bytes.to_string()])
    }

    /// Prohibits an end from sending to TCP port `port` of others, as a firewall does.
    ///
    /// # Errors
    /// System error.
    pub fn prohibit(&self, end: usize, port: u16) -> Result<(), String> {
        let rule = ["rule", "add", "ipproto", "tcp", "dport", &port.to_string(), "prohibit"];
        self.inside(end, "ip", &rule)
    }

    /// Disconnects the ends.
    ///
    /// # Errors
    /// System error.
    pub fn cut(&self) -> Result<(), String> {
        self.inside(0, "ip", &["link", "set", "cable", "down"])
    }

    fn inside(&self, end: usize, program: &str, arguments: &[&str]) -> Result<(), String> {
        let mut all = self.at(end)[1..].to_vec();
        all.push(program);
        all.extend(arguments);
        command("ip", &all)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            drop(command("ip", &["netns", "del", name]));
        }
    }
}

//! Two machines on one cable: network namespaces with a pair of virtual interfaces between them.
use crate::root::command;

/// Two network namespaces and what connects them; removed when dropped.
#[derive(Debug)]
pub struct Cable {
    names: [String; 2],
}

/// Addresses of the two ends.
const ADDRESSES: [&str; 2] = ["10.213.0.1", "10.213.0.2"];

impl Cable {
    /// Makes two namespaces whose names begin with `name`, and connects them.
    ///
    /// # Errors
    /// What the system said.
    pub fn lay(name: &str) -> Result<Self, String> {
        let cable = Self { names: [format!("{name}a"), format!("{name}b")] };
        for name in &cable.names {
            command("ip", &["netns", "add", name])?;
        }
        let [a, b] = &cable.names;
        let pair = ["link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b];
        command("ip", &pair)?;
        for (end, address) in ADDRESSES.iter().enumerate() {
            cable.inside(end, "ip", &["address", "add", &format!("{address}/24"), "dev", "cable"])?;
            cable.inside(end, "ip", &["link", "set", "lo", "up"])?;
            cable.inside(end, "ip", &["link", "set", "cable", "up"])?;
        }
        Ok(cable)
    }

    /// Address of an end, 0 or 1.
    pub fn address(end: usize) -> &'static str {
        ADDRESSES[end % 2]
    }

    /// What a command at an end begins with.
    pub fn at(&self, end: usize) -> [&str; 4] {
        ["ip", "netns", "exec", &self.names[end % 2]]
    }

    /// What an end sends is held to `megabits` per second, headers of the packets included.
    ///
    /// # Errors
    /// What the system said.
    pub fn shape(&self, end: usize, megabits: u32) -> Result<(), String> {
        let rate = format!("{megabits}mbit");
        let shape = ["tbf", "rate", &rate, "burst", "64kb", "limit", "768kb"];
        self.inside(end, "tc", &[&["qdisc", "replace", "dev", "cable", "root"], &shape[..]].concat())
    }

    /// Sets an end's largest packet.
    ///
    /// # Errors
    /// What the system said.
    pub fn set_mtu(&self, end: usize, bytes: u32) -> Result<(), String> {
        self.inside(end, "ip", &["link", "set", "cable", "mtu", &bytes.to_string()])
    }

    /// Cuts it.
    ///
    /// # Errors
    /// What the system said.
    pub fn cut(&self) -> Result<(), String> {
        self.inside(0, "ip", &["link", "set", "cable", "down"])
    }

    /// Connects the ends again.
    ///
    /// # Errors
    /// What the system said.
    pub fn mend(&self) -> Result<(), String> {
        self.inside(0, "ip", &["link", "set", "cable", "up"])
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

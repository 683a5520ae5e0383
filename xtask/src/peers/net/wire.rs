//! What lies between the two ends: loopback, or a cable between two network namespaces.

use std::process::{Command, Stdio};
use std::rc::Rc;

use anyhow::{Result, bail};

use super::programs::TOKEN;

/// Addresses of the two ends of a cable.
const ENDS: [&str; 2] = ["10.214.0.1", "10.214.0.2"];

/// What lies between the two ends; a cable is removed when nobody uses it any more.
#[derive(Debug)]
pub(super) enum Wire {
    /// Both ends in one network.
    Loopback,
    /// A pair of virtual interfaces, each in a namespace of its own.
    Cable {
        /// Their names.
        spaces: [String; 2],
    },
}

impl Wire {
    /// Lays a cable. Fails without root or `ip`.
    pub(super) fn cable() -> Result<Rc<Self>> {
        let spaces = ["a", "b"].map(|end| format!("keepup-peers-{}{end}", std::process::id()));
        let wire = Rc::new(Self::Cable { spaces: spaces.clone() });
        for space in &spaces {
            ip(&["netns", "add", space])?;
        }
        let [a, b] = &spaces;
        ip(&["link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b])?;
        for (space, address) in spaces.iter().zip(ENDS) {
            ip(&["-n", space, "address", "add", &format!("{address}/24"), "dev", "cable"])?;
            ip(&["-n", space, "link", "set", "lo", "up"])?;
            ip(&["-n", space, "link", "set", "cable", "up"])?;
        }
        Ok(wire)
    }

    /// Where the server, at the second end, is reached.
    pub(super) fn server(&self) -> &'static str {
        match self {
            Self::Loopback => "127.0.0.1",
            Self::Cable { .. } => ENDS[1],
        }
    }

    /// A program at an end, 0 or 1.
    pub(super) fn command(&self, end: usize, program: &str, arguments: &[String]) -> Command {
        let mut command = match self {
            Self::Loopback => Command::new(program),
            Self::Cable { spaces } => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &spaces[end % 2], program]);
                command
            }
        };
        // keepup takes its token from there; the others do not look.
        command.args(arguments).env("KEEPUP_NET_TOKEN", TOKEN);
        command
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Self::Cable { spaces } = self {
            spaces.iter().for_each(|space| drop(ip(&["netns", "del", space])));
        }
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

//! Wire between the two ends: loopback, or a virtual cable between two network namespaces.

use std::process::{Command, Stdio};
use std::rc::Rc;

use anyhow::{Result, bail};

const TOKEN: &str = "a-token-for-peers";

/// Addresses of the two ends of a cable.
const ENDS: [&str; 2] = ["10.214.0.1", "10.214.0.2"];

/// Wire between the two ends. A cable is removed when dropped.
#[derive(Debug)]
pub(super) enum Wire {
    /// Both ends in the same namespace.
    Loopback,
    /// Pair of virtual interfaces in separate namespaces.
    Cable {
        /// Names of the namespaces.
        spaces: [String; 2],
    },
}

impl Wire {
    /// Creates a cable. Fails without root or `ip`.
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

    /// Address of the server at the second end.
    pub(super) fn server(&self) -> &'static str {
        match self {
            Self::Loopback => "127.0.0.1",
            Self::Cable { .. } => ENDS[1],
        }
    }

    /// Command of a program at end 0 or 1.
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

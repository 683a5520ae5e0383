//! Command templates that start an agent on a host. No shell reads them.
use keepup_error::Cause;
use keepup_measure::sum::Sums;
use serde::Deserialize;

/// Placeholder of the host's address.
const HOST: &str = "{host}";
/// Placeholder of the agent's command.
const AGENT: &str = "{agent}";
/// Limit on the arguments of a template.
const ARGUMENTS_MAX: usize = 256;
/// Longest argument of a template, bytes.
const ARGUMENT_BYTES_MAX: usize = 4_096;

/// Built-in templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Preset {
    /// OpenSSH, with a key that needs no password.
    Ssh,
    /// Slurm, within an allocation.
    Srun,
    /// A container that runs in Kubernetes; the address is the name of its pod.
    Kubectl,
    /// A network namespace of this machine.
    Netns,
    /// This machine.
    Local,
}

impl Preset {
    fn words(self) -> &'static str {
        match self {
            Self::Ssh => "ssh -T -o BatchMode=yes -o ConnectTimeout=10 {host} {agent}",
            Self::Srun => "srun --nodelist={host} --nodes=1 --ntasks=1 --overlap --unbuffered {agent}",
            Self::Kubectl => "kubectl exec -i {host} -- {agent}",
            Self::Netns => "ip netns exec {host} {agent}",
            Self::Local => "{agent}",
        }
    }
}

/// Command in the file: one string, or a list of arguments.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Words {
    /// Arguments between white space.
    Text(String),
    /// The arguments.
    Arguments(Vec<String>),
}

/// A valid template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<String>);

impl Template {
    /// Template of a preset.
    pub(super) fn of_preset(preset: Preset) -> Self {
        Self(preset.words().split_whitespace().map(str::to_owned).collect())
    }

    /// Checks a command of the user.
    pub(super) fn of_words(words: &Words) -> Result<Self, Cause> {
        let arguments: Vec<String> = match words {
            Words::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
            Words::Arguments(arguments) => arguments.clone(),
        };
        let count =
            |place: &str| arguments.iter().map(|text| text.matches(place).count()).saturating_sum::<usize>();
        let why = match arguments.first() {
            None => "it is empty",
            Some(program) if program.is_empty() || program.contains(['{', '}']) => {
                "it does not begin with a program"
            }
            _ if arguments.len() > ARGUMENTS_MAX => "it has too many arguments",
            _ if arguments.iter().any(|text| text.len() > ARGUMENT_BYTES_MAX || text.contains('\0')) => {
                "an argument is too long or has a NUL character"
            }
            _ if count(HOST) == 0 => "it lacks {host}",
            _ if count(AGENT) != 1 => "it must have {agent} once",
            _ => return Ok(Self(arguments)),
        };
        Err(Cause::new(format!("invalid command: {why}")).with_hint(
            "a program with its arguments, such as \"ssh -p 2222 {host} {agent}\"; or a preset: ssh, srun, \
             kubectl, netns, local",
        ))
    }

    /// The command for one host. `{agent}` alone becomes several arguments, within an argument it becomes the
    /// agent's command with spaces between.
    pub(super) fn fill(&self, address: &str, agent: &[String]) -> Vec<String> {
        let mut command = Vec::new();
        for argument in &self.0 {
            if argument == AGENT {
                command.extend_from_slice(agent);
            } else {
                command.push(argument.replace(HOST, address).replace(AGENT, &agent.join(" ")));
            }
        }
        command
    }
}

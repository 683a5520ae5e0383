//! What a host does with commands, and what it answers.
use keepup_error::Cause;
use serde::{Deserialize, Serialize};

/// Limit on the commands of one check.
const COMMANDS_MAX: usize = 64;
/// Limit on the bytes of their arguments. JSON in JSON is up to seven times longer, and orders have 4 MiB.
const ARGUMENT_BYTES_MAX: usize = 256 << 10;

/// Part of a host in a run of commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum CommandPlan {
    /// Check these commands with `--dry-run`. The answer is a list of [`CheckedCommand`] as JSON.
    Check(Vec<Vec<String>>),
    /// Run the command with these arguments. The answer is its result, see [`super::unpack`].
    Run(Vec<String>),
    /// Send a further part of the latest answer.
    Part {
        /// Number of the run with that answer.
        of: u64,
        /// Number of the part, from 0.
        number: u32,
    },
}

/// A command that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum CheckedCommand {
    /// It can run. Contains the output of `--dry-run --json`.
    Plan(String),
    /// It cannot run. Contains the reason.
    Refused(String),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandEnd {
    /// Exit code; none if a signal killed it.
    pub code: Option<i32>,
    /// Signal that killed it.
    pub signal: Option<i32>,
}

/// Bytes of the arguments of a command.
fn bytes(arguments: &[String]) -> usize {
    arguments.iter().fold(0, |sum, argument| sum.saturating_add(argument.len() + 1))
}

/// Checks that a command fits into an order.
///
/// # Errors
/// It is too long.
pub fn check_length(arguments: &[String]) -> Result<(), Cause> {
    match bytes(arguments) {
        bytes if bytes > ARGUMENT_BYTES_MAX => {
            Err(Cause::new(format!("the command has {bytes} bytes, limit {ARGUMENT_BYTES_MAX}")))
        }
        _ => Ok(()),
    }
}

/// Divides commands into lists for one check each. A list has the indices of its commands.
#[must_use]
pub fn batches(commands: &[&[String]]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut left = 0;
    for (index, command) in commands.iter().enumerate() {
        let own = bytes(command);
        match batches.last_mut() {
            Some(batch) if batch.len() < COMMANDS_MAX && own <= left => {
                batch.push(index);
                left -= own;
            }
            _ => {
                batches.push(vec![index]);
                left = ARGUMENT_BYTES_MAX.saturating_sub(own);
            }
        }
    }
    batches
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

//! Violations of the project rules.

/// Violation of a rule, with advice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Path in the workspace.
    pub(crate) file: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// Name of the rule.
    pub(crate) rule: &'static str,
    /// Advice.
    pub(crate) advice: String,
}

//! The command line: one file per verb, terminal output, exit codes, no logic.
fn main() {}

//! Checks and chores of the project: `cargo xtask tidy`, `cargo xtask ci`.
//!
//! `tidy` checks what no compiler does: the order of crates, where `unsafe`, tokio and the wall clock may
//! stand, how long files and functions may be, and that links in documents lead somewhere.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who ran it")]

mod ci;
mod lexer;
mod rules;
mod source;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str = "usage: cargo xtask <tidy | ci>
  tidy  check the rules of the house (crate order, unsafe, clocks, lengths, links)
  ci    format, tidy, clippy, tests: everything that must hold before a change is merged";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => Ok(if tidy::run()? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        ["ci"] => Ok(if ci::run()? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        _ => {
            eprintln!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    }
}

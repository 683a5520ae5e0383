//! Project tasks: `cargo xtask tidy`, `cargo xtask ci`, `cargo xtask peers`,
//! `cargo xtask instructions`, `cargo xtask guest`, `cargo xtask validate-model`, `cargo xtask readme`,
//! `cargo xtask dist`.
//!
//! `tidy` checks the project rules: order of crates, location of `unsafe`, tokio and clocks, length of files
//! and functions, and links in documents. `peers` compares the recorder with iperf3, mbuffer and fio, the
//! disk tests with fio and bonnie++, and other tests with similar programs. `instructions` counts
//! instructions of the decode and seal paths, `guest` runs keepup in a virtual machine with test devices,
//! `readme` generates the sample in README.md, and `dist` builds the static archive.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who ran it")]

mod ci;
mod dist;
mod guest;
mod instructions;
mod lexer;
mod peers;
mod readme;
mod rules;
mod source;
mod tidy;
mod validate;
mod violation;

use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str =
    "usage: cargo xtask <tidy | ci | readme | dist | guest | instructions | validate-model | peers>
  tidy  check the rules of the house (crate order, unsafe, clocks, lengths, links)
  ci    format, tidy, clippy, tests: everything that must hold before a change is merged
  instructions [--bless]
        count instructions of the decode and seal paths with callgrind and compare them with the journal's;
        exit 1 when one rose by more than 5 %
  validate-model [DIR]
        configurations made of throttled volumes, shaped links and loads below DIR: what the model says of
        each from ceilings measured apart, then what `keepup trial` finds; as root";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => Ok(if tidy::run()? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        ["ci"] => Ok(if ci::run()? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        ["dist", ref rest @ ..] => dist::run(rest),
        ["readme", ref rest @ ..] => readme::run(rest),
        ["guest", ref rest @ ..] => Ok(guest::run(rest)),
        ["validate-model", ref rest @ ..] => validate::run(rest),
        ["instructions"] => instructions::run(false),
        ["instructions", "--bless"] => instructions::run(true),
        ["peers", ref rest @ ..] if peers::run(rest)? => Ok(ExitCode::SUCCESS),
        _ => {
            eprintln!("{USAGE}\n{}\n{}\n{}\n{}", readme::USAGE, dist::USAGE, guest::USAGE, peers::USAGE);
            Ok(ExitCode::from(2))
        }
    }
}

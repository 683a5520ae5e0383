//! Comparison of keepup with its peers: campaigns that run all programs alternately and print tables.
//!
//! Invariants: figures come from the exit and the resource usage of the programs; no figure is asserted; the
//! data of a run is removed before the next one starts.
//!
//! A campaign is a list of [`group::Group`]s of [`contestant::Contestant`]s: one file for each program,
//! [`runner`] runs them alternately, [`summary`] and [`claims`] evaluate, [`render`] writes the document.
//! There are six: [`record`] with its [`groups`], [`read`], [`disk`], [`net`], [`register`] and [`replay`]
//! with their own.

mod campaign;
mod children;
mod claims;
mod contestant;
mod disk;
mod fio;
mod group;
mod groups;
mod iperf3;
mod keepup;
mod loopback;
mod machine;
mod mbuffer;
mod net;
mod options;
mod program;
mod read;
mod record;
mod register;
mod render;
mod replay;
mod runner;
mod scratch;
mod sender;
mod summary;
mod tools;
mod transfer;

use anyhow::{Result, bail};

pub(crate) use options::USAGE;

/// Runs a subcommand of `cargo xtask peers`; false if there is none.
pub(crate) fn run(arguments: &[&str]) -> Result<bool> {
    let done = match arguments {
        ["record", flags @ ..] => {
            options::record(flags).and_then(groups::check).map(|asked| record::run(&asked))
        }
        ["read", flags @ ..] => options::record(flags).and_then(read::check).map(|asked| read::run(&asked)),
        ["disk", flags @ ..] => options::disk(flags).and_then(disk::check).map(|asked| disk::run(&asked)),
        ["net", flags @ ..] => options::plain(flags).and_then(net::check).map(|asked| net::run(&asked)),
        ["register", flags @ ..] => {
            options::plain(flags).and_then(register::check).map(|asked| register::run(&asked))
        }
        ["replay", flags @ ..] => {
            options::plain(flags).and_then(replay::check).map(|asked| replay::run(&asked))
        }
        // What feeds those peers that bring no sender: started by the campaign, not by people.
        ["send", address, bytes] => match (address.parse(), bytes.parse()) {
            (Ok(address), Ok(bytes)) => Ok(sender::send(address, bytes)),
            _ => bail!("send needs an address and a number of bytes"),
        },
        _ => return Ok(false),
    };
    match done {
        Ok(done) => done.map(|()| true),
        Err(why) => {
            eprintln!("error: {why}");
            Ok(false)
        }
    }
}

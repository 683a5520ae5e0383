//! `cargo xtask guest`: prepares the test guests, and runs commands in one.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::ci::cargo;
use anyhow::{Result, anyhow, bail, ensure};
use keepup_testkit::guest::{Device, Drivers, Guest, Machine, Store, prepare};

pub(crate) const USAGE: &str = "  guest prepare
        download a kernel, compile modules for guests; as root, install the emulator and a compiler
  guest run [--icount] [--limit SECONDS] <SCRIPT | COMMAND...>
        run a script, or a command of the shell, in a guest with all devices and drivers, keepup in its path";

/// Runs a subcommand and returns the exit status of the guest.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    chosen(arguments).unwrap_or_else(|why| {
        eprintln!("error: {why}");
        ExitCode::FAILURE
    })
}

fn chosen(arguments: &[&str]) -> Result<ExitCode> {
    match arguments {
        ["prepare"] => {
            let start = Instant::now();
            let store = prepare(&mut |what| eprintln!("{what}")).map_err(|why| anyhow!(why))?;
            let seconds = start.elapsed().as_secs_f64();
            println!("{}, kernel {}: ready in {seconds:.1} s", store.path().display(), kernel(&store));
            Ok(ExitCode::SUCCESS)
        }
        ["run", rest @ ..] => inside(rest),
        _ => bail!("guest requires `prepare` or `run`\n{USAGE}"),
    }
}

fn kernel(store: &Store) -> String {
    store.release().unwrap_or_default()
}

fn inside(mut arguments: &[&str]) -> Result<ExitCode> {
    let store = Store::open().map_err(|why| anyhow!(why))?;
    // The guest uses the binary beside this program.
    ensure!(cargo(&["build", "--quiet", "--package", "keepup-cli"])?, "keepup does not compile");
    let mut guest = Guest::new(&store, Machine::Q35).devices(&Device::ALL).drivers(&Drivers::ALL);
    loop {
        match arguments {
            ["--icount", rest @ ..] => {
                guest = guest.counting_instructions();
                arguments = rest;
            }
            ["--limit", seconds, rest @ ..] => {
                guest = guest.limit(Duration::from_secs(seconds.parse()?));
                arguments = rest;
            }
            [] => bail!("guest run requires a script or a command\n{USAGE}"),
            _ => break,
        }
    }
    let script = match arguments {
        [file] if Path::new(file).is_file() => std::fs::read_to_string(file)?,
        words => words.join(" "),
    };
    let start = Instant::now();
    let output = guest.run(&script).map_err(|why| anyhow!(why))?;
    eprint!("{}", output.console);
    print!("{}", output.stdout);
    for (name, part) in &output.parts {
        println!("== {name}: {}\n{}", part.status, part.stdout);
    }
    eprintln!(
        "kernel {}, {:.1} s with boot, status {}",
        kernel(&store),
        start.elapsed().as_secs_f64(),
        output.status
    );
    Ok(ExitCode::from(u8::try_from(output.status).unwrap_or(1)))
}

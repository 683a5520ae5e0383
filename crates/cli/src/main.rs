//! Command line of keepup, one file per command.
mod args;
mod cells;
mod ctl_error;
mod exit;
mod forecast;
mod generator;
mod http;
mod internal_error;
mod loads;
mod output;
mod progress;
mod protocol;
mod run_flags;
mod signals;
mod stdout;
mod token;
mod transfer;
mod verbs;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use keepup_measure::environment::{Naming, set_naming};

use crate::exit::Exit;
use crate::output::LogForm;

/// Can this machine keep up with this detector?
///
/// keepup records the event stream of a detector from the network to disks without loss, measures the highest
/// rate at which that works, and names the component that limits it.
#[derive(Parser)]
#[command(name = "keepup", version, after_help = exit::HELP, args_override_self = true)]
struct Cli {
    /// Log format on stderr: text or json [default: $KEEPUP_LOG, or text]
    #[arg(long, global = true, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    log: Option<LogForm>,
    /// Name of this machine in results, beside its host name [default: $KEEPUP_LABEL]
    #[arg(long, global = true, value_name = "TEXT")]
    label: Option<String>,
    /// Leave the host name out of results [also: $KEEPUP_NO_HOST_NAME]
    #[arg(long, global = true)]
    no_host_name: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Qualify(verbs::qualify::Args),
    Trial(verbs::trial::Args),
    Record(verbs::record::Args),
    Ctl(verbs::ctl::Args),
    Source(verbs::source::Args),
    Drain(verbs::drain::Args),
    Sink(verbs::sink::Args),
    Restore(verbs::restore::Args),
    Verify(verbs::verify::Args),
    Info(verbs::info::Args),
    Cat(verbs::cat::Args),
    Recover(verbs::recover::Args),
    Export(verbs::export::Args),
    Disk(verbs::disk::Args),
    Soak(verbs::soak::Args),
    Net(verbs::net::Args),
    Register(verbs::register::Args),
    Trace(verbs::trace::Args),
    Replay(verbs::replay::Args),
    ReplaySet(verbs::replay::SetArgs),
    Report(verbs::report::Args),
    Serve(verbs::serve::Args),
    Campaign(verbs::campaign::Args),
    Reproduce(verbs::reproduce::Args),
    Compare(verbs::compare::Args),
    Predict(verbs::predict::Args),
    Doctor(verbs::doctor::Args),
    Load(verbs::load::Args),
    #[cfg(feature = "fleet")]
    Fleet(verbs::fleet::Args),
    Profile(verbs::profile::Args),
    /// Hidden, because only packagers need it
    #[command(hide = true)]
    Generate(verbs::generate::Args),
}

impl Verb {
    /// Whether the command measures and supports `--dry-run --json` and `--out`, as campaigns require.
    fn keeps_a_result(&self) -> bool {
        match self {
            Self::Qualify(_) | Self::Trial(_) | Self::Soak(_) | Self::Replay(_) | Self::ReplaySet(_) => true,
            Self::Disk(args) => args.keeps_a_result(),
            Self::Net(args) => args.keeps_a_result(),
            Self::Register(args) => args.keeps_a_result(),
            _ => false,
        }
    }
}

fn main() -> ExitCode {
    internal_error::install_hook(output::log);
    let (cli, verb) = match parse() {
        Ok(parsed) => parsed,
        Err(error) => return output::report_flags(&error).into(),
    };
    let naming = Naming { hides_host: cli.no_host_name, label: cli.label.clone() };
    set_naming(naming.or_environment(|name| std::env::var(name).ok()));
    let done = choose_log_format(cli.log).and_then(|()| signals::ignore_file_size_limit());
    let done = done.and_then(|()| internal_error::guarded(&verb, || run(&cli.verb)));
    let exit = done.unwrap_or_else(|error| {
        output::report_error(&error);
        Exit::of(&error)
    });
    output::finish(exit).into()
}

/// Parses the command line; returns also the name of the command.
fn parse() -> Result<(Cli, String), clap::Error> {
    let matches = Cli::command().try_get_matches()?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))?;
    Ok((cli, matches.subcommand_name().unwrap_or_default().to_owned()))
}

/// Sets the log format from the flag, else from the environment.
fn choose_log_format(flag: Option<LogForm>) -> anyhow::Result<()> {
    let form = flag.map_or_else(LogForm::of_environment, |form| Ok(Some(form)))?;
    form.into_iter().for_each(output::set_log_format);
    Ok(())
}

fn run(verb: &Verb) -> anyhow::Result<Exit> {
    match verb {
        Verb::Qualify(args) => verbs::qualify::run(args),
        Verb::Trial(args) => verbs::trial::run(args),
        Verb::Record(args) => verbs::record::run(args),
        Verb::Ctl(args) => verbs::ctl::run(args),
        Verb::Source(args) => verbs::source::run(args),
        Verb::Drain(args) => verbs::drain::run(args),
        Verb::Sink(args) => verbs::sink::run(args),
        Verb::Restore(args) => verbs::restore::run(args),
        Verb::Verify(args) => verbs::verify::run(args),
        Verb::Info(args) => verbs::info::run(args),
        Verb::Cat(args) => verbs::cat::run(args),
        Verb::Recover(args) => verbs::recover::run(args),
        Verb::Export(args) => verbs::export::run(args),
        Verb::Disk(args) => verbs::disk::run(args),
        Verb::Soak(args) => verbs::soak::run(args),
        Verb::Net(args) => verbs::net::run(args),
        Verb::Register(args) => verbs::register::run(args),
        Verb::Trace(args) => verbs::trace::run(args),
        Verb::Replay(args) => verbs::replay::run(args),
        Verb::ReplaySet(args) => verbs::replay::run_set(args),
        Verb::Report(args) => verbs::report::run(args),
        Verb::Serve(args) => verbs::serve::run(args),
        Verb::Campaign(args) => verbs::campaign::run(args),
        Verb::Reproduce(args) => verbs::reproduce::run(args),
        Verb::Compare(args) => verbs::compare::run(args),
        Verb::Predict(args) => verbs::predict::run(args),
        Verb::Doctor(args) => verbs::doctor::run(args),
        Verb::Load(args) => verbs::load::run(args),
        #[cfg(feature = "fleet")]
        Verb::Fleet(args) => verbs::fleet::run(args),
        Verb::Profile(args) => verbs::profile::run(args),
        Verb::Generate(args) => verbs::generate::run(args, Cli::command()),
    }
}

//! What commands write to, and flags that a host refuses.
use std::any::TypeId;
use std::collections::BTreeSet;

use super::*;

fn found(command: &str) -> Result<Vec<String>, String> {
    let arguments: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let paths = paths_written(&arguments)?;
    Ok(paths.into_iter().map(|path| path.display().to_string()).collect())
}

#[test]
fn all_paths_that_are_written_are_found() {
    for (command, paths) in [
        ("disk concurrent --volume /data/a --volume /data/b", &["/data/a", "/data/b"][..]),
        ("disk concurrent --volume=/etc", &["/etc"]),
        ("disk scale --group /a,/b --group /c,/d", &["/a", "/b", "/c", "/d"]),
        ("disk sweep --volume /a --load disk=25MB/s@/etc,write --load net=1MB/s", &["/a", "/etc"]),
        ("replay t.csv --assign sda=/a --assign sdb=/b --volume /c", &["/a", "/b", "/c"]),
        ("replay t.csv --raw /dev/sda", &[]),
        ("replay t.csv --target null", &[]),
        ("soak --volume /a --state /b/state.jsonl --reference /c/read", &["/a", "/b/state.jsonl"]),
        ("trial csl --to-null", &[]),
        ("trial csl --volume /a --as files --files-in /b", &["/a", "/b"]),
        ("qualify csl --volume /a --quick", &["/a"]),
        ("net tcp self", &[]),
        ("register read ram", &[]),
        ("register compare ipbus:self", &[]),
        ("--log json disk sweep --volume /a", &["/a"]),
    ] {
        let mut wanted: Vec<&str> = paths.to_vec();
        wanted.sort_unstable();
        let mut found = found(command).unwrap_or_else(|why| panic!("{command}: {why}"));
        found.sort();
        assert_eq!(found, wanted, "{command}");
    }
}

#[test]
fn a_host_refuses_what_does_not_measure_and_flags_that_change_something() {
    for (command, why) in [
        ("doctor csl --volume /a", "not a command that measures"),
        ("disk export-fio sweep --volume /a", "not a command that measures"),
        ("net serve", "not a command that measures"),
        ("fleet up x.toml", "not a command that measures"),
        ("campaign run x.toml", "not a command that measures"),
        ("sh -c true", "unrecognized subcommand"),
        ("disk sweep --no-such-flag", "unexpected argument"),
        ("disk sweep", "it would write to ./keepup-data"),
        ("qualify csl", "it would write to ./keepup-data"),
        ("soak --quick", "it would write to ./keepup-data"),
        ("replay t.csv", "it would write to ./keepup-data"),
        ("disk sweep --volume /a --out /etc", "does not accept --out"),
        ("disk sweep --volume /a --dry-run", "does not accept --dry-run"),
        ("qualify csl --volume /a --http 127.0.0.1:1", "does not accept --http"),
        ("qualify csl --fleet x.toml", "does not accept --fleet"),
        ("register read pci:0000:00:04.0/bar0 --bind vfio-pci", "does not accept --bind"),
        ("register read ram --profile edu", "does not accept --profile with a DMA engine"),
        ("register read ram --profile /nonexistent/card.toml", "No such file"),
        ("register read pci:0000:00:04.0/bar0", "does not read a device without a profile"),
        ("register compare ipbus://10.0.0.1:50001", "does not read a device without a profile"),
        ("register read vme:/dev/bus/vme/m0,address=0x10000,size=0x1000,space=A24", "settings of a VME"),
    ] {
        let found = found(command).expect_err(command);
        assert!(found.contains(why), "{command}: {found}");
    }
}

#[test]
fn a_profile_without_a_dma_engine_is_accepted() {
    let place = tempfile::tempdir().unwrap();
    let profile = place.path().join("card.toml");
    std::fs::write(&profile, "name = \"card\"\nread-to-clear = [8]\n").unwrap();
    let command = format!("register read pci:0000:00:04.0/bar0 --profile {}", profile.display());
    assert_eq!(found(&command).unwrap(), [""; 0]);
}

/// Paths that commands only read, as `COMMAND FLAG`.
const ONLY_READ: &[&str] = &[
    "net token_file",
    "qualify read_token_file",
    "qualify source_token_file",
    "qualify token_file",
    "replay raw",
    "replay traces",
    "replay-set directory",
    "replay-set raw",
    "soak reference",
    "trial source_token_file",
];

#[test]
fn plain_flags_with_a_path_are_only_read() {
    let mut paths = BTreeSet::new();
    visit(&Cli::command(), &[], &mut |verb, argument| {
        let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        if is_path && has_word(PLAIN, argument.get_id().as_str()) {
            paths.insert(format!("{verb} {}", argument.get_id()));
        }
    });
    assert_eq!(paths.iter().map(String::as_str).collect::<Vec<_>>(), ONLY_READ);
}

/// Flags of all commands that measure, each with the first word of its command.
fn visit(command: &clap::Command, words: &[String], take: &mut dyn FnMut(&str, &clap::Arg)) {
    let measures = ["qualify", "trial", "soak", "replay", "replay-set", "disk", "net", "register"];
    let excluded = ["serve", "export-fio", "get", "set", "serve-ipbus", "scan", "list", "help"];
    for inner in command.get_subcommands() {
        let is_wanted = match words {
            [] => measures.contains(&inner.get_name()),
            _ => !excluded.contains(&inner.get_name()),
        };
        if is_wanted {
            let words = [words, &[inner.get_name().to_owned()]].concat();
            inner.get_arguments().for_each(|argument| take(&words[0], argument));
            visit(inner, &words, take);
        }
    }
}

#[test]
fn the_lists_have_every_flag_once_and_no_other() {
    let mut known: BTreeSet<String> = BTreeSet::from(["log".to_owned()]);
    visit(&Cli::command(), &[], &mut |_, argument| known.extend([argument.get_id().to_string()]));
    let special = ["volume", "files_in", "state", "group", "assign", "loads", "profile"];
    let lists = PLAIN.split_whitespace().chain(REFUSED.split_whitespace()).chain(special);
    let listed: Vec<String> = lists.map(str::to_owned).collect();
    let once: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len(), "a flag is in two lists");
    let missing: Vec<_> = known.difference(&once).collect();
    let unknown: Vec<_> = once.difference(&known).filter(|id| *id != "help").collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing: {missing:?}, unknown: {unknown:?}");
}

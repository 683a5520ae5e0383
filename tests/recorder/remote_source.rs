//! `--source`: trials with the source in another process, which refuses, is missing, or dies.
use std::path::Path;

use keepup_testkit::{Program, Run};

use crate::common::{count, directory, json, keepup, secret_file, start};
use crate::net::TOKEN;

const PROFILE: &str = "name = \"small\"\ntitle = \"small events\"\n[event]\nsize = \"64 KiB\"\n\
    [source]\nrate = \"8 /s\"\nbuffer = \"64 MiB\"\nstreams = 1\ntransport = \"tcp\"\n\
    [run]\nduration = \"8 h\"\n[record]\nsegment = \"64 MiB\"\n";

/// A server of sources on loopback, and its address.
fn serve(here: &Path) -> (Program, String) {
    secret_file(here, "token", TOKEN);
    let mut server = start(here, &["source", "--serve", "--listen", "127.0.0.1:0", "--token-file", "token"]);
    let address = server.address().to_string();
    (server, address)
}

fn qualify(here: &Path, more: &[&str]) -> Program {
    std::fs::create_dir_all(here.join("disk")).unwrap();
    std::fs::write(here.join("small.toml"), PROFILE).unwrap();
    let base = ["qualify", "./small.toml", "--volume", "disk", "--quick", "--soak", "3s", "--pool", "32 MiB"];
    start(here, &[&base[..], &["--max-write", "48 GB", "--json"], more].concat())
}

/// Nothing was measured, and nothing is left.
fn refused_at_once(here: &Path, run: &Run) {
    assert!(!run.stderr.contains("ceilings of the components"), "{run:#?}");
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0);
    assert!(!here.join("results").exists());
}

#[test]
fn a_trial_counts_what_a_source_elsewhere_sent() {
    let place = directory();
    let here = place.path();
    let (server, address) = serve(here);
    let trial =
        ["trial", "csl", "--to-null", "--rate", "max", "--events", "300", "--pool", "128 MiB", "--json"];
    let run = keepup(here, &[&trial[..], &["--source", &address, "--source-token-file", "token"]].concat());
    assert_eq!(run.code(), 0, "{run:#?}");
    let found = json(&run);
    let ledger = &found["runs"][0]["ledger"];
    assert_eq!((count(&ledger["sent"]).0, count(&ledger["sent"])), (300, count(&ledger["durable"])));
    assert_eq!(found["plan"]["source"]["address"], address, "{found:#}");
    server.signal("TERM");
    let served = server.wait();
    assert!(served.code() == 0 && served.stderr.contains("source to 127.0.0.1:"), "{served:#?}");
}

#[test]
fn a_source_elsewhere_sends_heaps() {
    let place = directory();
    let here = place.path();
    let (server, address) = serve(here);
    let trial = [
        "trial",
        "meerkat-visibilities",
        "--to-null",
        "--streams",
        "2",
        "--connections",
        "2",
        "--event",
        "100 kB",
        "--rate",
        "10 MB/s",
        "--time",
        "2s",
        "--pool",
        "128 MiB",
        "--json",
        "--source",
        &address,
        "--source-token-file",
        "token",
    ];
    let run = keepup(here, &trial);
    let found = json(&run);
    assert_eq!(found["plan"]["protocol"], "spead", "{run:#?}");
    assert_eq!(found["plan"]["source"]["address"], address, "{found:#}");
    let ledger = &found["runs"][0]["ledger"];
    let (sent, durable) = (count(&ledger["sent"]).0, count(&ledger["durable"]).0);
    // A loaded machine may drop packets, and the heaps are then counted as lost.
    let is_lossless = run.code() == 0 && durable == sent;
    let has_counted =
        run.code() == 1 && durable < sent && found["runs"][0]["ledger"].to_string().contains("gap");
    assert!(sent > 0 && (is_lossless || has_counted), "{run:#?}");
    // The recorder would have to connect to the source.
    let refused = keepup(here, &[&trial[..], &["--as", "dectris-v2"]].concat());
    assert!(refused.code() == 2 && refused.stderr.contains("cannot use --source with"), "{refused:#?}");
    server.signal("TERM");
    server.wait();
}

#[test]
fn a_source_needs_the_token() {
    let place = directory();
    let here = place.path();
    let (server, address) = serve(here);
    secret_file(here, "wrong", "not-the-token-of-tests");
    let run = qualify(here, &["--source", &address, "--source-token-file", "wrong"]).wait();
    assert!(run.code() == 4 && run.stderr.contains("the token is wrong"), "{run:#?}");
    refused_at_once(here, &run);
    let run = qualify(here, &["--source", &address]).wait();
    assert!(run.code() == 2 && run.stderr.contains("hint: --source-token-file"), "{run:#?}");
    refused_at_once(here, &run);
    server.signal("TERM");
    let served = server.wait();
    assert!(served.stderr.contains("refused, wrong token"), "{served:#?}");
    assert!(!served.stderr.contains("source to"), "{served:#?}");
}

#[test]
fn a_missing_source_and_another_server_are_named() {
    let place = directory();
    let here = place.path();
    let (server, address) = crate::net::serve(here, "127.0.0.1:0");
    let run = qualify(here, &["--source", &address, "--source-token-file", "token"]).wait();
    assert!(run.code() == 4 && run.stderr.contains("start keepup source --serve"), "{run:#?}");
    refused_at_once(here, &run);
    server.signal("TERM");
    server.wait();
    let run = qualify(here, &["--source", &address, "--source-token-file", "token"]).wait();
    assert!(
        run.code() == 4 && run.stderr.contains("hint: start the source on the other machine"),
        "{run:#?}"
    );
    refused_at_once(here, &run);
}

#[test]
fn the_flags_of_a_source_and_of_its_server_exclude_each_other() {
    let place = directory();
    for arguments in [
        &["source", "--serve", "csl"][..],
        &["source", "--serve", "--to", "127.0.0.1:7611"],
        &["source", "csl"],
        &["source", "csl", "--to", "127.0.0.1:7611", "--token-file", "token"],
        &["qualify", "csl", "--source-token-file", "token"],
    ] {
        let run = keepup(place.path(), arguments);
        assert_eq!(run.code(), 2, "{arguments:?}: {run:#?}");
    }
}

#[test]
#[ignore = "system"]
fn a_source_that_dies_in_a_trial_ends_the_run() {
    let place = directory();
    let here = place.path();
    let (mut server, address) = serve(here);
    let mut run = qualify(here, &["--source", &address, "--source-token-file", "token"]);
    run.line("search for");
    // The trial of the search runs once its source does; the one before was unthrottled, for 1.5 s.
    let is_trial = |line: &str| line.contains("source to") && !line.ends_with("for 1.5 s");
    server.line_that(is_trial, "a trial of the search");
    server.signal("KILL");
    server.wait();
    let run = run.wait();
    assert!(run.code() == 4 && run.stderr.contains("it disconnected"), "{run:#?}");
    assert_eq!(std::fs::read_dir(here.join("disk")).unwrap().count(), 0, "recordings are removed");
}

//! `cargo xtask dist`: builds an archive that runs on any Linux of its architecture without system libraries.
//!
//! Invariants: the program is static and stripped; the archive of a commit is reproducible with the same
//! compiler; nothing is written outside `target/dist/`.

mod elf;
mod licences;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

pub(crate) const USAGE: &str = "  dist [--test] [--target TRIPLE]
        pack a static program with man pages, completions, unit, dashboards and licences into target/dist/;
        --test then runs it in an empty root directory, as root or where users may have namespaces";

const MUSL: &str = "x86_64-unknown-linux-musl";
const GLIBC: &str = "x86_64-unknown-linux-gnu";
const FOLDER: &str = "target/dist";
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/keepup"),
    ("zsh", "share/zsh/site-functions/_keepup"),
    ("fish", "share/fish/vendor_completions.d/keepup.fish"),
];
/// Files of the repository and their paths in the archive.
const COPIED: [(&str, &str); 9] = [
    ("README.md", "share/doc/keepup/README.md"),
    ("CHANGELOG.md", "share/doc/keepup/CHANGELOG.md"),
    ("docs/book/monitoring.md", "share/doc/keepup/monitoring.md"),
    ("LICENSE-MIT", "share/doc/keepup/LICENSE-MIT"),
    ("LICENSE-APACHE", "share/doc/keepup/LICENSE-APACHE"),
    ("packaging/keepup-record.service", "lib/systemd/system/keepup-record.service"),
    ("packaging/keepup-record.env", "share/keepup/keepup-record.env"),
    ("packaging/grafana/keepup.json", "share/keepup/grafana/keepup.json"),
    ("packaging/prometheus/keepup.rules.yml", "share/keepup/prometheus/keepup.rules.yml"),
];

/// Builds the archive and optionally tests it.
pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let (mut is_tested, mut target) = (false, default_target()?);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "--test" => is_tested = true,
            "--target" => target = (*rest.next().context("--target requires a triple")?).to_owned(),
            other => bail!("unknown argument `{other}`\n{USAGE}"),
        }
    }
    let archive = pack(&target)?;
    println!("{} ({})", archive.display(), target);
    if is_tested { trial::run(&archive) } else { Ok(ExitCode::SUCCESS) }
}

/// musl if its standard library and its compiler are installed, otherwise static glibc
/// (docs/adr/0017-static-archive.md).
fn default_target() -> Result<String> {
    let libraries = output(Command::new("rustc").args(["--print", "target-libdir", "--target", MUSL]))?;
    // The names that the crate `cc` tries.
    let has_compiler = ["x86_64-linux-musl-gcc", "musl-gcc"]
        .iter()
        .any(|compiler| Command::new(compiler).arg("--version").output().is_ok());
    let is_installed = Path::new(libraries.trim()).is_dir() && has_compiler;
    Ok(if is_installed { MUSL } else { GLIBC }.to_owned())
}

fn pack(target: &str) -> Result<PathBuf> {
    let program = build(target)?;
    elf::refuse_dynamic(&program)?;
    let metadata = metadata(target)?;
    let name = format!("keepup-{}-x86_64-linux", version(&metadata)?);
    let tree = Path::new(FOLDER).join(&name);
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("cannot clear {}", tree.display()))?;
    }
    put(&program, &tree.join("bin/keepup"))?;
    for (from, to) in COPIED {
        put(Path::new(from), &tree.join(to))?;
    }
    write(&tree.join("share/doc/keepup/THIRD-PARTY-LICENSES"), &licences::text(&metadata)?)?;
    for (shell, to) in SHELLS {
        let text = output(Command::new(&program).args(["generate", "completions", shell]))?;
        write(&tree.join(to), &text)?;
    }
    let pages = tree.join("share/man/man1");
    succeed(Command::new(&program).args(["generate", "man"]).arg(&pages))?;
    let sums =
        "find . -type f ! -name SHA256SUMS -print0 | LC_ALL=C sort -z | xargs -0 sha256sum > SHA256SUMS";
    succeed(Command::new("sh").args(["-ec", sums]).current_dir(&tree))?;
    archive(&name)
}

/// Packs the tree reproducibly, with the time of the commit and without user names.
fn archive(name: &str) -> Result<PathBuf> {
    let time = output(Command::new("git").args(["log", "-1", "--format=%ct"]))?;
    let file = format!("{name}.tar.gz");
    let mode = "--mode=u=rwX,go=rX";
    let owner = ["--owner=0", "--group=0", "--numeric-owner"];
    let mut tar = Command::new("tar");
    tar.current_dir(FOLDER).args(["--sort=name", "--format=ustar", mode]).args(owner);
    tar.arg(format!("--mtime=@{}", time.trim())).args([
        "--use-compress-program=gzip -n9",
        "-cf",
        &file,
        name,
    ]);
    succeed(&mut tar)?;
    let sum = output(Command::new("sha256sum").arg(&file).current_dir(FOLDER))?;
    write(&Path::new(FOLDER).join(format!("{file}.sha256")), &sum)?;
    Ok(Path::new(FOLDER).join(file))
}

/// Builds the static, stripped program for a target.
fn build(target: &str) -> Result<PathBuf> {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--package", "keepup-cli", "--target", target]);
    cargo.env("RUSTFLAGS", format!("{flags} -C target-feature=+crt-static").trim());
    cargo.env("CARGO_PROFILE_RELEASE_STRIP", "symbols").env("CARGO_PROFILE_RELEASE_DEBUG", "none");
    cargo.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let messages = output(&mut cargo)?;
    let built = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = built.filter(|message| message["target"]["name"] == "keepup");
    let found = programs.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    found.context("no path of the program in the output of cargo")
}

fn metadata(target: &str) -> Result<Value> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    Ok(serde_json::from_str(&output(Command::new(cargo).args(arguments))?)?)
}

fn version(metadata: &Value) -> Result<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut own = packages.filter(|package| package["name"] == licences::PROGRAM);
    let version = own.find_map(|package| package["version"].as_str());
    Ok(version.context("cargo metadata has no keepup-cli")?.to_owned())
}

fn put(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(Path::new(".")))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Standard output of a command. Standard error is inherited.
fn output(command: &mut Command) -> Result<String> {
    let done = command.stderr(Stdio::inherit()).output();
    let done = done.with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(done.status.success(), "{command:?} ended with {}", done.status);
    Ok(String::from_utf8(done.stdout)?)
}

fn succeed(command: &mut Command) -> Result<()> {
    output(command).map(|_| ())
}

#[cfg(test)]
#[path = "dist_tests.rs"]
mod tests;

//! `cargo xtask validate-model`: compares the capacity model with this machine.
//!
//! Measures the ceiling of each part, predicts each configuration with `keepup predict`, prints all
//! predictions, and then measures each configuration with `keepup trial` at full speed. A TCP source is
//! throttled by back-pressure, so the durable rate is the capacity of the path. Trials of a quick
//! qualification would be shorter than the burst credit of a throttle.
//!
//! Volumes are file systems on loop devices of one disk, throttled by control groups; links are loopback
//! interfaces of namespaces with a token bucket; loads are those of `keepup load`.

mod setting;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use keepup_measure::stats::median;
use keepup_testkit::filesystem::{FileSystemKind, LoopFileSystem};
use keepup_testkit::root::{ShapedNamespace, ThrottledWrites};
use serde_json::Value;

use crate::ci::cargo;
use setting::{SETTINGS, Setting};

/// Number of volumes.
const VOLUMES: usize = 4;
/// Size of a volume.
const VOLUME_BYTES: u64 = 3 << 30;
/// Duration of a run of the whole path, long compared with the credit of throttles and the pool.
const TIME: &str = "15s";
/// Runs of each ceiling and of each configuration.
const REPEATS: usize = 3;
/// Largest median and maximum error of predictions.
const MEDIAN_ERROR: f64 = 0.10;
const WORST_ERROR: f64 = 0.20;

/// Ceilings of the parts, bytes per second and core-seconds per GB.
struct Ceilings {
    /// The recorder without disks, source and recorder on this machine.
    pipeline: f64,
    /// Loopback, one connection.
    loopback: f64,
    /// One unthrottled volume.
    disk: f64,
    /// All volumes at once, which share a disk.
    disks: f64,
    /// CPU of recorder and source while writing.
    seconds_per_gb: f64,
    /// One volume at each throttle rate.
    throttled: Vec<(u32, f64)>,
    /// A link at each shaping rate.
    links: Vec<(u32, f64)>,
}

struct Bench {
    keepup: PathBuf,
    directory: PathBuf,
    volumes: Vec<LoopFileSystem>,
}

pub(crate) fn run(arguments: &[&str]) -> Result<ExitCode> {
    let directory = match arguments {
        [] => PathBuf::from("target/validate"),
        [directory] => PathBuf::from(directory),
        _ => bail!("validate-model accepts one directory"),
    };
    ensure!(cargo(&["build", "--release", "--quiet", "--package", "keepup-cli"])?, "keepup does not compile");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let bench = Bench::new(std::fs::canonicalize("target/release/keepup")?, directory.canonicalize()?)?;
    let ceilings = bench.ceilings()?;
    ceilings.print();
    let mut predicted = Vec::new();
    println!("\n| configuration | predicted, MB/s | interval | bottleneck | second |\n|---|---|---|---|---|");
    for setting in SETTINGS {
        let found = bench.predict(setting, &ceilings)?;
        println!("| {} | {} |", setting.name, found.row());
        predicted.push(found);
    }
    println!(
        "\n| configuration | predicted, MB/s | knee, MB/s | lowest and highest | error |\n\
         |---|---|---|---|---|"
    );
    let mut errors = Vec::new();
    for (setting, predicted) in SETTINGS.iter().zip(&predicted) {
        match bench.knee(setting) {
            Ok(knee) => {
                let error = predicted.rate / knee.rate - 1.0;
                println!(
                    "| {} | {:.1} | {} | {:+.1} % |",
                    setting.name,
                    predicted.rate / 1e6,
                    knee.row(),
                    100.0 * error
                );
                errors.push(error.abs());
            }
            Err(why) => {
                println!("| {} | {:.1} | not measured: {why:#} | | |", setting.name, predicted.rate / 1e6)
            }
        }
    }
    Ok(judged(&errors))
}

fn judged(errors: &[f64]) -> ExitCode {
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let middle = median(errors).unwrap_or(f64::NAN);
    println!(
        "\nmedian error {:.1} %, worst {:.1} %, of {} configurations",
        100.0 * middle,
        100.0 * worst,
        errors.len()
    );
    let holds = middle <= MEDIAN_ERROR && worst <= WORST_ERROR && errors.len() == SETTINGS.len();
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prediction of the model.
struct Predicted {
    rate: f64,
    interval: Option<(f64, f64)>,
    first: String,
    next: String,
}

impl Predicted {
    fn row(&self) -> String {
        let interval = self
            .interval
            .map_or_else(String::new, |(low, high)| format!("{:.1} to {:.1}", low / 1e6, high / 1e6));
        format!("{:.1} | {interval} | {} | {}", self.rate / 1e6, self.first, self.next)
    }
}

/// Measured rate.
struct Knee {
    rate: f64,
    /// Minimum and maximum of the runs.
    ends: (f64, f64),
}

impl Knee {
    fn row(&self) -> String {
        format!("{:.1} | {:.1} to {:.1}", self.rate / 1e6, self.ends.0 / 1e6, self.ends.1 / 1e6)
    }
}

impl Ceilings {
    fn print(&self) {
        let mb = |rate: f64| format!("{:.1} MB/s", rate / 1e6);
        println!(
            "alone: recorder without disks {}, loopback {}, one volume {}, all at once {}",
            mb(self.pipeline),
            mb(self.loopback),
            mb(self.disk),
            mb(self.disks)
        );
        println!("recorder and source: {:.3} s/GB", self.seconds_per_gb);
        for (throttle, rate) in &self.throttled {
            println!("a volume throttled to {throttle} MB/s: {}", mb(*rate));
        }
        for (shaping, rate) in &self.links {
            println!("a link shaped to {shaping} Mbit/s: {}", mb(*rate));
        }
    }
}

impl Bench {
    fn new(keepup: PathBuf, directory: PathBuf) -> Result<Self> {
        let volume = |number: usize| {
            LoopFileSystem::mount_sized(
                FileSystemKind::Xfs,
                &directory.join(format!("volume{number}")),
                VOLUME_BYTES,
            )
        };
        let volumes = (0..VOLUMES).map(volume).collect::<Result<_, String>>().map_err(|why| anyhow!(why))?;
        Ok(Self { keepup, directory, volumes })
    }

    fn paths(&self, count: usize) -> Vec<&Path> {
        self.volumes.iter().take(count).map(LoopFileSystem::path).collect()
    }

    fn ceilings(&self) -> Result<Ceilings> {
        let plain = Setting {
            name: "",
            volumes: VOLUMES,
            throttle: None,
            shaping: None,
            streams: 1,
            event: "1 MiB",
            load: None,
        };
        let profile = self.profile(&plain)?;
        let null = ["trial", &profile, "--rate", "max", "--to-null", "--time", "4s", "--json"];
        let pipeline =
            self.middle(&plain, &null, &|result| number(&result["runs"][0]["achieved_bytes_per_second"]))?;
        let volume = self.volumes[0].path().display().to_string();
        let writing = ["trial", &profile, "--rate", "max", "--time", "3s", "--volume", &volume, "--json"];
        let cost = |result: &Value| {
            let cpu = &result["runs"][0]["cpu"];
            Some(number(&cpu["seconds_per_gb"])? + number(&cpu["source_seconds_per_gb"])?)
        };
        let settings = |of: &dyn Fn(&Setting) -> Option<u32>| {
            let mut all: Vec<u32> = SETTINGS.iter().filter_map(of).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let throttled = settings(&|setting| setting.throttle).into_iter().map(|throttle| {
            let setting = Setting { throttle: Some(throttle), volumes: 1, ..plain };
            Ok((throttle, self.written(&setting, 1)?))
        });
        let throttled = throttled.collect::<Result<_>>()?;
        let links = settings(&|setting| setting.shaping)
            .into_iter()
            .map(|shaping| Ok((shaping, self.link(&Setting { shaping: Some(shaping), ..plain })?)));
        Ok(Ceilings {
            pipeline,
            loopback: self.link(&plain)?,
            disk: self.written(&plain, 1)?,
            disks: self.written(&plain, VOLUMES)?,
            seconds_per_gb: self.middle(&plain, &writing, &cost)?,
            throttled,
            links: links.collect::<Result<_>>()?,
        })
    }

    /// Write rate of `volumes` at once, measured by a disk test.
    fn written(&self, setting: &Setting, volumes: usize) -> Result<f64> {
        let mut command = vec![
            "disk".to_owned(),
            "scale".into(),
            "--time".into(),
            "8s".into(),
            "--ramp".into(),
            "1s".into(),
            "--file".into(),
            "512 MiB".into(),
            "--json".into(),
        ];
        let paths: Vec<String> = self.paths(volumes).iter().map(|path| path.display().to_string()).collect();
        // All of them as one step.
        paths.iter().for_each(|path| command.extend(["--volume".into(), path.clone()]));
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        self.middle(setting, &command, &|result| {
            let phases = result["runs"][0]["phases"].as_array()?;
            let last = phases.last()?;
            Some(number(&last["bytes"])? / number(&last["seconds"])?)
        })
    }

    fn link(&self, setting: &Setting) -> Result<f64> {
        let command = ["net", "tcp", "self", "--flows", "1", "--ramp", "500ms", "--time", "3s", "--json"];
        self.middle(setting, &command, &|result| {
            let received = &result["runs"][0]["flows"][0]["received"];
            Some(number(&received["bytes"])? / number(&received["seconds"])?)
        })
    }

    /// Median of a figure over several runs of a command.
    fn middle(
        &self,
        setting: &Setting,
        command: &[&str],
        figure: &dyn Fn(&Value) -> Option<f64>,
    ) -> Result<f64> {
        let mut values = Vec::new();
        for _ in 0..REPEATS {
            let result = self.run(setting, command)?;
            values
                .push(figure(&result).ok_or_else(|| anyhow!("{command:?} has no such figure: {result:#}"))?);
        }
        median(&values).ok_or_else(|| anyhow!("no run of {command:?}"))
    }

    /// Runs keepup with the throttles and the shaped link of a setting.
    fn run(&self, setting: &Setting, command: &[&str]) -> Result<Value> {
        let name = format!("keepup-validate-{}", std::process::id());
        let paths = self.paths(setting.volumes);
        let throttled =
            setting.throttle.map(|mb| ThrottledWrites::each(&name, &paths, u64::from(mb) * 1_000_000));
        let throttled = throttled.transpose().map_err(|why| anyhow!(why))?;
        let namespace = setting.shaping.map(|megabits| ShapedNamespace::create(&name, megabits));
        let namespace = namespace.transpose().map_err(|why| anyhow!(why))?;
        let enter = throttled
            .as_ref()
            .map_or_else(String::new, |group| format!("echo $$ > {}; ", group.entry().display()));
        let inside =
            namespace.as_ref().map_or_else(String::new, |space| format!("ip netns exec {} ", space.name()));
        let quoted: Vec<String> = command.iter().map(|word| format!("'{word}'")).collect();
        let script = format!("{enter}exec {inside}'{}' {}", self.keepup.display(), quoted.join(" "));
        let output = Command::new("sh").args(["-c", &script]).current_dir(&self.directory).output()?;
        serde_json::from_slice(&output.stdout).with_context(|| {
            format!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr))
        })
    }

    /// Writes the detector profile of a setting.
    fn profile(&self, setting: &Setting) -> Result<String> {
        let path = self.directory.join("validation.toml");
        std::fs::write(&path, setting.profile())
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path.display().to_string())
    }

    fn predict(&self, setting: &Setting, ceilings: &Ceilings) -> Result<Predicted> {
        let machine = self.directory.join("machine.toml");
        std::fs::write(&machine, setting.machine(ceilings)?)?;
        let profile = self.profile(setting)?;
        let output = Command::new(&self.keepup)
            .args(["predict", &profile, "--on", &machine.display().to_string(), "--json"])
            .output()?;
        let found: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{}: {}", setting.name, String::from_utf8_lossy(&output.stderr)))?;
        let point = &found["points"][0];
        let part = |n: usize| point["parts"][n]["name"].as_str().unwrap_or_default().to_owned();
        Ok(Predicted {
            rate: number(&point["bytes_per_second"]).ok_or_else(|| anyhow!("no rate"))?,
            interval: number(&point["lower_bytes_per_second"]).zip(number(&point["upper_bytes_per_second"])),
            first: part(0),
            next: part(1),
        })
    }

    /// Capacity of the whole path: durable rate of a source at full speed.
    fn knee(&self, setting: &Setting) -> Result<Knee> {
        let profile = self.profile(setting)?;
        let repeats = REPEATS.to_string();
        let head = ["trial", &profile, "--rate", "max", "--time", TIME, "--repeats", &repeats, "--no-verify"];
        let mut command: Vec<String> = head.map(str::to_owned).to_vec();
        // Each stream fills a block of its own.
        let pool = if setting.streams > 64 { "192 MiB" } else { "64 MiB" };
        command.extend(["--pool", pool, "--json"].map(str::to_owned));
        let paths = self.paths(setting.volumes);
        paths.iter().for_each(|path| command.extend(["--volume".to_owned(), path.display().to_string()]));
        command.extend(setting.load.iter().flat_map(|load| ["--load".to_owned(), load.spec(&paths)]));
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let result = self.run(setting, &command)?;
        let runs = result["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let rates: Vec<f64> =
            runs.iter().filter_map(|run| number(&run["durable_bytes_per_second"])).collect();
        let lost = runs.iter().any(|run| run["ledger"]["lost"]["events"].as_u64() != Some(0));
        ensure!(!lost, "events were lost");
        let rate = median(&rates).ok_or_else(|| anyhow!("no run ended: {}", result["failure"]))?;
        let ends = |end: fn(f64, f64) -> f64| rates.iter().copied().reduce(end).unwrap_or(rate);
        Ok(Knee { rate, ends: (ends(f64::min), ends(f64::max)) })
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

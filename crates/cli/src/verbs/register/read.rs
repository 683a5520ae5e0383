//! `keepup register read | compare`: read cost of each access method.
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_registers::{
    Binding, Identity, RegisterError, RegisterSpec, RegisterTest, RegisterWrite, Target, TargetProfile,
    Width, break_evens, fits,
};
use keepup_results::{Event, RegisterSummary};
use keepup_workload::Footprint;
use keepup_workload::load::LoadPlan;

use crate::args::{OutputArgs, nonzero_duration};
use crate::exit::Exit;
use crate::forecast::{forecast, print_plan};
use crate::output::log;
use crate::verbs::test_session::TestSession;

/// Depths of the note CERN-BE-2009-032.
const NOTE_DEPTHS: [u64; 4] = [1, 0x100, 0x10000, 0x80000];
/// Factor between the compared depths.
const COMPARED_STEP: u64 = 4;
const COMPARED_MAX: u64 = 0x80000;

/// Measure register reads of a target at a few depths
///
/// The access methods (loads from a mapping, one system call per register, one transfer for all) are measured
/// in interleaved order. Nothing is written, except with --write and when a profile describes the DMA engine
/// of the card and DMA is measured. Registers that change when read are skipped only if a profile lists them.
#[derive(clap::Args)]
#[command(after_help = "Targets:
  ram                           memory, to measure the overhead of the test
  pci:0000:00:04.0/bar0         BAR of a PCI function, mapped (also write-combining, if available)
  pci-config:0000:00:04.0       configuration space, one system call per register
  vfio:0000:00:04.0/bar0        BAR bound to vfio-pci: mapped, system calls, DMA with --profile
  uio:0  uio:/dev/uio0/map1     memory map of a UIO driver
  uio:0/bar0                    BAR of the function bound to a UIO driver
  vme:/dev/bus/vme/m0           master window of vme_user, one system call per register or in blocks
  vme:/dev/bus/vme/m0,address=0x10000,size=0x1000,space=A24[,cycle=SCT+USER+DATA,width=32]
                                the same, with these settings during the test
  ipbus://192.168.200.16        IPbus 2.0 board: packet or transaction per register, or blocks
  ipbus:self                    IPbus target that keepup serves over loopback, no board needed
  xdma:/dev/xdma0_c2h_0         device that transfers a range by DMA

Examples:
  keepup register read ram
  keepup register read pci:0000:00:04.0/bar0 --depth 1,0x100 --identity 0=0x010000ed
  keepup register compare pci:0000:00:04.0/bar0 --method mmap
  keepup register read pci:0000:00:04.0/bar0 --profile edu --write 4=0x12345678
  sudo keepup register compare vfio:0000:00:04.0/bar0 --bind vfio-pci --profile edu")]
pub(super) struct ReadArgs {
    /// Registers per read [default: 1,0x100,0x10000,0x80000]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = number)]
    depth: Vec<u64>,
    #[command(flatten)]
    common: Common,
}

/// Compare the access methods of a target over many depths, with break-even points
///
/// Fits T(n) = a + b n to every method. For every pair of methods, prints the length from which one takes
/// less time or less CPU time than the other, with a 95 % confidence interval.
#[derive(clap::Args)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    common: Common,
}

/// Flags of `read` and `compare`.
#[derive(clap::Args)]
struct Common {
    /// Target, see the list in `keepup register read --help`
    target: Target,
    /// Access methods [default: all of the target]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    method: Vec<String>,
    /// Also measure the first method through the generic access function of `register get`
    ///
    /// It takes any target, width and profile at run time and checks every read; the other methods are loops
    /// compiled for one width.
    #[arg(long)]
    generic: bool,
    /// Width of a register in bits
    #[arg(long, default_value = "32", value_parser = width)]
    width: Width,
    /// Offset of the first register, in bytes
    #[arg(long, default_value = "0", value_parser = number, value_name = "BYTES")]
    offset: u64,
    /// Read the same register repeatedly
    #[arg(long)]
    fifo: bool,
    /// Register that must have this value before and after the test
    #[arg(long, value_name = "OFFSET=VALUE", value_parser = pair)]
    identity: Option<(u64, u64)>,
    /// Trials per method and depth
    #[arg(long, default_value_t = 30, value_name = "N", 
          value_parser = clap::value_parser!(u32).range(5..=10_000))]
    trials: u32,
    /// Stop after this time, but not before five rounds
    #[arg(long, default_value = "30 s", value_parser = nonzero_duration, value_name = "TIME")]
    time: Duration,
    /// Device profile: a TOML file or the built-in profile `edu`
    #[arg(long, value_name = "FILE|NAME")]
    profile: Option<String>,
    /// Registers to read although a read changes them
    #[arg(long, value_name = "OFFSETS", value_delimiter = ',', value_parser = number, requires = "profile")]
    read_to_clear: Vec<u64>,
    /// Also measure writes to this register, which the profile must allow
    ///
    /// Measures the cost of issuing a write and the time until it is read back. The register keeps the value.
    #[arg(long, value_name = "OFFSET=VALUE", value_parser = pair, requires = "profile")]
    write: Option<(u64, u64)>,
    /// Bind the function to this driver during the test
    #[arg(long, value_name = "DRIVER")]
    bind: Option<String>,
    /// CPU to read from [default: one near the device, if known]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Common {
    fn spec(&self, depths: Vec<u64>, clip: bool) -> Result<RegisterSpec, RegisterError> {
        let profile = self.profile.as_deref().map(TargetProfile::find).transpose()?;
        let asked = self.identity.map(|(offset, value)| Identity { offset, value, width: self.width.bits() });
        Ok(RegisterSpec {
            target: self.target.clone(),
            methods: self.method.clone(),
            generic: self.generic,
            depths,
            clip,
            width: self.width,
            offset: self.offset,
            is_fifo: self.fifo,
            trials: self.trials,
            time: self.time,
            identity: asked.or(profile.as_ref().and_then(|profile| profile.identity)),
            cpu: self.cpu,
            profile,
            read_to_clear: self.read_to_clear.clone(),
            write: self.write.map(|(offset, value)| RegisterWrite { offset, value }),
        })
    }
}

pub(super) fn read(args: &ReadArgs) -> anyhow::Result<Exit> {
    let (depths, clip) = match args.depth.is_empty() {
        true => (NOTE_DEPTHS.to_vec(), true),
        false => (args.depth.clone(), false),
    };
    measure("register-read", &args.common, &args.common.spec(depths, clip)?)
}

pub(super) fn compare(args: &CompareArgs) -> anyhow::Result<Exit> {
    let depths = std::iter::successors(Some(1), |depth| Some(depth * COMPARED_STEP));
    let mut depths: Vec<u64> = depths.take_while(|depth| *depth < COMPARED_MAX).collect();
    depths.push(COMPARED_MAX);
    measure("register-compare", &args.common, &args.common.spec(depths, true)?)
}

fn measure(workload: &str, common: &Common, spec: &RegisterSpec) -> anyhow::Result<Exit> {
    let plan = describe(common, spec);
    if common.output.dry_run {
        let own = Footprint { time: spec.time, ..Footprint::default() };
        print_plan(&forecast(&own, &LoadPlan::default(), plan), common.output.json);
        return Ok(Exit::Done);
    }
    log(&plan);
    let plan = settings(common, spec);
    let mut session = TestSession::<RegisterSummary>::start(workload, plan, &[], &common.output)?;
    let mut context = session.context();
    let mut done = None;
    // The test is dropped before the function is bound back: unbinding waits for open handles.
    let back = with_driver(&spec.target, common.bind.as_deref(), || {
        let test = RegisterTest::new(spec.clone(), Path::new("/"));
        done = Some(test.run(context.clock.as_ref(), &context.stop, &mut context.note));
    });
    let (run, failure) = match done {
        Some(Ok((run, failure))) => (Some(run), failure.or(back.err())),
        Some(Err(failure)) => (None, Some(failure)),
        None => (None, back.err()),
    };
    if let Some(run) = &run {
        session.log_event(|t_unix_ns| Event::RegisterRun { t_unix_ns, run: Box::new(run.clone()) });
        (session.summary.fits, session.summary.break_evens) = (fits(run), break_evens(run));
    }
    session.summary.run = run;
    let interrupted = session.stop.load(Ordering::Acquire);
    session.end(failure.map(anyhow::Error::from), interrupted)
}

/// Describes the plan.
fn describe(common: &Common, spec: &RegisterSpec) -> String {
    let bound = common.bind.as_ref().map(|driver| format!("; bound to {driver} during the test"));
    let dma = spec.profile.as_ref().and_then(|profile| profile.dma).filter(|_| {
        let is_asked = spec.methods.is_empty() || spec.methods.iter().any(|name| name == "dma");
        is_asked && matches!(spec.target, Target::Vfio { .. })
    });
    let store = spec.write.map(|RegisterWrite { offset, value }| {
        format!("{value:#x} is written to {offset:#x} repeatedly and stays there")
    });
    let dma = dma.map(|dma| match dma.may_fill {
        true => "its DMA engine is used and its memory filled".to_owned(),
        false => "its DMA engine is used".to_owned(),
    });
    let written: Vec<String> = store.into_iter().chain(dma).collect();
    let written = match written.is_empty() {
        true => "nothing is written".to_owned(),
        false => format!("{}, nothing else is written", written.join(", ")),
    };
    format!(
        "{}: registers of {} bits from {:#x}, {} trials per method and depth, \
         about {} s; {written}{}",
        spec.target,
        spec.width.bits(),
        spec.offset,
        spec.trials,
        spec.time.as_secs(),
        bound.unwrap_or_default()
    )
}

/// Runs `work` while the target's function is bound to `driver`, if given, and restores the binding.
pub(super) fn with_driver<T>(
    target: &Target,
    driver: Option<&str>,
    work: impl FnOnce() -> T,
) -> Result<T, RegisterError> {
    let binding = driver.map(|driver| Binding::new(target, Path::new("/"), driver)).transpose()?.flatten();
    if let (Some(binding), Some(driver)) = (&binding, driver) {
        let before = binding.previous_driver().unwrap_or("no driver");
        log(&format!("bound {} to {driver} (was {before})", binding.function()));
    }
    let done = work();
    if let Some(binding) = binding {
        let function = binding.function().to_owned();
        log(&format!("bound {function} back to {}", binding.restore()?));
    }
    Ok(done)
}

/// Settings for the result.
fn settings(common: &Common, spec: &RegisterSpec) -> serde_json::Value {
    serde_json::json!({
        "target": spec.target.to_string(),
        "methods": spec.methods,
        "generic": spec.generic,
        "depths": spec.depths,
        "width_bits": spec.width.bits(),
        "offset": spec.offset,
        "fifo": spec.is_fifo,
        "trials": spec.trials,
        "time_seconds": spec.time.as_secs_f64(),
        "identity": spec.identity.map(|identity| (identity.offset, identity.value)),
        "cpu": spec.cpu,
        "profile": spec.profile.as_ref().map(|profile| &profile.name),
        "read_to_clear": spec.read_to_clear,
        "write": spec.write.map(|store| (store.offset, store.value)),
        "bind": common.bind,
    })
}

/// Parses a decimal or `0x` hexadecimal number.
pub(super) fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|why| format!("{why}; expected a number such as 256 or 0x100"))
}

pub(super) fn pair(text: &str) -> Result<(u64, u64), String> {
    let (offset, value) = text.split_once('=').ok_or("expected OFFSET=VALUE such as 0x0=0x010000ed")?;
    Ok((number(offset)?, number(value)?))
}

pub(super) fn width(text: &str) -> Result<Width, String> {
    let bits = text.parse().ok().and_then(Width::of_bits);
    bits.ok_or_else(|| "expected 8, 16, 32 or 64".to_owned())
}

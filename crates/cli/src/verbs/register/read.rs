//! `keepup register read | compare`: what a read costs by each way of a target.
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

use crate::args::{Outlet, some_time};
use crate::exit::Exit;
use crate::forecast::{forecast, foretell};
use crate::output::say;
use crate::verbs::sitting::Sitting;

/// Depths of the note CERN-BE-2009-032.
const NOTE_DEPTHS: [u64; 4] = [1, 0x100, 0x10000, 0x80000];
/// Steps between the depths that are compared.
const COMPARED_STEP: u64 = 4;
const COMPARED_MAX: u64 = 0x80000;

/// Read a target's registers at a few depths
///
/// Each way of reading takes turns with the others: loads from a mapping, a call of the kernel for each
/// register, one transfer for all. Nothing is written, unless --write asks for it, or a profile says how the
/// card moves data by itself and that is measured. Registers that change by being read are read too, unless a
/// profile names them.
#[derive(clap::Args)]
#[command(after_help = "Targets:
  ram                           memory: what the measuring itself costs
  pci:0000:00:04.0/bar0         a BAR of a PCI function, mapped (and write-combining, where it is offered)
  pci-config:0000:00:04.0       its configuration space, a call for each register
  vfio:0000:00:04.0/bar0        a BAR that vfio-pci has: mapped, by calls, with --profile by its DMA
  uio:0  uio:/dev/uio0/map1     a map that a UIO driver offers
  uio:0/bar0                    a BAR of the function that a UIO driver is bound to
  vme:/dev/bus/vme/m0           a master window of vme_user, by a call for each register, or in blocks
  vme:/dev/bus/vme/m0,address=0x10000,size=0x1000,space=A24[,cycle=SCT+USER+DATA,width=32]
                                the same, set to this while it is read
  ipbus://192.168.200.16        a board behind IPbus 2.0, by a packet or a transaction for each, or in blocks
  ipbus:self                    a target of IPbus that keepup serves itself meanwhile, over loopback: no board
  xdma:/dev/xdma0_c2h_0         a device that moves a span by DMA

Examples:
  keepup register read ram
  keepup register read pci:0000:00:04.0/bar0 --depth 1,0x100 --identity 0=0x010000ed
  keepup register compare pci:0000:00:04.0/bar0 --method mmap
  keepup register read pci:0000:00:04.0/bar0 --profile edu --write 4=0x12345678
  sudo keepup register compare vfio:0000:00:04.0/bar0 --bind vfio-pci --profile edu")]
pub(super) struct ReadArgs {
    /// Registers read at a time [default: 1, 0x100, 0x10000 and 0x80000, as far as the target has them]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = number)]
    depth: Vec<u64>,
    #[command(flatten)]
    common: Common,
}

/// Read a target's registers by all its ways at many depths, and say from where on which way pays
///
/// Fits T(n) = a + b n to every way, and gives for every pair of ways the length from which one takes less
/// time, or less CPU, than the other, with an interval of 95 %.
#[derive(clap::Args)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    common: Common,
}

/// Flags of both.
#[derive(clap::Args)]
struct Common {
    /// What to read
    target: Target,
    /// Ways of reading [default: all that the target has]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    method: Vec<String>,
    /// Width of a register in bits
    #[arg(long, default_value = "32", value_parser = width)]
    width: Width,
    /// Where the first register is, bytes
    #[arg(long, default_value = "0", value_parser = number, value_name = "BYTES")]
    offset: u64,
    /// Read the same register again and again
    #[arg(long)]
    fifo: bool,
    /// A register that must have this value before and after
    #[arg(long, value_name = "OFFSET=VALUE", value_parser = pair)]
    identity: Option<(u64, u64)>,
    /// Trials of each way at each depth
    #[arg(long, default_value_t = 30, value_name = "N", 
          value_parser = clap::value_parser!(u32).range(5..=10_000))]
    trials: u32,
    /// No further round of trials after this time, but of five
    #[arg(long, default_value = "30 s", value_parser = some_time, value_name = "TIME")]
    time: Duration,
    /// What is known of the device: a file in TOML, or a built-in profile (edu)
    #[arg(long, value_name = "FILE|NAME")]
    profile: Option<String>,
    /// Registers that the profile says reading changes, to be read all the same
    #[arg(long, value_name = "OFFSETS", value_delimiter = ',', value_parser = number, requires = "profile")]
    read_to_clear: Vec<u64>,
    /// Measure writes to this register, too: what issuing one costs, and until it is read back. The profile
    /// must let it be written; it keeps the value
    #[arg(long, value_name = "OFFSET=VALUE", value_parser = pair, requires = "profile")]
    write: Option<(u64, u64)>,
    /// Bind the function to this driver while it is read, and to its own again afterwards
    #[arg(long, value_name = "DRIVER")]
    bind: Option<String>,
    /// Processor to read from [default: one beside the device, or where it happens to run]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    #[command(flatten)]
    outlet: Outlet,
}

impl Common {
    fn spec(&self, depths: Vec<u64>, clip: bool) -> Result<RegisterSpec, RegisterError> {
        let profile = self.profile.as_deref().map(TargetProfile::find).transpose()?;
        let asked = self.identity.map(|(offset, value)| Identity { offset, value, width: self.width.bits() });
        Ok(RegisterSpec {
            target: self.target.clone(),
            methods: self.method.clone(),
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
    let plan = told(common, spec);
    if common.outlet.dry_run {
        let own = Footprint { time: spec.time, ..Footprint::default() };
        foretell(&forecast(&own, &LoadPlan::default(), plan), common.outlet.json);
        return Ok(Exit::Done);
    }
    say(&plan);
    let plan = planned(common, spec);
    let mut sitting = Sitting::<RegisterSummary>::begin(workload, plan, &[], &common.outlet)?;
    let mut context = sitting.context();
    let mut done = None;
    // Dropped within: a driver waits for whoever still has its function.
    let back = bound(&spec.target, common.bind.as_deref(), || {
        let test = RegisterTest::new(spec.clone(), Path::new("/"));
        done = Some(test.run(context.clock.as_ref(), &context.stop, &mut context.note));
    });
    let (run, failure) = match done {
        Some(Ok((run, failure))) => (Some(run), failure.or(back.err())),
        Some(Err(failure)) => (None, Some(failure)),
        None => (None, back.err()),
    };
    if let Some(run) = &run {
        sitting.keep(|t_unix_ns| Event::RegisterRun { t_unix_ns, run: Box::new(run.clone()) });
        (sitting.summary.fits, sitting.summary.break_evens) = (fits(run), break_evens(run));
    }
    sitting.summary.run = run;
    let interrupted = sitting.stop.load(Ordering::Acquire);
    sitting.end(failure.map(anyhow::Error::from), interrupted)
}

/// What will be done, in words.
fn told(common: &Common, spec: &RegisterSpec) -> String {
    let bound = common.bind.as_ref().map(|driver| format!("; bound to {driver} meanwhile"));
    let dma = spec.profile.as_ref().and_then(|profile| profile.dma).filter(|_| {
        let is_asked = spec.methods.is_empty() || spec.methods.iter().any(|name| name == "dma");
        is_asked && matches!(spec.target, Target::Vfio { .. })
    });
    let store = spec.write.map(|RegisterWrite { offset, value }| {
        format!("{value:#x} is written to {offset:#x} again and again, and stays there")
    });
    let dma = dma.map(|dma| match dma.may_fill {
        true => "its DMA is driven and its memory filled".to_owned(),
        false => "its DMA is driven".to_owned(),
    });
    let written: Vec<String> = store.into_iter().chain(dma).collect();
    let written = match written.is_empty() {
        true => "nothing is written".to_owned(),
        false => format!("{}, nothing else is written", written.join(", ")),
    };
    format!(
        "{}: registers of {} bits from {:#x} on, {} trials of each way at each depth, \
         about {} s; {written}{}",
        spec.target,
        spec.width.bits(),
        spec.offset,
        spec.trials,
        spec.time.as_secs(),
        bound.unwrap_or_default()
    )
}

/// Does something while the target's function is bound to another driver, if that is asked for, and puts it
/// back; says so.
pub(super) fn bound<T>(
    target: &Target,
    driver: Option<&str>,
    work: impl FnOnce() -> T,
) -> Result<T, RegisterError> {
    let binding = driver.map(|driver| Binding::new(target, Path::new("/"), driver)).transpose()?.flatten();
    if let (Some(binding), Some(driver)) = (&binding, driver) {
        let before = binding.previous_driver().unwrap_or("no driver");
        say(&format!("{} is bound to {driver}, before to {before}", binding.function()));
    }
    let done = work();
    if let Some(binding) = binding {
        let function = binding.function().to_owned();
        say(&format!("{function} is bound to {} again", binding.restore()?));
    }
    Ok(done)
}

/// The settings, for the result.
fn planned(common: &Common, spec: &RegisterSpec) -> serde_json::Value {
    serde_json::json!({
        "target": spec.target.to_string(),
        "methods": spec.methods,
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

/// A number, decimal or with 0x before it hexadecimal.
pub(super) fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|why| format!("{why}; as in 256 or 0x100"))
}

pub(super) fn pair(text: &str) -> Result<(u64, u64), String> {
    let (offset, value) = text.split_once('=').ok_or("as in 0x0=0x010000ed")?;
    Ok((number(offset)?, number(value)?))
}

pub(super) fn width(text: &str) -> Result<Width, String> {
    let bits = text.parse().ok().and_then(Width::of_bits);
    bits.ok_or_else(|| "registers have 8, 16, 32 or 64 bits".to_owned())
}

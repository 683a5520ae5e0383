//! Measurement of a target by all its methods at all depths, in alternating trials.
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_measure::cpu::ProcessCpu;
use keepup_measure::histogram::Latency;
use keepup_measure::stats::median;
use keepup_results::{LatencyFigures, RegisterDevice, RegisterMethod, RegisterPoint, RegisterRun};
use keepup_sys::register::{Span, Width};

use super::error::RegisterError;
use super::method::{DEPTH_MAX, Generic, Method, RegisterWrite, open, select};
use super::profile::{Identity, TargetProfile};
use super::target::Target;

/// Minimum number of registers in a trial, which keeps the cost of the clock negligible.
const TRIAL_WORDS_MIN: u64 = 1000;
/// Approximate maximum duration of a trial; a trial has at least one transfer.
const TRIAL_TIME_MAX: Duration = Duration::from_millis(20);
/// Maximum share of the total time for the trials of one depth. Slower depths are skipped.
const POINT_TIME_SHARE: f64 = 0.25;
/// Minimum number of trials of a point.
const TRIALS_MIN: usize = 5;
/// Maximum number of individually timed reads, and their maximum total duration.
const SINGLE_READS_MAX: u32 = 10_000;
const SINGLE_READS_TIME_MAX: Duration = Duration::from_millis(500);
/// Clock calls in the measurement of the clock's cost.
const CLOCK_CALLS: u32 = 1000;
/// Largest share of a register's time up to which the loop's overhead is subtracted.
const LOOP_SHARE_MAX: f64 = 0.2;

/// Parameters of a register test.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterSpec {
    /// Target.
    pub target: Target,
    /// Names of the methods; empty for all methods of the target.
    pub methods: Vec<String>,
    /// Whether the first method is also measured through the generic access function of `register get`.
    pub generic: bool,
    /// Depths: numbers of registers read at a time.
    pub depths: Vec<u64>,
    /// Whether depths beyond the target are skipped instead of refused.
    pub clip: bool,
    /// Width of a register.
    pub width: Width,
    /// Offset of the first register, bytes.
    pub offset: u64,
    /// Whether to read the same register repeatedly.
    pub is_fifo: bool,
    /// Trials of each method at each depth.
    pub trials: u32,
    /// Time limit. No round of trials starts after it, except the first five.
    pub time: Duration,
    /// A register that must have this value before and after the test.
    pub identity: Option<Identity>,
    /// Processor to pin the calling thread to. Default: one near the device, or the current one.
    pub cpu: Option<usize>,
    /// Device profile.
    pub profile: Option<TargetProfile>,
    /// Offsets of registers to read although reading changes them.
    pub read_to_clear: Vec<u64>,
    /// A write whose cost is measured too. The profile must list its register as writable; the register
    /// keeps the value.
    pub write: Option<RegisterWrite>,
}

/// One method at one depth.
struct Point {
    depth: u64,
    /// Transfers of a trial.
    repeats: u64,
    /// Time of one transfer in each trial, s.
    seconds: Vec<f64>,
    cpu_seconds: Vec<f64>,
}

/// A method with its measurements.
struct MeasuredMethod {
    method: Box<dyn Method>,
    points: Vec<Point>,
    /// Depths skipped because they take too long.
    skipped: Vec<u64>,
    single: Latency,
    single_count: u32,
}

/// Measurement of a target by all its methods.
pub struct RegisterTest {
    spec: RegisterSpec,
    root: std::path::PathBuf,
    device: Option<RegisterDevice>,
    cpu: Option<usize>,
    methods: Vec<MeasuredMethod>,
    /// Overhead: time of one load in the same loop over memory, s.
    loop_seconds: Option<f64>,
    clock_ns: f64,
    all_ones: bool,
}

impl RegisterTest {
    /// Creates a test. `root` is `/` except in tests.
    pub fn new(spec: RegisterSpec, root: &Path) -> Self {
        Self {
            spec,
            root: root.into(),
            device: None,
            cpu: None,
            methods: Vec::new(),
            loop_seconds: None,
            clock_ns: 0.0,
            all_ones: false,
        }
    }

    /// Measures until done or until `stop` is set. `note` receives messages for the user. A failure during
    /// the measurement is returned together with the results before it.
    ///
    /// # Errors
    /// Nothing could be measured: no such target, method or depth, or another device than expected.
    pub fn run(
        mut self,
        clock: &dyn Clock,
        stop: &AtomicBool,
        note: &mut dyn FnMut(&str),
    ) -> Result<(RegisterRun, Option<RegisterError>), RegisterError> {
        self.prepare()?;
        let failure = self.measure(clock, stop, note).err();
        Ok((self.into_run(), failure))
    }

    fn span(&self, count: u64) -> Span {
        Span { offset: self.spec.offset, count, width: self.spec.width, is_fifo: self.spec.is_fifo }
    }

    /// The requested depths that fit into the target.
    fn depths(&self, bytes: u64) -> Result<Vec<u64>, RegisterError> {
        let target = self.spec.target.to_string();
        let hint = format!("choose --depth, --offset and --width within its {bytes} bytes");
        let (mut depths, mut beyond) = (Vec::new(), None);
        for &depth in &self.spec.depths {
            let checked = match depth > DEPTH_MAX {
                true => Err(format!("a depth of {depth} registers exceeds the maximum of {DEPTH_MAX}")),
                false => self.span(depth).check(bytes),
            };
            match checked {
                Ok(()) => depths.push(depth),
                Err(what) if self.spec.clip => beyond = beyond.or(Some(what)),
                Err(what) => return Err(RegisterError::Span { target, what, hint }),
            }
        }
        if depths.is_empty() {
            let what = beyond.unwrap_or_else(|| "none of the depths fits".into());
            return Err(RegisterError::Span { target, what, hint });
        }
        depths.sort_unstable();
        depths.dedup();
        Ok(depths)
    }

    /// Refuses reads of a register that reading changes, unless the user allows it.
    fn check_read(&self, span: &Span) -> Result<(), RegisterError> {
        match &self.spec.profile {
            Some(profile) => profile.check_read(&self.spec.target, span, &self.spec.read_to_clear),
            None => Ok(()),
        }
    }

    /// Opens the requested methods.
    fn open(&self) -> Result<Vec<Box<dyn Method>>, RegisterError> {
        let methods = open(&self.spec.target, &self.root, self.spec.profile.as_ref())?;
        let names: Vec<&str> = self.spec.methods.iter().map(String::as_str).collect();
        let mut methods = select(&self.spec.target, methods, &names)?;
        let writing = self.spec.write.map(|write| self.write_methods(write, &methods)).transpose()?;
        if self.spec.generic {
            let generic = self.generic(&methods)?;
            methods.push(generic);
        }
        methods.extend(writing.into_iter().flatten());
        Ok(methods)
    }

    /// The generic access function over the first method.
    fn generic(&self, methods: &[Box<dyn Method>]) -> Result<Box<dyn Method>, RegisterError> {
        let target = &self.spec.target;
        let method =
            methods.first().and_then(|method| method.second()).ok_or_else(|| RegisterError::Span {
                target: target.to_string(),
                what: "its first access method cannot be measured through the generic function".into(),
                hint: "leave out --generic, or choose a target that is mapped or read by system calls".into(),
            })?;
        let (profile, read_to_clear) = (self.spec.profile.clone(), self.spec.read_to_clear.clone());
        Ok(Box::new(Generic { target: target.clone(), method, profile, read_to_clear, last: Vec::new() }))
    }

    /// Methods of the requested write, if the profile allows it.
    fn write_methods(
        &self,
        write: RegisterWrite,
        methods: &[Box<dyn Method>],
    ) -> Result<Vec<Box<dyn Method>>, RegisterError> {
        let width = self.spec.width;
        match &self.spec.profile {
            Some(profile) => profile.check_write(&self.spec.target, write.offset, width)?,
            None => {
                return Err(RegisterError::Unsafe {
                    target: self.spec.target.to_string(),
                    what: "writing needs a profile".into(),
                    hint: "list the register under `write` in a profile: --profile FILE".into(),
                });
            }
        }
        // One of the methods reads the register back.
        self.check_read(&Span { offset: write.offset, count: 1, width, is_fifo: true })?;
        super::set::write_methods(&self.spec.target, methods, write, width)
    }

    /// Pins the thread to the requested processor, to one near the device, or to the current one. For an
    /// IPbus board the thread stays unpinned, which is faster.
    fn pin_thread(&mut self) -> Result<(), RegisterError> {
        if let Some(cpu) = self.spec.cpu {
            keepup_sys::thread::pin_current(&[cpu])?;
            self.cpu = Some(cpu);
            return Ok(());
        }
        if matches!(self.spec.target, Target::Ipbus { .. } | Target::IpbusSelf) {
            return Ok(());
        }
        let near = super::device::processors_near(&self.spec.target, &self.root);
        let current = keepup_sys::thread::current_processor();
        // The affinity mask of this process may exclude some of them.
        self.cpu =
            near.into_iter().chain([current]).find(|cpu| keepup_sys::thread::pin_current(&[*cpu]).is_ok());
        Ok(())
    }

    /// Checks the identity register.
    fn check_identity(&mut self) -> Result<(), RegisterError> {
        let method = self.methods.iter_mut().map(|of| &mut of.method).find(|method| method.has_registers());
        match (self.spec.identity, method) {
            (Some(identity), Some(method)) => identity.check(&self.spec.target, method.as_mut()),
            _ => Ok(()),
        }
    }

    /// One trial of a point.
    fn trial(&mut self, method: usize, point: usize, clock: &dyn Clock) -> Result<(), RegisterError> {
        let span = self.span(self.methods[method].points[point].depth);
        let MeasuredMethod { method, points, .. } = &mut self.methods[method];
        let point = &mut points[point];
        let (cpu, begin_ns) = (ProcessCpu::now(), clock.now_ns());
        method.repeat(&span, point.repeats).map_err(|why| failed(&self.spec.target, method.as_ref(), why))?;
        let (passed_ns, spent_ns) = (clock.now_ns() - begin_ns, ProcessCpu::now().since_ns(cpu));
        let each = |ns: u64| ns as f64 / 1e9 / point.repeats as f64;
        point.seconds.push(each(passed_ns));
        point.cpu_seconds.push(each(spent_ns));
        Ok(())
    }

    /// Reads each span once as a warm-up, derives the number of transfers per trial from its duration, and
    /// skips depths that would take too long.
    fn warm_up(&mut self, clock: &dyn Clock) -> Result<(), RegisterError> {
        let most = self.spec.time.as_secs_f64() * POINT_TIME_SHARE / (TRIALS_MIN + 1) as f64;
        for method in 0..self.methods.len() {
            let mut slowest: Option<(u64, f64)> = None;
            let limit = self.methods[method].method.words_max(self.spec.width);
            // The time of a limited transfer is mostly set-up, so it grows with the number of transfers.
            let units = |depth: u64| limit.map_or(depth, |limit| depth.div_ceil(limit)) as f64;
            for point in 0..self.methods[method].points.len() {
                let depth = self.methods[method].points[point].depth;
                if slowest.is_some_and(|(of, seconds)| seconds * units(depth) / units(of) > most) {
                    let late = self.methods[method].points.split_off(point);
                    self.methods[method].skipped = late.iter().map(|point| point.depth).collect();
                    break;
                }
                let mut once = self.time_once(method, point, clock)?;
                let next = self.methods[method].points.get(point + 1).map_or(0.0, |next| units(next.depth));
                if once * next / units(depth) > most {
                    // Measure again: a stall of the machine must not exclude a depth.
                    once = once.min(self.time_once(method, point, clock)?);
                }
                let point = &mut self.methods[method].points[point];
                // The time of a short transfer is mostly set-up, which does not grow with the depth.
                slowest = (once > most / 100.0).then_some((depth, once));
                let fitting = (TRIAL_TIME_MAX.as_secs_f64() / once) as u64;
                point.repeats = TRIAL_WORDS_MIN.div_ceil(point.depth).min(fitting).max(1);
            }
        }
        Ok(())
    }

    /// Duration of one trial in seconds, which is not part of the result.
    fn time_once(&mut self, method: usize, point: usize, clock: &dyn Clock) -> Result<f64, RegisterError> {
        self.trial(method, point, clock)?;
        let point = &mut self.methods[method].points[point];
        point.cpu_seconds.clear();
        Ok(point.seconds.pop().unwrap_or_default().max(1e-9))
    }

    /// Times single reads individually.
    fn time_single_reads(&mut self, clock: &dyn Clock, stop: &AtomicBool) -> Result<(), RegisterError> {
        let span = self.span(1);
        for measured in &mut self.methods {
            let begin_ns = clock.now_ns();
            let mut before_ns = begin_ns;
            while measured.single_count < SINGLE_READS_MAX
                && before_ns - begin_ns < SINGLE_READS_TIME_MAX.as_nanos() as u64
                && !stop.load(Ordering::Relaxed)
            {
                let read = measured.method.read(&span);
                let now_ns = clock.now_ns();
                read.map_err(|why| failed(&self.spec.target, measured.method.as_ref(), why))?;
                measured.single.record_ns(now_ns - before_ns);
                measured.single_count += 1;
                before_ns = now_ns;
            }
        }
        Ok(())
    }

    /// Measures the cost of the clock, and that of the loop: loads of a register's width from memory.
    fn measure_overhead(&mut self, clock: &dyn Clock) -> Result<(), RegisterError> {
        let begin_ns = clock.now_ns();
        for _ in 0..CLOCK_CALLS {
            std::hint::black_box(clock.now_ns());
        }
        self.clock_ns = (clock.now_ns() - begin_ns) as f64 / f64::from(CLOCK_CALLS + 1);
        if self.spec.target == Target::Ram {
            return Ok(());
        }
        let mut memory = open(&Target::Ram, &self.root, None)?;
        let Some(method) = memory.iter_mut().find(|method| method.is_load_loop()) else { return Ok(()) };
        let span = Span { offset: 0, count: TRIAL_WORDS_MIN, width: self.spec.width, is_fifo: true };
        let mut trials = Vec::new();
        for _ in 0..30 {
            let begin_ns = clock.now_ns();
            method.read(&span).map_err(|why| failed(&Target::Ram, method.as_ref(), why))?;
            trials.push((clock.now_ns() - begin_ns) as f64 / 1e9 / TRIAL_WORDS_MIN as f64);
        }
        self.loop_seconds = median(&trials);
        Ok(())
    }

    fn measure(
        &mut self,
        clock: &dyn Clock,
        stop: &AtomicBool,
        note: &mut dyn FnMut(&str),
    ) -> Result<(), RegisterError> {
        self.measure_overhead(clock)?;
        self.warm_up(clock)?;
        let begin_ns = clock.now_ns();
        for round in 0..self.spec.trials as usize {
            let passed = Duration::from_nanos(clock.now_ns() - begin_ns);
            if round >= TRIALS_MIN && passed > self.spec.time {
                note(&format!("time limit reached after {round} trials of each point"));
                break;
            }
            for method in 0..self.methods.len() {
                for point in 0..self.methods[method].points.len() {
                    if stop.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    self.trial(method, point, clock)?;
                }
            }
        }
        self.time_single_reads(clock, stop)?;
        self.detect_all_ones()?;
        self.check_identity()
    }

    /// Detects that everything at the greatest depth reads as ones, which a bus returns if no device answers.
    fn detect_all_ones(&mut self) -> Result<(), RegisterError> {
        let ones = self.spec.width.all_ones();
        let first = self.span(1);
        let mut values = Vec::new();
        for MeasuredMethod { method, points, .. } in &mut self.methods {
            let depth = points.iter().map(|point| point.depth).max().unwrap_or(1);
            let span = Span { count: depth, ..first };
            method
                .values(&span, &mut values)
                .map_err(|why| failed(&self.spec.target, method.as_ref(), why))?;
            self.all_ones |= values.iter().all(|value| *value == ones);
        }
        Ok(())
    }

    /// Opens the target, checks its identity, and selects the depths of each method.
    fn prepare(&mut self) -> Result<(), RegisterError> {
        self.pin_thread()?;
        let methods = self.open()?;
        for method in methods {
            let depths = self.depths(method.bytes())?;
            if method.has_registers() {
                depths.iter().try_for_each(|depth| self.check_read(&self.span(*depth)))?;
            }
            let point = |depth| Point { depth, repeats: 1, seconds: Vec::new(), cpu_seconds: Vec::new() };
            let points = depths.into_iter().map(point).collect();
            let (skipped, single) = (Vec::new(), Latency::new());
            self.methods.push(MeasuredMethod { method, points, skipped, single, single_count: 0 });
        }
        if let Some(identity) = self.spec.identity {
            self.check_read(&identity.span())?;
        }
        self.device = Some(super::device::inspect(&self.spec.target, &self.root));
        self.check_identity()?;
        // Preparation may write to the device, so it follows the check of its identity.
        for MeasuredMethod { method, .. } in &mut self.methods {
            method.prepare().map_err(|why| failed(&self.spec.target, method.as_ref(), why))?;
        }
        Ok(())
    }

    /// The results so far.
    fn into_run(self) -> RegisterRun {
        let bytes = self.spec.width.bytes();
        let loop_seconds = self.loop_seconds;
        let methods =
            self.methods.into_iter().map(|measured| method_result(measured, loop_seconds, self.spec.width));
        RegisterRun {
            target: self.spec.target.to_string(),
            width_bits: bytes as u32 * 8,
            offset: self.spec.offset,
            is_fifo: self.spec.is_fifo,
            device: self.device.unwrap_or_default(),
            cpu: self.cpu,
            clock_ns: self.clock_ns,
            loop_seconds_per_register: loop_seconds,
            all_ones: self.all_ones,
            methods: methods.collect(),
        }
    }
}

fn failed(target: &Target, method: &dyn Method, source: std::io::Error) -> RegisterError {
    RegisterError::Access { target: target.to_string(), method: method.name().into(), source }
}

/// The result of a method. The overhead of the loop is subtracted from loops of loads, unless the loads are
/// about as fast as those from memory: then little but noise would remain.
fn method_result(measured: MeasuredMethod, loop_seconds: Option<f64>, width: Width) -> RegisterMethod {
    let each = |point: &Point| median(&point.seconds).map(|seconds| seconds / point.depth as f64);
    let least = measured.points.iter().filter_map(each).reduce(f64::min).unwrap_or(0.0);
    let is_loop = measured.method.is_load_loop();
    let overhead = loop_seconds.filter(|overhead| is_loop && *overhead <= LOOP_SHARE_MAX * least);
    let loop_taken_off = overhead.is_some();
    let overhead = overhead.unwrap_or(0.0);
    let points = measured.points.into_iter().filter(|point| !point.seconds.is_empty()).map(|point| {
        let less = |seconds: f64| (seconds - overhead * point.depth as f64).max(0.0);
        RegisterPoint {
            depth: point.depth,
            transfers_per_trial: point.repeats,
            seconds: point.seconds.iter().copied().map(less).collect(),
            cpu_seconds: point.cpu_seconds,
        }
    });
    RegisterMethod {
        name: measured.method.name().into(),
        words_max: measured.method.words_max(width),
        writes: measured.method.is_write(),
        points: points.collect(),
        left_out: measured.skipped,
        loop_taken_off,
        single: (measured.single_count > 0).then(|| LatencyFigures::from(&measured.single)),
    }
}

#[cfg(test)]
#[path = "test_tests.rs"]
mod tests;

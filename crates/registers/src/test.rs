//! Reads a target by all its ways at all depths, in turns.
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
use super::method::{Method, Store, named, open};
use super::profile::{Identity, TargetProfile};
use super::target::Target;

/// Registers read in a trial at least, so that the clock does not count.
const TRIAL_WORDS_MIN: u64 = 1000;
/// A trial of a slow way is cut down to about this time, but to one transfer at least.
const TRIAL_TIME_MAX: Duration = Duration::from_millis(20);
/// A depth whose least trials would take more than this part of the time is left out.
const POINT_TIME_SHARE: f64 = 0.25;
/// Trials of a point, once the time is over.
const TRIALS_MIN: usize = 5;
/// Single reads that are timed one by one, and how long they may take.
const SHOTS_MAX: u32 = 10_000;
const SHOTS_TIME_MAX: Duration = Duration::from_millis(500);
/// Calls of the clock that its cost is taken from.
const CLOCK_CALLS: u32 = 1000;
/// The loop's own cost is taken off only where it is at most this part of the whole.
const LOOP_SHARE_MAX: f64 = 0.2;
/// Longest depth, in registers.
pub(super) const DEPTH_MAX: u64 = 1 << 24;

/// What is read, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct RegisterSpec {
    /// Of what.
    pub target: Target,
    /// Ways, by name; all that the target has when empty.
    pub methods: Vec<String>,
    /// Numbers of registers read at a time.
    pub depths: Vec<u64>,
    /// Whether depths beyond the target are left out instead of refused.
    pub clip: bool,
    /// Of a register.
    pub width: Width,
    /// Where the first register is, bytes.
    pub offset: u64,
    /// The same register again and again.
    pub is_fifo: bool,
    /// Trials of each way at each depth.
    pub trials: u32,
    /// No further round is begun after this time, but of five.
    pub time: Duration,
    /// A register that must read the same before and after.
    pub identity: Option<Identity>,
    /// Processor that the calling thread is bound to; without, one beside the device, or where it is.
    pub cpu: Option<usize>,
    /// What is known of the device.
    pub profile: Option<TargetProfile>,
    /// Places of registers that reading changes, and that are read all the same.
    pub read_to_clear: Vec<u64>,
    /// A register of the width that the profile lets be written, and what is written to it: what that costs
    /// is measured, too. It keeps the value.
    pub store: Option<Store>,
}

/// One way at one depth.
struct Point {
    depth: u64,
    /// Transfers of a trial.
    repeats: u64,
    /// Of each trial, for one transfer, s.
    seconds: Vec<f64>,
    cpu_seconds: Vec<f64>,
}

/// A way with what was measured of it.
struct Measured {
    way: Box<dyn Method>,
    points: Vec<Point>,
    left_out: Vec<u64>,
    shots: Latency,
    shots_made: u32,
}

/// Reads registers, in turns by every way.
pub struct RegisterTest {
    spec: RegisterSpec,
    root: std::path::PathBuf,
    device: Option<RegisterDevice>,
    cpu: Option<usize>,
    ways: Vec<Measured>,
    /// The same loop over memory: s for a register.
    loop_seconds: Option<f64>,
    clock_ns: f64,
    all_ones: bool,
}

impl RegisterTest {
    /// A test of `spec`; `root` is `/` in earnest.
    pub fn new(spec: RegisterSpec, root: &Path) -> Self {
        Self {
            spec,
            root: root.into(),
            device: None,
            cpu: None,
            ways: Vec::new(),
            loop_seconds: None,
            clock_ns: 0.0,
            all_ones: false,
        }
    }

    /// Reads the target in turns by all ways, until done or until `stop` is raised. `note` gets messages for
    /// the user. A failure after the first trial comes with what was measured before it.
    ///
    /// # Errors
    /// When nothing could be measured: no such target, way or depth, or another device than expected.
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

    /// The depths that the target has.
    fn depths(&self, bytes: u64) -> Result<Vec<u64>, RegisterError> {
        let target = self.spec.target.to_string();
        let hint = format!("it has {bytes} bytes; --depth, --offset and --width within them");
        let (mut depths, mut beyond) = (Vec::new(), None);
        for &depth in &self.spec.depths {
            let checked = match depth > DEPTH_MAX {
                true => Err(format!("{depth} registers at a time: more than {DEPTH_MAX}")),
                false => self.span(depth).check(bytes),
            };
            match checked {
                Ok(()) => depths.push(depth),
                Err(what) if self.spec.clip => beyond = beyond.or(Some(what)),
                Err(what) => return Err(RegisterError::Span { target, what, hint }),
            }
        }
        if depths.is_empty() {
            let what = beyond.unwrap_or_else(|| "none of the depths lies within it".into());
            return Err(RegisterError::Span { target, what, hint });
        }
        depths.sort_unstable();
        depths.dedup();
        Ok(depths)
    }

    /// Refuses reads that would change a register which the profile names and the user does not.
    fn spare(&self, span: &Span) -> Result<(), RegisterError> {
        match &self.spec.profile {
            Some(profile) => profile.spare(&self.spec.target, span, &self.spec.read_to_clear),
            None => Ok(()),
        }
    }

    /// Opens the ways that are asked for.
    fn open(&self) -> Result<Vec<Box<dyn Method>>, RegisterError> {
        let ways = open(&self.spec.target, &self.root, self.spec.profile.as_ref())?;
        let names: Vec<&str> = self.spec.methods.iter().map(String::as_str).collect();
        let mut ways = named(&self.spec.target, ways, &names)?;
        let writing = self.spec.store.map(|store| self.writing(store, &ways)).transpose()?;
        ways.extend(writing.into_iter().flatten());
        Ok(ways)
    }

    /// Ways of writing what is to be written, if the profile lets it be.
    fn writing(&self, store: Store, ways: &[Box<dyn Method>]) -> Result<Vec<Box<dyn Method>>, RegisterError> {
        let width = self.spec.width;
        match &self.spec.profile {
            Some(profile) => profile.allow(&self.spec.target, store.offset, width)?,
            None => {
                return Err(RegisterError::Unsafe {
                    target: self.spec.target.to_string(),
                    what: "without a profile nothing is written".into(),
                    hint: "--profile FILE, whose list `write` names what may be".into(),
                });
            }
        }
        // Each is read back.
        self.spare(&Span { offset: store.offset, count: 1, width, is_fifo: true })?;
        super::set::writing(&self.spec.target, ways, store, width)
    }

    /// Binds the thread to the processor that is asked for, or to one beside the device, or to where it is. A
    /// board behind a network is better served by a thread that may move.
    fn settle(&mut self) -> Result<(), RegisterError> {
        if let Some(cpu) = self.spec.cpu {
            keepup_sys::thread::pin_current(&[cpu])?;
            self.cpu = Some(cpu);
            return Ok(());
        }
        if matches!(self.spec.target, Target::Ipbus { .. } | Target::IpbusSelf) {
            return Ok(());
        }
        let beside = super::device::processors_beside(&self.spec.target, &self.root);
        let here = keepup_sys::thread::current_processor();
        // Not all of them may be allowed to this process.
        self.cpu =
            beside.into_iter().chain([here]).find(|cpu| keepup_sys::thread::pin_current(&[*cpu]).is_ok());
        Ok(())
    }

    /// Whether who answers is who should.
    fn identify(&mut self) -> Result<(), RegisterError> {
        let way = self.ways.iter_mut().map(|of| &mut of.way).find(|way| way.has_registers());
        match (self.spec.identity, way) {
            (Some(identity), Some(way)) => identity.confirm(&self.spec.target, way.as_mut()),
            _ => Ok(()),
        }
    }

    /// One trial of a point.
    fn trial(&mut self, way: usize, point: usize, clock: &dyn Clock) -> Result<(), RegisterError> {
        let span = self.span(self.ways[way].points[point].depth);
        let Measured { way, points, .. } = &mut self.ways[way];
        let point = &mut points[point];
        let (cpu, begin_ns) = (ProcessCpu::now(), clock.now_ns());
        way.repeat(&span, point.repeats).map_err(|why| failed(&self.spec.target, way.as_ref(), why))?;
        let (passed_ns, spent_ns) = (clock.now_ns() - begin_ns, ProcessCpu::now().since_ns(cpu));
        let each = |ns: u64| ns as f64 / 1e9 / point.repeats as f64;
        point.seconds.push(each(passed_ns));
        point.cpu_seconds.push(each(spent_ns));
        Ok(())
    }

    /// Reads each span once, which brings everything into place, and fits the trials to how long it takes;
    /// leaves out depths that would take too long.
    fn warm_up(&mut self, clock: &dyn Clock) -> Result<(), RegisterError> {
        let most = self.spec.time.as_secs_f64() * POINT_TIME_SHARE / (TRIALS_MIN + 1) as f64;
        for way in 0..self.ways.len() {
            let mut slowest: Option<(u64, f64)> = None;
            let limit = self.ways[way].way.words_max(self.spec.width);
            // What a transfer with a limit takes is set-up before all.
            let units = |depth: u64| limit.map_or(depth, |limit| depth.div_ceil(limit)) as f64;
            for point in 0..self.ways[way].points.len() {
                let depth = self.ways[way].points[point].depth;
                if slowest.is_some_and(|(of, seconds)| seconds * units(depth) / units(of) > most) {
                    let late = self.ways[way].points.split_off(point);
                    self.ways[way].left_out = late.iter().map(|point| point.depth).collect();
                    break;
                }
                let mut once = self.once(way, point, clock)?;
                let next = self.ways[way].points.get(point + 1).map_or(0.0, |next| units(next.depth));
                if once * next / units(depth) > most {
                    // No depth is left out because the machine stood still for a moment.
                    once = once.min(self.once(way, point, clock)?);
                }
                let point = &mut self.ways[way].points[point];
                // Of a short transfer most is set-up, which does not grow with the depth.
                slowest = (once > most / 100.0).then_some((depth, once));
                let fitting = (TRIAL_TIME_MAX.as_secs_f64() / once) as u64;
                point.repeats = TRIAL_WORDS_MIN.div_ceil(point.depth).min(fitting).max(1);
            }
        }
        Ok(())
    }

    /// What one call takes, in seconds; it does not count.
    fn once(&mut self, way: usize, point: usize, clock: &dyn Clock) -> Result<f64, RegisterError> {
        self.trial(way, point, clock)?;
        let point = &mut self.ways[way].points[point];
        point.cpu_seconds.clear();
        Ok(point.seconds.pop().unwrap_or_default().max(1e-9))
    }

    /// Times single reads one by one.
    fn shoot(&mut self, clock: &dyn Clock, stop: &AtomicBool) -> Result<(), RegisterError> {
        let span = self.span(1);
        for measured in &mut self.ways {
            let begin_ns = clock.now_ns();
            let mut before_ns = begin_ns;
            while measured.shots_made < SHOTS_MAX
                && before_ns - begin_ns < SHOTS_TIME_MAX.as_nanos() as u64
                && !stop.load(Ordering::Relaxed)
            {
                let read = measured.way.read(&span);
                let now_ns = clock.now_ns();
                read.map_err(|why| failed(&self.spec.target, measured.way.as_ref(), why))?;
                measured.shots.record_ns(now_ns - before_ns);
                measured.shots_made += 1;
                before_ns = now_ns;
            }
        }
        Ok(())
    }

    /// What a call of the clock costs, and a load of a register's width from memory in the same loop.
    fn controls(&mut self, clock: &dyn Clock) -> Result<(), RegisterError> {
        let begin_ns = clock.now_ns();
        for _ in 0..CLOCK_CALLS {
            std::hint::black_box(clock.now_ns());
        }
        self.clock_ns = (clock.now_ns() - begin_ns) as f64 / f64::from(CLOCK_CALLS + 1);
        if self.spec.target == Target::Ram {
            return Ok(());
        }
        let mut memory = open(&Target::Ram, &self.root, None)?;
        let Some(way) = memory.iter_mut().find(|way| way.is_load_loop()) else { return Ok(()) };
        let span = Span { offset: 0, count: TRIAL_WORDS_MIN, width: self.spec.width, is_fifo: true };
        let mut trials = Vec::new();
        for _ in 0..30 {
            let begin_ns = clock.now_ns();
            way.read(&span).map_err(|why| failed(&Target::Ram, way.as_ref(), why))?;
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
        self.controls(clock)?;
        self.warm_up(clock)?;
        let begin_ns = clock.now_ns();
        for round in 0..self.spec.trials as usize {
            let passed = Duration::from_nanos(clock.now_ns() - begin_ns);
            if round >= TRIALS_MIN && passed > self.spec.time {
                note(&format!("the time is over after {round} trials of each"));
                break;
            }
            for way in 0..self.ways.len() {
                for point in 0..self.ways[way].points.len() {
                    if stop.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    self.trial(way, point, clock)?;
                }
            }
        }
        self.shoot(clock, stop)?;
        self.look_for_ones()?;
        self.identify()
    }

    /// Whether everything that is read at the longest depth is ones, as when nobody answers.
    fn look_for_ones(&mut self) -> Result<(), RegisterError> {
        let ones = self.spec.width.all_ones();
        let first = self.span(1);
        let mut values = Vec::new();
        for Measured { way, points, .. } in &mut self.ways {
            let depth = points.iter().map(|point| point.depth).max().unwrap_or(1);
            let span = Span { count: depth, ..first };
            way.values(&span, &mut values).map_err(|why| failed(&self.spec.target, way.as_ref(), why))?;
            self.all_ones |= values.iter().all(|value| *value == ones);
        }
        Ok(())
    }

    /// Opens the target, checks who answers, and sorts out what is read at which depths.
    fn prepare(&mut self) -> Result<(), RegisterError> {
        self.settle()?;
        let ways = self.open()?;
        for way in ways {
            let depths = self.depths(way.bytes())?;
            if way.has_registers() {
                depths.iter().try_for_each(|depth| self.spare(&self.span(*depth)))?;
            }
            let point = |depth| Point { depth, repeats: 1, seconds: Vec::new(), cpu_seconds: Vec::new() };
            let points = depths.into_iter().map(point).collect();
            let left_out = Vec::new();
            self.ways.push(Measured { way, points, left_out, shots: Latency::new(), shots_made: 0 });
        }
        if let Some(identity) = self.spec.identity {
            self.spare(&identity.span())?;
        }
        self.device = Some(super::device::look(&self.spec.target, &self.root));
        self.identify()?;
        // What it takes may write: only to who is meant.
        for Measured { way, .. } in &mut self.ways {
            way.prepare().map_err(|why| failed(&self.spec.target, way.as_ref(), why))?;
        }
        Ok(())
    }

    /// What was measured so far.
    fn into_run(self) -> RegisterRun {
        let bytes = self.spec.width.bytes();
        let loop_seconds = self.loop_seconds;
        let methods = self.ways.into_iter().map(|of| method(of, loop_seconds, self.spec.width));
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

fn failed(target: &Target, way: &dyn Method, source: std::io::Error) -> RegisterError {
    RegisterError::Access { target: target.to_string(), method: way.name().into(), source }
}

/// What a result says of a way; the loop's own cost is taken off what is a loop of loads, unless the loads
/// are about as fast as memory's, of which next to nothing would be left.
fn method(of: Measured, loop_seconds: Option<f64>, width: Width) -> RegisterMethod {
    let each = |point: &Point| median(&point.seconds).map(|seconds| seconds / point.depth as f64);
    let least = of.points.iter().filter_map(each).reduce(f64::min).unwrap_or(0.0);
    let own = loop_seconds.filter(|own| of.way.is_load_loop() && *own <= LOOP_SHARE_MAX * least);
    let taken_off = own.is_some();
    let own = own.unwrap_or(0.0);
    let points = of.points.into_iter().filter(|point| !point.seconds.is_empty()).map(|point| {
        let less = |seconds: f64| (seconds - own * point.depth as f64).max(0.0);
        RegisterPoint {
            depth: point.depth,
            transfers_per_trial: point.repeats,
            seconds: point.seconds.iter().copied().map(less).collect(),
            cpu_seconds: point.cpu_seconds,
        }
    });
    RegisterMethod {
        name: of.way.name().into(),
        words_max: of.way.words_max(width),
        writes: of.way.is_write(),
        points: points.collect(),
        left_out: of.left_out,
        loop_taken_off: taken_off,
        single: (of.shots_made > 0).then(|| LatencyFigures::from(&of.shots)),
    }
}

#[cfg(test)]
#[path = "test_tests.rs"]
mod tests;

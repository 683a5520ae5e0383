//! Analysis of the trials: cost of a transfer and of a register, and break-even depths between methods.
use keepup_measure::stats::{BreakEven, Cost, Timed, break_even, fit_cost, knee};
use keepup_results::{
    RegisterBreakEven, RegisterCost, RegisterFit, RegisterKnee, RegisterMethod, RegisterRun, RegisterVerdict,
};

/// Bootstrap resamples for a confidence interval, and the seed that makes it reproducible.
const RESAMPLES: u32 = 2000;
const SEED: u64 = 1;

/// Elapsed or CPU times of a method's trials.
fn timed(method: &RegisterMethod, is_cpu: bool) -> Vec<Timed> {
    let point = method.points.iter().map(|point| Timed {
        words: point.depth,
        seconds: if is_cpu { point.cpu_seconds.clone() } else { point.seconds.clone() },
    });
    point.collect()
}

fn cost(fit: Cost, width_bits: u32) -> RegisterCost {
    RegisterCost {
        set_up_seconds: fit.set_up,
        each_seconds: fit.each,
        half_rate_registers: fit.half_rate_words(),
        bytes_per_second: fit.words_per_second().map(|words| words * f64::from(width_bits / 8)),
    }
}

/// Cost of a transfer and of a register for each method of a run.
pub fn fits(run: &RegisterRun) -> Vec<RegisterFit> {
    let one = |method: &RegisterMethod| {
        let (elapsed, cpu) = (timed(method, false), timed(method, true));
        let line = fit_cost(&elapsed, method.words_max);
        let knee = line.as_ref().and_then(|line| knee(&elapsed, line));
        RegisterFit {
            method: method.name.clone(),
            elapsed: line.map(|line| cost(line, run.width_bits)),
            cpu: fit_cost(&cpu, method.words_max).map(|line| cost(line, run.width_bits)),
            knee: knee.map(|(depth, off)| RegisterKnee { depth, off }),
        }
    };
    run.methods.iter().map(one).collect()
}

/// Break-even depth of each pair of methods. The simple method of a pair is the one without a transfer
/// limit; if both or neither have one, it is the one with the greater cost per register.
pub fn break_evens(run: &RegisterRun) -> Vec<RegisterBreakEven> {
    let each = |method: &RegisterMethod| {
        let longest = method.points.last()?;
        let seconds = keepup_measure::stats::median(&longest.seconds)?;
        Some(seconds / longest.depth as f64)
    };
    let mut pairs = Vec::new();
    let reading: Vec<&RegisterMethod> = run.methods.iter().filter(|method| !method.writes).collect();
    for (index, &one) in reading.iter().enumerate() {
        for &other in &reading[index + 1..] {
            let Some((first, second)) = each(one).zip(each(other)) else { continue };
            let is_simple = match (one.words_max, other.words_max) {
                (None, Some(_)) => true,
                (Some(_), None) => false,
                _ => first >= second,
            };
            let (simple, method) = if is_simple { (one, other) } else { (other, one) };
            pairs.push(RegisterBreakEven {
                simple: simple.name.clone(),
                way: method.name.clone(),
                elapsed: verdict(simple, method, false),
                cpu: verdict(simple, method, true),
            });
        }
    }
    pairs
}

fn verdict(simple: &RegisterMethod, method: &RegisterMethod, is_cpu: bool) -> RegisterVerdict {
    let ends = |method: &RegisterMethod| {
        method.points.first().zip(method.points.last()).map(|(first, last)| (first.depth, last.depth))
    };
    let Some((one, other)) = ends(simple).zip(ends(method)) else { return RegisterVerdict::NotResolved };
    let tried = (one.0.max(other.0), one.1.min(other.1));
    let (of_simple, of_method) = (timed(simple, is_cpu), timed(method, is_cpu));
    let answer =
        break_even((&of_simple, simple.words_max), (&of_method, method.words_max), tried, RESAMPLES, SEED);
    match answer {
        Some(BreakEven::Always) => RegisterVerdict::Always,
        Some(BreakEven::Never) => RegisterVerdict::Never,
        Some(BreakEven::From { words }) => {
            RegisterVerdict::From { registers: words.value, lower: words.lower, upper: words.upper }
        }
        Some(BreakEven::UpTo { words }) => {
            RegisterVerdict::UpTo { registers: words.value, lower: words.lower, upper: words.upper }
        }
        Some(BreakEven::NotResolved) | None => RegisterVerdict::NotResolved,
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;

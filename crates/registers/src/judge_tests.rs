//! Fitted costs and break-evens of methods with known costs.
use keepup_results::{RegisterDevice, RegisterPoint};

use super::*;

fn method(name: &str, set_up: f64, each: f64, cpu_share: f64) -> RegisterMethod {
    let mut random = fastrand::Rng::with_seed(name.len() as u64);
    let mut point = |depth: u64| {
        let mut trials = |scale: f64| {
            let time = (set_up + depth as f64 * each) * scale;
            (0..30).map(|_| time * (0.99 + 0.02 * random.f64())).collect::<Vec<_>>()
        };
        let (seconds, cpu_seconds) = (trials(1.0), trials(cpu_share));
        RegisterPoint { depth, transfers_per_trial: 1, seconds, cpu_seconds }
    };
    let points = [1, 16, 256, 4096, 65_536].into_iter().map(&mut point).collect();
    RegisterMethod {
        name: name.into(),
        writes: false,
        words_max: None,
        points,
        left_out: Vec::new(),
        loop_taken_off: false,
        single: None,
    }
}

fn run(methods: Vec<RegisterMethod>) -> RegisterRun {
    RegisterRun {
        target: "ram".into(),
        width_bits: 32,
        offset: 0,
        is_fifo: false,
        device: RegisterDevice::default(),
        cpu: None,
        clock_ns: 20.0,
        loop_seconds_per_register: None,
        all_ones: false,
        methods,
    }
}

#[test]
fn time_and_cpu_have_separate_break_evens() {
    // DMA that waits for an interrupt: expensive set-up, and almost no CPU time.
    let run = run(vec![method("dma", 30e-6, 4e-9, 0.01), method("loads", 0.1e-6, 1e-6, 1.0)]);
    let fits = fits(&run);
    let dma = fits[0].elapsed.unwrap();
    assert!((dma.set_up_seconds / 30e-6 - 1.0).abs() < 0.02, "{dma:?}");
    assert!((dma.bytes_per_second.unwrap() / 1e9 - 1.0).abs() < 0.1, "{dma:?}");
    assert!((dma.half_rate_registers.unwrap() / 7500.0 - 1.0).abs() < 0.1, "{dma:?}");
    assert_eq!(fits[1].knee, None);
    let pairs = break_evens(&run);
    assert_eq!((pairs.len(), pairs[0].simple.as_str(), pairs[0].way.as_str()), (1, "loads", "dma"));
    let RegisterVerdict::From { registers, lower, upper } = pairs[0].elapsed else { panic!("{pairs:?}") };
    assert!(lower <= 30.0 && upper >= 29.5 && (registers / 30.0 - 1.0).abs() < 0.1, "{pairs:?}");
    // Cheaper from less than one register.
    assert_eq!(pairs[0].cpu, RegisterVerdict::Always);
}

#[test]
fn a_single_depth_has_no_fit() {
    let mut run_of = method("loads", 0.1e-6, 1e-6, 1.0);
    run_of.points.truncate(1);
    let run = run(vec![run_of.clone(), RegisterMethod { name: "other".into(), ..run_of }]);
    assert!(fits(&run).iter().all(|fit| fit.elapsed.is_none() && fit.knee.is_none()));
    assert_eq!(break_evens(&run)[0].elapsed, RegisterVerdict::NotResolved);
}

#[test]
fn a_limited_transfer_with_expensive_set_up_never_pays_off() {
    // QEMU's edu: 100 ms for at most 1023 registers, or 98 us each, compared with loads of 0.1 us.
    let cut = |method: RegisterMethod, words_max| RegisterMethod {
        points: method.points.into_iter().take(3).collect(),
        words_max,
        ..method
    };
    let run = run(vec![
        cut(method("dma", 0.1, 0.0, 1.0), Some(1023)),
        cut(method("loads", 0.0, 0.1e-6, 1.0), None),
    ]);
    let pairs = break_evens(&run);
    assert_eq!((pairs.len(), pairs[0].simple.as_str(), pairs[0].way.as_str()), (1, "loads", "dma"));
    assert_eq!((pairs[0].elapsed, pairs[0].cpu), (RegisterVerdict::Never, RegisterVerdict::Never));
}

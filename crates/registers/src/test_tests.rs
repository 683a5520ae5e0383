//! Complete tests of memory, and of files in place of a device.
use keepup_error::Cause;
use keepup_measure::clock::SystemClock;

use super::*;

fn spec(target: &str) -> RegisterSpec {
    RegisterSpec {
        generic: false,
        target: target.parse().unwrap(),
        methods: Vec::new(),
        depths: vec![1, 16, 256, 4096],
        clip: false,
        width: Width::Bits32,
        offset: 0,
        is_fifo: false,
        trials: 5,
        time: Duration::from_secs(1),
        identity: None,
        cpu: None,
        profile: None,
        read_to_clear: Vec::new(),
        write: None,
    }
}

fn measure(spec: RegisterSpec, root: &Path) -> Result<(RegisterRun, Option<RegisterError>), RegisterError> {
    RegisterTest::new(spec, root).run(&SystemClock, &AtomicBool::new(false), &mut |_| {})
}

fn device(enable: &str, first: u32) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let function = root.path().join("sys/bus/pci/devices/0000:00:04.0");
    std::fs::create_dir_all(&function).unwrap();
    let mut registers = vec![0xff; 1 << 16];
    registers[..4].copy_from_slice(&first.to_le_bytes());
    std::fs::write(function.join("resource0"), registers).unwrap();
    for (name, text) in [("enable", enable), ("vendor", "0x1234\n"), ("device", "0x11e8\n")] {
        std::fs::write(function.join(name), text).unwrap();
    }
    root
}

#[test]
fn memory_is_read_by_all_methods_at_all_depths() {
    let (found, failure) = measure(spec("ram:"), Path::new("/")).unwrap();
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(
        found.methods.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(),
        ["mmap", "pread", "transfer"]
    );
    for method in &found.methods {
        assert_eq!(method.points.iter().map(|p| p.depth).collect::<Vec<_>>(), [1, 16, 256, 4096]);
        for point in &method.points {
            assert_eq!((point.seconds.len(), point.cpu_seconds.len()), (5, 5));
            assert!(point.seconds.iter().all(|s| *s > 0.0) && point.transfers_per_trial > 0, "{point:?}");
        }
        assert!(method.single.unwrap().p50_ns > 0);
    }
    // One call per register costs more than one load per register, and more than one call for all.
    let at = |method: usize| median(&found.methods[method].points[3].seconds).unwrap();
    assert!(at(1) > 3.0 * at(0) && at(1) > 3.0 * at(2), "{found:?}");
    assert!(!found.all_ones && found.loop_seconds_per_register.is_none() && found.clock_ns > 0.0);
}

#[test]
fn the_identity_of_the_device_is_checked() {
    let target = "pci:0000:00:04.0/bar0";
    let root = device("1\n", 0x0100_00ed);
    let named = RegisterSpec {
        identity: Some(Identity { offset: 0, value: 0x0100_00ed, width: 32 }),
        ..spec(target)
    };
    let (found, failure) = measure(named.clone(), root.path()).unwrap();
    assert!(failure.is_none() && found.loop_seconds_per_register.is_some());
    assert_eq!((found.device.id.as_deref(), found.device.driver), (Some("1234:11e8"), None));
    let other =
        RegisterSpec { identity: Some(Identity { offset: 0, value: 0x1_00ed, width: 32 }), ..named.clone() };
    let why = Cause::of(&measure(other, root.path()).unwrap_err()).to_text();
    assert!(why.contains("reads 0x10000ed instead of 0x100ed") && why.contains("another device"), "{why}");
    let gone = RegisterSpec { identity: Some(Identity { offset: 4, value: 1, width: 32 }), ..named };
    let why = Cause::of(&measure(gone, root.path()).unwrap_err()).to_text();
    assert!(why.contains("0xffffffff instead of 0x1") && why.contains("does not respond"), "{why}");
    let silent = RegisterSpec { offset: 4, ..spec(target) };
    assert!(measure(silent, root.path()).unwrap().0.all_ones);
}

#[test]
fn depths_beyond_the_target_are_refused_or_skipped() {
    let root = device("1\n", 1);
    let target = "pci:0000:00:04.0/bar0";
    for (wrong, words) in [
        (RegisterSpec { depths: vec![1, 0x10000], ..spec(target) }, "beyond its 65536 bytes"),
        (RegisterSpec { offset: 2, ..spec(target) }, "multiple of 4"),
        (RegisterSpec { methods: vec!["dma".into()], ..spec(target) }, "--method mmap"),
        (RegisterSpec { depths: vec![], ..spec(target) }, "none of the depths"),
    ] {
        let why = Cause::of(&measure(wrong, root.path()).unwrap_err()).to_text();
        assert!(why.contains(words) && why.contains("hint:") && why.contains(target), "{why}");
    }
    let clipped = RegisterSpec { depths: vec![1, 0x10000], clip: true, ..spec(target) };
    assert_eq!(measure(clipped, root.path()).unwrap().0.methods[0].points.len(), 1);
}

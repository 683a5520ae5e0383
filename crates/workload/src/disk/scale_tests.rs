//! Steps, scaling gains and CPU cost per volume.

use super::*;
use crate::disk::OnVolumes;
use crate::file_io::mode::Access;
use crate::run;
use crate::testing::context;

fn phase(rate: f64, cpu: f64) -> DiskPhase {
    DiskPhase {
        name: String::new(),
        files: 1,
        bytes: (rate * 10.0) as u64,
        operations: None,
        seconds: 10.0,
        cpu_seconds: cpu * 10.0,
        machine_cpu_seconds: None,
        steal_seconds: None,
        interrupts: None,
        storage_interrupts: None,
        latency: None,
        begin_seconds: 0.0,
        load_rates: Vec::new(),
        parts: Vec::new(),
    }
}

#[test]
fn the_knee_is_where_a_volume_more_adds_less_than_half() {
    let all = [phase(100e6, 0.1), phase(200e6, 0.2), phase(290e6, 0.3), phase(300e6, 0.9)];
    let found = finding(&all).unwrap();
    assert_eq!((found.knee_volumes, found.knee_is_beyond), (3, false));
    assert!((found.cpu_per_volume.unwrap() - 0.1).abs() < 1e-9, "the flat part says nothing of the cost");
    let listed: Vec<i64> = found.gains.iter().map(|gain| (gain * 100.0).round() as i64).collect();
    assert_eq!(listed, [100, 90, 10]);
    let found = finding(&all[..3]).unwrap();
    assert_eq!((found.knee_volumes, found.knee_is_beyond), (3, true));
    let one = finding(&all[..1]).unwrap();
    assert_eq!((one.knee_volumes, one.cpu_per_volume, one.gains.len()), (1, None, 0));
    assert!(finding(&[phase(0.0, 0.1)]).is_none() && finding(&[]).is_none());
}

#[test]
fn steps_name_their_volumes() {
    let steps = Step::up_to(3);
    assert_eq!((steps[0].name.as_str(), steps[2].name.as_str()), ("1 volume", "3 volumes"));
    assert_eq!(steps[2].volumes, [0, 1, 2]);
    let groups: Vec<_> = Step::groups(&[2, 1]).into_iter().map(|step| (step.name, step.volumes)).collect();
    let expected = [("group 1", vec![0, 1]), ("group 2", vec![2]), ("2 groups", vec![0, 1, 2])];
    assert_eq!(groups, expected.map(|(name, volumes)| (name.to_owned(), volumes)));
}

#[test]
fn every_volume_takes_part_and_nothing_is_left() {
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let volumes: Vec<_> = places.iter().map(|place| place.path().to_owned()).collect();
    for (kind, space) in [
        (IoDirection::Write, Space::New),
        (IoDirection::Write, Space::Overwritten),
        (IoDirection::Read, Space::New),
    ] {
        let scale = Scale {
            steps: Step::up_to(2),
            kind,
            point: Point { bytes: 256 << 10, depth: 2 },
            file_bytes: 8 << 20,
            ramp: Duration::from_millis(10),
            run: Duration::from_millis(120),
            mode: Mode { access: Access::Buffered, space, ..Mode::default() },
        };
        let mut test = OnVolumes::new(scale, volumes.clone(), "scratch".into());
        let found = run(&mut test, &mut context()).unwrap();
        let parts: Vec<Vec<&str>> = found
            .phases
            .iter()
            .map(|phase| phase.parts.iter().map(|part| part.volume.as_str()).collect())
            .collect();
        let names: Vec<_> = volumes.iter().map(|volume| volume.to_str().unwrap()).collect();
        assert_eq!(parts, [names[..1].to_vec(), names.clone()]);
        assert!(found.phases.iter().any(|phase| phase.bytes > 0));
        assert!(matches!(found.finding, Some(DiskFinding::Scale(_))));
        for place in &places {
            assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "its files are gone");
        }
    }
}

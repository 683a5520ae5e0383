//! Every setting is measured with all its clients.

use super::*;
use crate::disk::OnVolumes;
use crate::file_io::mode::Access;
use crate::testing::context;
use crate::{Workload, run};

fn settings() -> Vec<Setting> {
    let paces = [Pace::Every(Duration::from_millis(4)), Pace::Pause(Duration::from_millis(2))];
    Setting::all(&ClientGroup::all(&[0, 1, 3], &paces), &ClientGroup::all(&[0, 1], &[Pace::Free]))
}

#[test]
fn zero_clients_appear_once() {
    let names: Vec<_> = settings().iter().map(Setting::name).collect();
    assert_eq!(names.len(), 4 + 5, "nobody with nobody is left out: {names:#?}");
    for expected in [
        "0 writers, 1 reader flat out",
        "1 writer every 4ms, 0 readers",
        "3 writers pausing 2ms, 1 reader flat out",
    ] {
        assert_eq!(names.iter().filter(|name| *name == expected).count(), 1, "{expected}: {names:#?}");
    }
}

#[test]
fn all_take_part_and_no_writer_runs_ahead() {
    let place = tempfile::tempdir().unwrap();
    let event = 16 << 10;
    let test = Throttle {
        settings: settings(),
        point: Point { bytes: event, depth: 2 },
        file_bytes: 2 << 20,
        ramp: Duration::ZERO,
        run: Duration::from_millis(100),
        mode: Mode { access: Access::Buffered, ..Mode::default() },
        together: false,
    };
    let settings = test.settings.clone();
    let mut test = OnVolumes::new(test, vec![place.path().into()], "scratch".into());
    let plan = test.plan();
    assert_eq!(plan.space_bytes[place.path()], 4 * (2 << 20));
    let phases = run(&mut test, &mut context()).unwrap().phases;
    assert_eq!(phases.len(), settings.len());
    let mut written = 4 * (2 << 20);
    for (phase, setting) in phases.iter().zip(settings) {
        let parts = |writes: bool| phase.parts.iter().filter(move |part| part.writes == writes);
        assert_eq!(parts(true).count(), setting.writers.number as usize);
        assert_eq!(parts(false).count(), setting.readers.number as usize);
        let period = match setting.writers.pace {
            Pace::Every(time) | Pace::Pause(time) => time,
            Pace::Free => continue,
        };
        let most = 100 / period.as_millis() as u64 + 1;
        assert!(parts(true).all(|part| part.operations <= most), "{phase:#?}");
        written += parts(true).map(|part| part.bytes).sum::<u64>();
    }
    assert!(written <= plan.bytes_written[place.path()] && written > 4 * (2 << 20));
}

#[test]
fn volumes_together_have_all_clients_each() {
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let test = Throttle {
        settings: Setting::all(
            &ClientGroup::all(&[1, 2], &[Pace::Pause(Duration::from_millis(2))]),
            &ClientGroup::all(&[1], &[Pace::Free]),
        ),
        point: Point { bytes: 16 << 10, depth: 1 },
        file_bytes: 1 << 20,
        ramp: Duration::ZERO,
        run: Duration::from_millis(50),
        mode: Mode { access: Access::Buffered, ..Mode::default() },
        together: true,
    };
    let volumes: Vec<PathBuf> = places.iter().map(|place| place.path().to_owned()).collect();
    let mut test = OnVolumes::new(test, volumes.clone(), "scratch".into());
    let plan = test.plan();
    assert!(volumes.iter().all(|volume| plan.space_bytes[volume] == 3 << 20), "{plan:?}");
    let phases = run(&mut test, &mut context()).unwrap().phases;
    assert_eq!(phases.len(), 2);
    for (phase, writers) in phases.iter().zip(1..) {
        for volume in &volumes {
            let parts = phase.parts.iter().filter(|part| part.volume == volume.display().to_string());
            let writes: Vec<bool> = parts.map(|part| part.writes).collect();
            assert_eq!(writes.iter().filter(|writes| **writes).count(), writers, "{phase:#?}");
            assert_eq!(writes.len(), writers + 1, "{phase:#?}");
        }
    }
}

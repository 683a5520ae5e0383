//! Every built-in profile yields valid source and recorder settings.
use keepup_plan::{builtin, builtin_names};
use keepup_recorder::Target;
use keepup_stream::source::{DectrisVersion, Protocol};

use super::*;

#[test]
fn every_profile_can_be_driven_and_recorded() {
    for name in builtin_names() {
        let profile = builtin(name).unwrap();
        let plan = source_plan(&profile, SourceRate::Profile, None);
        assert_eq!(plan.duration, Some(profile.duration.0), "{name}");
        if profile.compression.is_some() {
            let detector = Protocol::Dectris(DectrisVersion::V2);
            plan.clone().in_protocol(detector).check().unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        let base = RecorderConfig::new(([127, 0, 0, 1], 0).into(), Target::Null, "run");
        let config = recorder_config(&profile, &base);
        config.validate().unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(config.event_bytes_max() >= profile.event.max().0, "{name}: events do not fit");
    }
}

#[test]
fn the_pool_follows_the_number_of_streams() {
    let base = RecorderConfig::new(([127, 0, 0, 1], 0).into(), Target::Null, "run");
    let pool = |streams| recorder_config(&builtin("csl").unwrap().with_streams(streams), &base).pool_bytes;
    assert_eq!([pool(1), pool(4096), pool(10_000)], [512 << 20, 512 << 20, 1250 << 20]);
}

#[test]
fn a_byte_rate_scales_the_event_rate() {
    let profile = builtin("csl").unwrap();
    let plan = source_plan(&profile, SourceRate::Bytes(2.0 * profile.required_bytes_per_second()), None);
    let Rate::EventsPerSecond(rate) = plan.rate else { panic!("closed loop") };
    assert!((rate / profile.rate.events_per_second() - 2.0).abs() < 1e-9);
    assert_eq!(source_plan(&profile, SourceRate::Max, None).rate, Rate::Max);
}

#[test]
fn the_requested_rate_is_known_in_advance() {
    let profile = builtin("csl").unwrap();
    let asked = |rate| asked_bytes_per_second(&profile, rate);
    assert_eq!(asked(SourceRate::Profile), Some(profile.required_bytes_per_second()));
    assert_eq!(asked(SourceRate::Bytes(5e6)), Some(5e6));
    let events = asked(SourceRate::Events(10.0)).unwrap();
    assert!((events / (10.0 * 262_144.0) - 1.0).abs() < 1e-9, "{events}");
    assert_eq!(asked(SourceRate::Max), None);
    assert_eq!((events_in(&profile, 262_143), events_in(&profile, 3 << 18)), (0, 3));
}

//! Limits of the plan's settings.

use keepup_error::Diagnostic as _;

use super::*;

#[test]
fn ready_made_plans_are_valid() {
    assert_eq!(SearchPlan::standard(1e6, 1e9).validate(), Ok(()));
    assert_eq!(SearchPlan::quick(1e6, 1e9).validate(), Ok(()));
    // A single rate is a range too.
    assert_eq!(SearchPlan::quick(1e9, 1e9).validate(), Ok(()));
}

#[test]
fn every_impossible_setting_is_refused_by_name() {
    type Spoil = fn(&mut SearchPlan);
    let cases: [(&str, Spoil); 15] = [
        ("min_rate", |p| p.min_rate = 0.0),
        ("max_rate", |p| p.max_rate = f64::NAN),
        ("target_rate", |p| p.target_rate = Some(f64::INFINITY)),
        ("initial_trial", |p| p.initial_trial = Duration::ZERO),
        ("trial", |p| p.trial = p.initial_trial / 2),
        ("sum_trials", |p| p.sum_trials = 0),
        ("preceding_targets", |p| p.preceding_targets = 9),
        ("width", |p| p.width = 0.0),
        ("exceed_ratio", |p| p.exceed_ratio = 1.0),
        ("second_loss_ratio", |p| p.second_loss_ratio = Some(-0.1)),
        ("budget", |p| p.budget = p.trial / 2),
        ("soak", |p| p.soak = Duration::ZERO),
        ("soak_start", |p| p.soak_start = 1.1),
        ("soak_step", |p| p.soak_step = f64::NAN),
        ("soak_attempts_max", |p| p.soak_passes = p.soak_attempts_max + 1),
    ];
    for (name, spoil) in cases {
        let mut plan = SearchPlan::standard(1e6, 1e9);
        spoil(&mut plan);
        match plan.validate() {
            Err(PlanError::Setting { setting, .. }) => assert_eq!(setting, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn errors_have_hints() {
    let error = SearchPlan::standard(2e9, 1e9).validate().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("2000000000 B/s, is above the highest"), "{text}");
    assert!(error.hint().unwrap().contains("min_rate"), "{text}");
}

//! Errors end in the code that the documentation promises.
use super::*;

#[test]
fn codes_are_the_documented_ones() {
    let codes = [
        (Exit::Done, 0),
        (Exit::Failed, 1),
        (Exit::Usage, 2),
        (Exit::Unsafe, 3),
        (Exit::Environment, 4),
        (Exit::Inconclusive, 5),
        (Exit::Interrupted, 130),
    ];
    for (exit, code) in codes {
        assert_eq!(format!("{:?}", ExitCode::from(exit)), format!("{:?}", ExitCode::from(code)));
    }
}

#[test]
fn causes_decide_through_context() {
    let error = anyhow::Error::from(UsageError("no".into())).context("while trying");
    assert_eq!(Exit::of(&error), Exit::Usage);
    assert_eq!(Exit::of(&anyhow::anyhow!("unknown")), Exit::Environment);
    let missing =
        WorkloadError::Volume { path: "/no".into(), why: String::new(), trouble: VolumeTrouble::Missing };
    assert_eq!(Exit::of(&missing.into()), Exit::Usage);
}

//! Soak times that are refused.
use keepup_error::{Diagnostic as _, ErrorClass};

use super::*;

#[test]
fn a_soak_that_proves_nothing_is_refused() {
    for seconds in [2.0, 30.0, 36_000.0] {
        let time = Duration::from_secs_f64(seconds);
        assert_eq!(check_soak(time).unwrap(), time);
    }
    for (seconds, said) in [(0.0, "0 s"), (0.5, "0.5 s"), (1.999, "1.999 s")] {
        let refused = check_soak(Duration::from_secs_f64(seconds)).unwrap_err();
        assert_eq!(refused.to_string(), format!("cannot soak for {said}: at least 2 s"));
        assert_eq!(refused.class(), ErrorClass::Usage);
        assert!(refused.hint().unwrap().contains("--soak"));
    }
}

//! Exit code after output that could not be written.
use super::finished;
use crate::exit::Exit;

#[test]
fn a_success_without_its_output_is_none_and_a_failure_keeps_its_code() {
    for success in [Exit::Done, Exit::FitWithLimits] {
        assert_eq!(finished(success, true), Exit::Environment);
        assert_eq!(finished(success, false), success);
    }
    for failure in [Exit::Failed, Exit::Usage, Exit::Unsafe, Exit::Inconclusive, Exit::Interrupted] {
        assert_eq!(finished(failure, true), failure);
    }
}

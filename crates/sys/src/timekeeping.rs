//! State of the kernel's clock discipline, from `adjtimex(2)`. Read-only, needs no privilege.
use crate::SysError;

/// What the kernel knows about the error of the system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDiscipline {
    /// Whether a program keeps the clock synchronised.
    pub is_synchronised: bool,
    /// Largest error of the clock by that program's account, ns. It grows until the next update.
    pub error_ns_max: u64,
}

/// State of the clock discipline.
///
/// # Errors
/// The system call fails, as in some sandboxes.
pub fn clock_discipline() -> Result<ClockDiscipline, SysError> {
    // With no bit in `modes`, nothing is set.
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the argument is a valid structure that the kernel fills.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    if state < 0 {
        let source = std::io::Error::last_os_error();
        return Err(SysError::Call { action: "read the state of the system clock", source });
    }
    Ok(ClockDiscipline {
        is_synchronised: state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0,
        error_ns_max: u64::try_from(timex.maxerror).unwrap_or(0).saturating_mul(1_000),
    })
}

#[cfg(test)]
#[path = "timekeeping_tests.rs"]
mod tests;

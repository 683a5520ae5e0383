//! Ctrl-C and SIGTERM: the first signal stops cleanly, the second exits at once.
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Flag set by the first signal. The second signal exits with code 130.
pub(crate) fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    // `stop` is also set by other code, which must not turn the first signal into the second.
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Order matters: the shutdown must check the flag before the same signal sets it.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&asked))
            .context("cannot watch for signals")?;
        flag::register(signal, Arc::clone(&asked)).context("cannot watch for signals")?;
        flag::register(signal, Arc::clone(&stop)).context("cannot watch for signals")?;
    }
    Ok(stop)
}

/// Stop flag of an agent; SIGHUP sets it too. The kernel sends SIGHUP to a stopped process when the parent of
/// its process group exits (POSIX, `_exit`).
#[cfg(feature = "fleet")]
pub(crate) fn stop_flag_of_child() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = stop_flag()?;
    flag::register(signal_hook::consts::SIGHUP, Arc::clone(&stop)).context("cannot watch for signals")?;
    Ok(stop)
}

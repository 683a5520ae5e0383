//! Ctrl-C and SIGTERM: the first asks for a clean end, the second ends at once.
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that the first signal raises; the second ends the program with code 130.
pub(crate) fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    // Others raise the flag too: only what a signal raised makes the next one the second.
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Order matters: the shutdown looks at the flag before the same signal raises it.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&asked))
            .context("cannot watch for signals")?;
        flag::register(signal, Arc::clone(&asked)).context("cannot watch for signals")?;
        flag::register(signal, Arc::clone(&stop)).context("cannot watch for signals")?;
    }
    Ok(stop)
}

//! The pool's registration with io_uring, made once for all rings that use the pool.
//!
//! Each ring that registers memory itself counts it against the limit of locked memory and looks up every
//! page. From Linux 6.12 on a ring can take over the registration of another one.
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use io_uring::{IoUring, Submitter};
use rustix::io::fcntl_dupfd_cloexec;

/// Registration of one mapping.
#[derive(Debug, Default)]
pub(crate) struct Registration {
    donor: Mutex<Donor>,
}

/// A ring that serves only to hold the registration. Its descriptor keeps it.
#[derive(Debug, Default)]
enum Donor {
    #[default]
    Untried,
    Ring(OwnedFd),
    /// The kernel cannot copy registrations, or the memory cannot be registered.
    Impossible,
}

impl Registration {
    /// Registers `buffers` with the ring of `submitter`, all rings together once if the kernel can.
    ///
    /// # Errors
    /// As `io_uring_register(2)`.
    ///
    /// # Safety
    /// The buffers are the same live memory in every call, which outlives the registration and every ring
    /// that takes it over.
    pub(crate) unsafe fn register(
        &self,
        submitter: &Submitter<'_>,
        buffers: &[libc::iovec],
    ) -> std::io::Result<()> {
        let mut donor = self.donor.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*donor, Donor::Untried) {
            // SAFETY: as the caller states.
            *donor = unsafe { donate(buffers) }.map_or(Donor::Impossible, Donor::Ring);
        }
        if let Donor::Ring(ring) = &*donor {
            if submitter.register_buffers_clone(ring.as_raw_fd()).is_ok() {
                return Ok(());
            }
            // Closing it gives its locked memory back.
            *donor = Donor::Impossible;
        }
        // SAFETY: as the caller states.
        unsafe { submitter.register_buffers(buffers) }
    }
}

/// A ring with the buffers registered.
unsafe fn donate(buffers: &[libc::iovec]) -> Option<OwnedFd> {
    let ring = IoUring::new(1).ok()?;
    // SAFETY: as the caller of `Registration::register` states.
    unsafe { ring.submitter().register_buffers(buffers) }.ok()?;
    // SAFETY: the descriptor is that of a live ring.
    let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(ring.as_raw_fd()) };
    fcntl_dupfd_cloexec(descriptor.as_fd(), 0).ok()
}

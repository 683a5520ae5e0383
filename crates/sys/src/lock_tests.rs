//! Locks in the kernel's list.
use super::*;

#[test]
fn the_holder_of_a_lock_is_found_in_the_kernels_list() {
    let locks = "1: POSIX  ADVISORY  WRITE 11 08:01:77 0 EOF\n\
                 2: FLOCK  ADVISORY  WRITE 12 08:01:78 0 EOF\n\
                 3: -> FLOCK  ADVISORY  WRITE 13 08:01:77 0 EOF\n\
                 4: FLOCK  ADVISORY  WRITE 14 08:01:77 0 EOF\n";
    assert_eq!(holder_in(locks, (8, 1), 77), Some(14), "neither a POSIX lock nor a waiting process");
    assert_eq!(holder_in(locks, (8, 2), 77), None);
    let hidden = "1: FLOCK  ADVISORY  WRITE 0 08:01:77 0 EOF\n";
    assert_eq!(holder_in(hidden, (8, 1), 77), None, "of another process namespace");
}

#[test]
fn an_own_lock_is_found_where_the_kernel_lists_it() {
    let file = tempfile::tempfile().unwrap();
    assert_eq!(holder(&file), None);
    file.try_lock().unwrap();
    // Overlay file systems list another device.
    assert!(holder(&file).is_none_or(|process| process == std::process::id()));
}

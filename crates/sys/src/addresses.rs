//! Addresses of this machine's interfaces, from `getifaddrs(3)`.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::SysError;

/// Limit on entries read, far above the addresses of a machine.
const ENTRIES_MAX: usize = 65_536;

/// Name of the interface that has `address`; none if no interface has it.
///
/// # Errors
/// The list cannot be read.
pub fn interface_of(address: IpAddr) -> Result<Option<String>, SysError> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call sets `first` to a list that it allocates.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        let source = std::io::Error::last_os_error();
        return Err(SysError::Call { action: "list the addresses of the interfaces", source });
    }
    let (mut next, mut found) = (first, None);
    for _ in 0..ENTRIES_MAX {
        // SAFETY: null, or an element of the list, which is not freed before the end of this function.
        let Some(entry) = (unsafe { next.as_ref() }) else { break };
        // SAFETY: the address and the name belong to an element of the list.
        if unsafe { ip_of(entry.ifa_addr) } == Some(address) {
            // SAFETY: as above; the name ends with a zero.
            let name = unsafe { std::ffi::CStr::from_ptr(entry.ifa_name) };
            // An IPv4 address may have a label such as `eth0:1`.
            let name = name.to_string_lossy();
            found = Some(name.split(':').next().unwrap_or_default().to_owned());
            break;
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list came from `getifaddrs`, and no reference into it is left.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// IP address of an entry; none for other families.
///
/// # Safety
/// `address` is null or points to the address of an entry of `getifaddrs`.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: see above; the family tells which structure it is.
    let family = i32::from(unsafe { address.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: an address of this family is a `sockaddr_in`; it may be unaligned.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: an address of this family is a `sockaddr_in6`; it may be unaligned.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "addresses_tests.rs"]
mod tests;

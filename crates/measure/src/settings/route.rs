//! Interface towards an address, from the kernel's main routing tables (/proc/net/route and
//! ipv6_route).

use std::net::{Ipv4Addr, Ipv6Addr};

/// Route flags (linux/route.h): up; reject.
const RTF_UP: u32 = 0x1;
const RTF_REJECT: u32 = 0x200;

/// Interface of the most specific route to `address` in /proc/net/route; of equal ones the one with
/// the lowest metric. Local addresses are not listed there.
pub fn route_v4(text: &str, address: Ipv4Addr) -> Option<String> {
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        // The kernel prints the address in memory byte order.
        let bytes = |at: usize| Some(u32::from_str_radix(fields.get(at)?, 16).ok()?.to_ne_bytes());
        let (network, mask) = (u32::from_be_bytes(bytes(1)?), u32::from_be_bytes(bytes(7)?));
        let flags = u32::from_str_radix(fields.get(3)?, 16).ok()?;
        let metric: u32 = fields.get(6)?.parse().ok()?;
        let leads = flags & RTF_UP != 0 && flags & RTF_REJECT == 0 && u32::from(address) & mask == network;
        leads.then(|| ((mask.count_ones(), std::cmp::Reverse(metric)), (*fields[0]).to_owned()))
    };
    best(text.lines().filter_map(route))
}

/// The same in the text of /proc/net/ipv6_route.
pub fn route_v6(text: &str, address: Ipv6Addr) -> Option<String> {
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let network = u128::from_str_radix(fields.first()?, 16).ok()?;
        let length = u32::from_str_radix(fields.get(1)?, 16).ok().filter(|length| *length <= 128)?;
        let metric = u32::from_str_radix(fields.get(5)?, 16).ok()?;
        let flags = u32::from_str_radix(fields.get(8)?, 16).ok()?;
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let leads = flags & RTF_UP != 0 && flags & RTF_REJECT == 0 && u128::from(address) & mask == network;
        leads.then(|| Some(((length, std::cmp::Reverse(metric)), (*fields.get(9)?).to_owned())))?
    };
    best(text.lines().filter_map(route))
}

fn best<K: Ord>(routes: impl Iterator<Item = (K, String)>) -> Option<String> {
    routes.max_by(|one, other| one.0.cmp(&other.0)).map(|(_, interface)| interface)
}

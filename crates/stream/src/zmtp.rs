//! Frames of ZMTP 3, the wire protocol of ZeroMQ, without security: what either side of a connection sends
//! (<https://rfc.zeromq.org/spec/23/>).

/// Length of the greeting.
pub const GREETING_BYTES: usize = 64;
/// Longest frame header: flags and eight bytes of length.
pub const HEADER_BYTES_MAX: usize = 9;
/// Flag of a frame: another frame of its message follows.
pub const FLAG_MORE: u8 = 1;
/// Flag of a frame: its length has eight bytes instead of one.
pub const FLAG_LONG: u8 = 2;
/// Flag of a frame: it is a command.
pub const FLAG_COMMAND: u8 = 4;

/// Greeting of version 3.1 without security.
#[must_use]
pub fn greeting() -> [u8; GREETING_BYTES] {
    let mut out = [0; GREETING_BYTES];
    (out[0], out[9]) = (0xFF, 0x7F);
    (out[10], out[11]) = (3, 1);
    out[12..16].copy_from_slice(b"NULL");
    out
}

/// READY command of a socket of type `kind`, such as `PULL`.
#[must_use]
pub fn ready(kind: &str) -> Vec<u8> {
    let mut properties = b"\x0bSocket-Type".to_vec();
    properties.extend_from_slice(&(kind.len() as u32).to_be_bytes());
    properties.extend_from_slice(kind.as_bytes());
    command(b"READY", &properties)
}

/// A command of at most 255 bytes.
#[must_use]
pub fn command(name: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut out = vec![FLAG_COMMAND, (1 + name.len() + rest.len()) as u8, name.len() as u8];
    out.extend_from_slice(name);
    out.extend_from_slice(rest);
    out
}

/// Header of a long frame of `bytes`; with `is_last`, the last one of its message.
#[must_use]
pub fn frame_header(bytes: u64, is_last: bool) -> [u8; HEADER_BYTES_MAX] {
    let mut out = [0; HEADER_BYTES_MAX];
    out[0] = FLAG_LONG | if is_last { 0 } else { FLAG_MORE };
    out[1..].copy_from_slice(&bytes.to_be_bytes());
    out
}

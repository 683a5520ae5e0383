//! Pieces of a file: the unit of writing, reading and comparing.

/// Size of a piece, bytes.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// Length of the piece at `offset` in a file of `bytes`.
pub(crate) fn piece_bytes(bytes: u64, offset: u64) -> usize {
    (bytes - offset).min(PIECE_BYTES as u64) as usize
}

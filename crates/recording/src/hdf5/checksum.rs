//! Checksum of HDF5's metadata: Bob Jenkins' lookup3, `hashlittle` with the initial value 0
//! (<https://burtleburtle.net/bob/c/lookup3.c>, public domain; HDF5 specification, "Checksum").

/// Appends the checksum of `bytes` to them.
pub(super) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = lookup3(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Checksum of `bytes`.
pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let mut state = [start; 3];
    if bytes.is_empty() {
        return state[2];
    }
    // The last piece of 1 to 12 bytes is mixed differently.
    let whole = (bytes.len() - 1) / 12 * 12;
    for piece in bytes[..whole].chunks_exact(12) {
        add(&mut state, piece);
        mix(&mut state);
    }
    let mut last = [0; 12];
    last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
    add(&mut state, &last);
    finish(&mut state);
    state[2]
}

fn add(state: &mut [u32; 3], piece: &[u8]) {
    for (word, bytes) in state.iter_mut().zip(piece.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    *state = [a, b, c];
}

fn finish(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    *state = [a, b, c];
}

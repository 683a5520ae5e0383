//! What several fuzz targets share.
use keepup_sources::{Decoder, Input, Item};
use keepup_stream::wire::StreamInfo;

/// What a decoder has handed out.
pub struct Decoded {
    /// The items, and the error if there was one, as texts.
    pub found: Vec<String>,
    /// Whether there was no error.
    pub is_usable: bool,
}

/// Decodes `bytes`, cut into reads of `piece` bytes. `check` gets each item with the streams before it.
pub fn decoded(
    decoder: &mut impl Decoder,
    mut bytes: &[u8],
    piece: usize,
    mut check: impl FnMut(&Item<'_>, &[StreamInfo]),
) -> Decoded {
    let (mut found, mut streams) = (Vec::new(), Vec::new());
    loop {
        loop {
            match decoder.item() {
                Ok(None) => break,
                Err(error) => {
                    found.push(error.to_string());
                    return Decoded { found, is_usable: false };
                }
                Ok(Some(item)) => {
                    found.push(format!("{item:?}"));
                    check(&item, &streams);
                    if let Item::Streams(declared) = item {
                        streams = declared.to_vec();
                    }
                }
            }
            decoder.take();
        }
        let Input::Bytes(space) = decoder.input() else { panic!("a connection has bytes") };
        let count = space.len().min(piece).min(bytes.len());
        if count == 0 {
            // Nothing is left, or a series has ended, and nothing is read behind it.
            return Decoded { found, is_usable: true };
        }
        space[..count].copy_from_slice(&bytes[..count]);
        decoder.received(count, 0);
        bytes = &bytes[count..];
    }
}

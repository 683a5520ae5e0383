//! Skipping of CBOR items.
use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error;

/// Most levels of nested items.
pub(super) const DEPTH_MAX: usize = 32;

/// Skips an item without memory: the decoder's own way takes some for items that are nested.
pub(super) fn skip(decoder: &mut Decoder<'_>, depth: usize) -> Result<(), Error> {
    let items = match decoder.datatype()? {
        Type::Array | Type::ArrayIndef => decoder.array()?,
        Type::Map | Type::MapIndef => decoder.map()?.map(|pairs| pairs.saturating_mul(2)),
        Type::Tag => {
            decoder.tag()?;
            Some(1)
        }
        _ => return decoder.skip(),
    };
    if depth == 0 {
        return Err(Error::message("items are nested too deeply"));
    }
    let mut left = items;
    while left != Some(0) {
        if left.is_none() && decoder.datatype()? == Type::Break {
            decoder.set_position(decoder.position() + 1);
            return Ok(());
        }
        skip(decoder, depth - 1)?;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

//! Thinning of events for display: every n-th element along each of the last two dimensions.
use super::EventCard;

/// Shape and payload of a thinned event, if it has a shape, is not compressed, and exceeds `most`
/// along one of its last two dimensions. Earlier dimensions are reduced to their first element.
pub(super) fn thin(card: &EventCard, payload: &[u8], most: u64) -> Option<(Vec<u64>, Vec<u8>)> {
    if card.shape.is_empty() || card.compression.is_some() {
        return None;
    }
    let size = element_bytes(&card.element)?;
    let elements = card.shape.iter().try_fold(1u64, |product, &n| product.checked_mul(n))?;
    if elements == 0 || elements.checked_mul(size as u64)? != payload.len() as u64 {
        return None;
    }
    let columns = *card.shape.last()?;
    let rows = if card.shape.len() > 1 { card.shape[card.shape.len() - 2] } else { 1 };
    let (by_rows, by_columns) = (rows.div_ceil(most), columns.div_ceil(most));
    if by_rows <= 1 && by_columns <= 1 && card.shape.len() <= 2 {
        return None;
    }
    let mut thinned = Vec::new();
    for row in (0..rows).step_by(by_rows as usize) {
        for column in (0..columns).step_by(by_columns as usize) {
            let at = (row * columns + column) as usize * size;
            thinned.extend_from_slice(payload.get(at..at + size)?);
        }
    }
    let columns = columns.div_ceil(by_columns);
    let shape = if card.shape.len() > 1 { vec![rows.div_ceil(by_rows), columns] } else { vec![columns] };
    Some((shape, thinned))
}

/// Bytes of an element type.
fn element_bytes(name: &str) -> Option<usize> {
    let bits: usize = name.get(1..)?.parse().ok()?;
    matches!(bits, 8 | 16 | 32 | 64).then_some(bits / 8)
}

#[cfg(test)]
#[path = "thin_tests.rs"]
mod tests;

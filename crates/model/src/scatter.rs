//! Scatter of a result with ranged figures, where the evaluation may fail.

use crate::error::ModelError;
use crate::ranged::Ranged;
use crate::vary::{interval, sensitivity};

/// Callback that receives each figure's range and returns the drawn value.
pub(crate) type Draw<'a> = dyn FnMut(&Ranged) -> f64 + 'a;

/// 95 % interval of a result; `None` if no figure has a range.
pub(crate) fn bounds(
    samples: u32,
    seed: u64,
    mut evaluate: impl FnMut(&mut Draw<'_>) -> Result<f64, ModelError>,
) -> Result<Option<(f64, f64)>, ModelError> {
    let mut refused = None;
    let spread = interval(samples, seed, |draw| {
        let value = evaluate(&mut |figure| draw(figure.low, figure.value, figure.high));
        value.unwrap_or_else(|why| refuse(&mut refused, why))
    });
    match refused {
        Some(why) => Err(why),
        None => spread
            .map(|spread| Some((spread.low, spread.high)).filter(|(low, high)| low < high))
            .map_err(ModelError::from),
    }
}

/// Share of each figure in the variance, by index of its draw.
pub(crate) fn shares(
    mut evaluate: impl FnMut(&mut Draw<'_>) -> Result<f64, ModelError>,
) -> Result<Vec<f64>, ModelError> {
    let mut refused = None;
    let found = sensitivity(|draw| {
        let value = evaluate(&mut |figure| draw(figure.low, figure.value, figure.high));
        value.unwrap_or_else(|why| refuse(&mut refused, why))
    });
    if let Some(why) = refused {
        return Err(why);
    }
    let found = found?;
    let mut shares = vec![0.0; found.len()];
    for influence in found {
        if let Some(share) = shares.get_mut(influence.figure) {
            *share = influence.share;
        }
    }
    Ok(shares)
}

/// Keeps the first error; a NaN result ends the draws.
fn refuse(refused: &mut Option<ModelError>, why: ModelError) -> f64 {
    refused.get_or_insert(why);
    f64::NAN
}

//! Input numbers of a prediction, with sources and their share of its scatter.

use keepup_results::Assumption;

use super::Ask;
use crate::error::ModelError;
use crate::machine::Machine;
use crate::ranged::Source;
use crate::scatter;
use crate::solve::solve;

/// Figures of the path and of background traffic, each with its share of the rate's scatter when
/// varied alone.
///
/// # Errors
/// Unknown path, or figures that contradict each other.
pub fn assumptions(machine: &Machine, ask: &Ask) -> Result<Vec<Assumption>, ModelError> {
    let assembly = machine.assembly(ask.path_of(machine), ask.operation_bytes)?;
    let shares = scatter::shares(|draw| Ok(solve(&assembly.system(draw)?).bytes_per_second))?;
    let limits = solve(&ask.system(machine)?).limits;
    // A part's figure is "disks.rate", one of a stage "write on disks: per_byte".
    let counts = |name: &str| {
        let of = match name.split_once(" on ") {
            Some((_, stage)) => stage.split(':').next().unwrap_or_default(),
            None => name.split('.').next().unwrap_or_default(),
        };
        limits.iter().any(|limit| limit.name == of) || machine.beside.get(of).is_some_and(|flow| flow.on)
    };
    let relevant = assembly.figures().into_iter().zip(shares).filter(|((name, _), _)| counts(name));
    let assumptions = relevant.map(|((name, figure), share)| Assumption {
        name,
        value: figure.unit.rounded(figure.value),
        range: figure
            .has_range()
            .then(|| format!("{} to {}", figure.unit.rounded(figure.low), figure.unit.rounded(figure.high))),
        source: word(figure.source).to_owned(),
        share: figure.has_range().then_some(share),
        from: figure.from.clone(),
    });
    Ok(assumptions.collect())
}

/// Kind of source, in a word.
fn word(source: Source) -> &'static str {
    match source {
        Source::Datasheet => "datasheet",
        Source::Paper => "paper",
        Source::Fitted => "fitted",
        Source::Measured => "measured",
        Source::Guessed => "guessed",
        Source::Standard => "standard",
        Source::Given => "given",
    }
}

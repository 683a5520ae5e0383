//! Bottleneck: the stage, its figures, the counter-trials that tested it, and the next limit.

use keepup_results::{Bottleneck, CounterTrial, ExpectedEffect};

use crate::format::{plural, rate, rates};
use crate::page::{Block, Item};

pub(crate) fn block(found: Option<&Bottleneck>) -> Block {
    let Some(found) = found else {
        return Block::new("Bottleneck", vec![Item::Text("The bottleneck was not determined.".to_owned())]);
    };
    let next = found.next.as_ref().map_or_else(
        || "The next limit was not determined.".to_owned(),
        |next| {
            let at = next.bytes_per_second.map(|r| format!(" at {}", rate(r))).unwrap_or_default();
            let is = if next.stage == Bottleneck::NOT_RESOLVED { "was" } else { "is" };
            format!("The next limit {is} {}{at}: {}.", next.stage, next.evidence)
        },
    );
    let is = if found.stage == Bottleneck::NOT_RESOLVED { "was" } else { "is" };
    let text = format!("The bottleneck {is} {}{}: {}. {next}", found.stage, doubt(found), found.evidence);
    let mut items = vec![Item::Text(text)];
    if !found.counter_trials.is_empty() {
        items.push(Item::List(found.counter_trials.iter().map(sentence).collect()));
    }
    Block::new("Bottleneck", items)
}

/// Remark on a stage that is named without a counter-trial. Results of earlier versions have none.
pub(super) fn doubt(found: &Bottleneck) -> &'static str {
    let is_named = found.stage != Bottleneck::NOT_RESOLVED && !found.counter_trials.is_empty();
    if is_named && !found.is_confirmed() { " (not confirmed)" } else { "" }
}

/// What was changed to test a stage, and its effect.
fn sentence(counter: &CounterTrial) -> String {
    let (stage, change) = (&counter.stage, &counter.change);
    if let Some(why) = &counter.not_run {
        return format!("{stage} not tested, {change}: {why}");
    }
    let verdict = if counter.confirmed { "confirmed" } else { "not confirmed" };
    format!("{stage} {verdict}, {change}: {}", effect(counter))
}

fn effect(counter: &CounterTrial) -> String {
    let trials = counter.pairs.len();
    if counter.expected == ExpectedEffect::Holds {
        let (unchanged, changed) = counter.held();
        return format!(
            "{changed} of {} held, {unchanged} without the change",
            plural(trials as u64, "trial")
        );
    }
    let Some((unchanged, changed)) = counter.medians() else { return "no trial was run".to_owned() };
    let ratio = changed / unchanged;
    let [changed, unchanged] = rates([changed, unchanged]);
    format!("{changed} instead of {unchanged} ({ratio:.2}x, {})", plural(trials as u64, "pair"))
}

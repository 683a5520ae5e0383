//! SVG badge with the answer of a result.
//!
//! Invariants: texts from the result are escaped; the SVG loads nothing; its colour repeats what its words
//! say.

use keepup_measure::stats::median;
use keepup_measure::sum::Sums;
use keepup_results::printable::is_printable;
use keepup_results::{Better, FailedRate, Figure, Figures, Headed, Kind, Stored, Verdict, machine_name};

use crate::format::{rate, rates, shorten};
use crate::kinds;
use crate::table::Tone;

const LABEL: &str = "keepup";
const HEIGHT: u32 = 20;
const PADDING: f64 = 6.0;
/// Longest answer on a badge, and longest name of a machine.
const CHARACTERS_MAX: usize = 60;
const MACHINE_CHARACTERS_MAX: usize = 30;

/// Renders the badge.
pub(crate) fn render(result: &Stored) -> String {
    let (text, tone) = answer(result);
    let on = machine(result).map(|name| format!(" on {}", shorten(&name, MACHINE_CHARACTERS_MAX)));
    let text = shorten(&text, CHARACTERS_MAX) + &on.unwrap_or_default();
    let label_width = width(LABEL) + 2.0 * PADDING;
    let text_width = width(&text) + 2.0 * PADDING;
    let whole = label_width + text_width;
    let text = escape(&text);
    let colour = match tone {
        Tone::Good => "#00664d",
        Tone::Doubtful => "#7d5a00",
        Tone::Bad => "#a63c00",
        Tone::Plain => "#005a8c",
    };
    let words = |x: f64, width: f64, text: &str| {
        format!(
            "<text x=\"{:.1}\" y=\"14\" textLength=\"{:.1}\">{text}</text>",
            x + PADDING,
            width - 2.0 * PADDING
        )
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole:.0}\" height=\"{HEIGHT}\" role=\"img\" \
         aria-label=\"{LABEL}: {text}\"><title>{LABEL}: {text}</title>\
         <rect width=\"{label_width:.1}\" height=\"{HEIGHT}\" fill=\"#3a4046\"/>\
         <rect x=\"{label_width:.1}\" width=\"{text_width:.1}\" height=\"{HEIGHT}\" fill=\"{colour}\"/>\
         <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">{}{}</g></svg>\n",
        words(0.0, label_width, LABEL),
        words(label_width, text_width, &text),
    )
}

/// Name of the machine that was measured, if it is one and has a name.
fn machine(result: &Stored) -> Option<String> {
    let head = result.head();
    let is_one = !matches!(head.kind, Kind::Compare | Kind::QualifyFleet);
    machine_name(head.environment).filter(|_| is_one)
}

/// Text and tone of the badge: the verdict and its rate, or the test and its best figure.
pub(crate) fn answer(result: &Stored) -> (String, Tone) {
    match result {
        Stored::Qualify(summary) => {
            let held = summary.qualified_bytes_per_second.or(summary.knee_bytes_per_second);
            return verdict(summary.verdict, held, summary.failed_above.as_ref());
        }
        Stored::QualifyFleet(summary) => {
            let knee = summary.knee.map(|knee| knee.lower_bytes_per_second);
            let held = summary.qualified_bytes_per_second.or(knee);
            return verdict(summary.verdict, held, summary.failed_above.as_ref());
        }
        _ => {}
    }
    if let Stored::Soak(_) = result {
        let headline = kinds::page(result, true).headline;
        return (headline.verdict, headline.tone);
    }
    let figures = result.figures();
    let name = kinds::name(result);
    let evidence: Vec<Figure> = figures.iter().filter(|figure| !figure.is_too_short).cloned().collect();
    if evidence.is_empty() && !figures.is_empty() {
        return (format!("{name}, too short to be evidence"), Tone::Doubtful);
    }
    let best = best(&evidence).map(|text| format!(" {text}")).unwrap_or_default();
    (format!("{name}{best}"), Tone::Plain)
}

/// A verdict with the rate that held, bytes per second, and the one that failed.
fn verdict(verdict: Verdict, held: Option<f64>, failed: Option<&FailedRate>) -> (String, Tone) {
    let found = match (held, failed.map(|above| above.bytes_per_second)) {
        (None, None) => String::new(),
        (Some(held), None) => format!(" {}", rate(held)),
        (None, Some(failed)) => format!(", failed {}", rate(failed)),
        (Some(held), Some(failed)) => {
            let [held, failed] = rates([held, failed]);
            format!(" {held}, failed {failed}")
        }
    };
    (format!("{verdict}{found}"), Tone::of(verdict))
}

/// Best median of the quantity of the first figure.
fn best(figures: &[Figure]) -> Option<String> {
    let quantity = figures.first()?.quantity;
    let all = figures.iter().filter(|figure| figure.quantity == quantity);
    let medians = all.filter_map(|figure| median(&figure.values));
    let best = match quantity.better() {
        Better::Less => medians.reduce(f64::min),
        Better::More | Better::Neither => medians.reduce(f64::max),
    };
    best.map(|value| kinds::format_quantity(quantity, value))
}

/// Approximate width in pixels at 11 px. `textLength` makes the viewer fit the text exactly.
fn width(text: &str) -> f64 {
    let letter = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 3.6,
        ' ' | 'f' | 't' | 'r' | '/' | '-' | '(' | ')' | 'I' => 4.6,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 10.2,
        c if c.is_ascii_uppercase() => 8.0,
        c if c.is_ascii() => 6.9,
        _ => 11.0,
    };
    text.chars().map(letter).float_sum()
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML cannot represent these.
            c if !is_printable(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
#[path = "badge_tests.rs"]
mod tests;

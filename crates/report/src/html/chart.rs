//! Chart with its legend, note and table.

use maud::{Markup, PreEscaped, html};

use super::{Charts, table};
use crate::chart::{Chart, Dash, LegendEntry, Shape, Symbol};

pub(super) fn figure(chart: &Chart, charts: &mut Charts) -> Markup {
    let number = charts.add(&chart.option);
    html! {
        figure {
            figcaption { (chart.title) }
            @if !chart.legend.is_empty() { ul.keys { @for key in &chart.legend { (legend(key)) } } }
            div.plot role="img" aria-label=(chart.title) data-chart=(number)
                style=(format!("height:{}px", chart.height)) {}
            @if !chart.note.is_empty() { p.note { (chart.note) } }
            @if !chart.table.rows.is_empty() {
                details { summary { "table" } (table(&chart.table)) }
            }
        }
    }
}

fn legend(key: &LegendEntry) -> Markup {
    let colour = format!("color:var({})", key.colour);
    html! {
        @if !key.group.is_empty() { li.group { (key.group) } }
        li { svg style=(colour) viewBox="0 0 26 12" width="26" height="12" aria-hidden="true" {
        (PreEscaped(sample(key.shape)))
        } (key.name) }
    }
}

/// Sample line or symbol of a legend entry, in the current colour.
fn sample(shape: Shape) -> String {
    let line = |dash: Dash| {
        let dashes = match dash {
            Dash::Solid => "",
            Dash::Dashed => " stroke-dasharray='5 3'",
            Dash::Dotted => " stroke-dasharray='1.5 3'",
        };
        format!("<path d='M0 6H26' stroke='currentColor' stroke-width='2'{dashes}/>")
    };
    match shape {
        Shape::Line(dash, symbol) => format!("{}{}", line(dash), symbol.map_or("", symbol_path)),
        Shape::Dot(symbol) => symbol_path(symbol).to_owned(),
        Shape::Box { is_hollow: false } => {
            "<rect x='6' y='1' width='14' height='10' fill='currentColor'/>".into()
        }
        Shape::Box { is_hollow: true } => {
            "<rect x='7' y='2' width='12' height='8' fill='none' stroke='currentColor' stroke-width='2'/>"
                .into()
        }
    }
}

fn symbol_path(symbol: Symbol) -> &'static str {
    match symbol {
        Symbol::Circle => "<circle cx='13' cy='6' r='4' fill='currentColor'/>",
        Symbol::Square => "<rect x='9' y='2' width='8' height='8' fill='currentColor'/>",
        Symbol::Triangle => "<path d='M13 1L18 10H8Z' fill='currentColor'/>",
        Symbol::Diamond => "<path d='M13 1L18 6L13 11L8 6Z' fill='currentColor'/>",
        Symbol::Cross => "<path d='M9 2L17 10M17 2L9 10' stroke='currentColor' stroke-width='2'/>",
    }
}

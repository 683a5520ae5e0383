//! Rates of background loads, by `load`.

use keepup_results::LoadResult;

use super::render;
use crate::Style;
use crate::kinds::{load_amount, load_problem};
use crate::page::{Block, Item};
use crate::table::{Cell, Table, left, right};

/// Reports the requested and the achieved rate of each load, and every load that missed its rate.
#[must_use]
pub fn loads(loads: &[LoadResult], style: Style) -> String {
    let row = |load: &LoadResult| -> Vec<Cell> {
        let achieved =
            load.achieved.map_or_else(|| "unknown".to_owned(), |rate| load_amount(load.unit, rate));
        let cores = load.cores().map_or_else(|| "-".to_owned(), |cores| format!("{cores:.2}"));
        vec![
            load.spec.as_str().into(),
            load_amount(load.unit, load.asked).into(),
            achieved.into(),
            cores.into(),
        ]
    };
    let columns = vec![left("load"), right("requested"), right("achieved"), right("CPU, cores")];
    let problems = loads.iter().filter_map(|load| load_problem(load, "")).collect();
    let items =
        vec![Item::Table(Table { columns, rows: loads.iter().map(row).collect() }), Item::List(problems)];
    render(vec![Block::new("", items)], style)
}

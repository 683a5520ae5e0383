//! Tables as text.

/// Lines with columns of equal width, two spaces apart. The first `left` columns are aligned to the left, the
/// others to the right.
pub(crate) fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]], left: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut table = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column < left {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        table.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        table.push('\n');
    }
    table
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;

//! Tables and paragraphs of 80 columns.

/// Width of a paragraph, columns.
const WIDTH: usize = 80;

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

/// `text` after `head`, in lines of at most 80 columns; further lines are indented to the width of `head`.
pub(crate) fn paragraph(head: &str, text: &str) -> String {
    let indent = head.chars().count();
    let mut lines = head.to_owned();
    let mut column = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            lines.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        }
        if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;

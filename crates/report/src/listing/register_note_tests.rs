//! The fit reproduces the note's figures but not its break-even.

use super::*;

#[test]
fn the_fit_reproduces_the_figures_but_not_the_break_even() {
    let paper = keepup_model::papers::paper("cern-vme").unwrap();
    let text = register_note(&paper, Style { colour: false, width: 80 });
    // The first line is the title.
    let lines = text.lines().skip(1);
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split_ascii_whitespace().collect()).collect();
    let numbers =
        |row: usize| -> Vec<f64> { rows[row].iter().filter_map(|word| word.parse().ok()).collect() };
    // us published, us by the fit, MB/s, MiB/s and the rate that the note printed.
    for (row, published) in [(1, 3.1), (2, 2.33), (3, 2.42), (4, 2.42)] {
        let row = numbers(row);
        assert!(row[0] == published && (row[1] / published - 1.0).abs() < 0.05, "{row:?}");
    }
    for (row, printed) in [(3, 1.56), (4, 1.56)] {
        let row = numbers(row);
        assert!(row[4] == printed && (row[3] / printed - 1.0).abs() < 0.02, "{row:?}");
    }
    for (row, printed) in [(5, 8.11), (6, 10.89)] {
        let row = numbers(row);
        assert!(row[3] == printed && (row[2] / printed - 1.0).abs() < 0.003, "{row:?}");
    }
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("from 966 words of 32 bits") && text.contains("from 1932 words"), "{text}");
    assert!(text.contains("from 3077 words") && text.contains("the note says 1800"), "{text}");
}

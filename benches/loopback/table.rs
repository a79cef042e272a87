//! The report.

use crate::load::Sample;
use std::fmt::Write as _;

/// Of the first column.
const WIDTH: usize = 30;

/// The figures of one subject.
pub(crate) struct Row<'a> {
    subject: &'a str,
    /// By column. What is not known is `None`.
    figures: Vec<Option<f64>>,
}

/// Columns of a thing that was done many times.
pub(crate) const COSTS: [&str; 5] = ["instructions", "allocations", "bytes", "CPU µs", "a second"];

impl<'a> Row<'a> {
    /// [`COSTS`]: medians of the instructions counted and of the samples taken.
    pub(crate) fn costs(subject: &'a str, instructions: &[f64], samples: &[Sample]) -> Self {
        let of = |figure: fn(&Sample) -> f64| median(samples.iter().map(figure));
        let figures = vec![
            median(instructions.iter().copied()),
            of(|sample| sample.allocations),
            of(|sample| sample.bytes),
            of(|sample| sample.cpu * 1e6).filter(|&micros| micros > 0.0),
            of(|sample| 1.0 / sample.wall),
        ];
        Self { subject, figures }
    }

    /// One column.
    pub(crate) fn one(subject: &'a str, figure: f64) -> Self {
        Self { subject, figures: vec![Some(figure)] }
    }
}

fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// One line a subject: each figure, and beside it its ratio to the first subject's.
pub(crate) fn render(title: &str, columns: &[&str], rows: &[Row<'_>]) -> String {
    let mut table = format!("\n{title:WIDTH$}");
    for column in columns {
        let _ = write!(table, "  {column:>12}      ");
    }
    for row in rows {
        let _ = write!(table, "\n{:WIDTH$}", row.subject);
        for (figure, of) in row.figures.iter().zip(&rows[0].figures) {
            let _ = match (figure, of) {
                (Some(figure), Some(of)) => write!(table, "  {:>12} {:5.3}", grouped(*figure), figure / of),
                _ => write!(table, "  {:>12}      ", "-"),
            };
        }
    }
    table
}

/// With separators from a thousand on, and a decimal below.
fn grouped(figure: f64) -> String {
    if figure < 1000.0 {
        return format!("{figure:.1}");
    }
    let digits = format!("{figure:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

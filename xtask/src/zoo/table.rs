//! Tables that are read as text as well as in Markdown.

use std::fmt::Write;

/// A table whose columns are as wide as what is in them.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The headings first.
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Table {
        Table { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Whether it has headings only.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    pub(crate) fn render(&self) -> String {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            for (cell, width) in row.iter().zip(&widths) {
                let padding = width - cell.chars().count();
                let _ = write!(text, "| {cell}{:padding$} ", "");
            }
            text += "|\n";
            if number == 0 {
                widths.iter().for_each(|width| text += &format!("|{:-<1$}", "", width + 2));
                text += "|\n";
            }
        }
        text
    }
}

/// Milliseconds with three digits that count.
pub(crate) fn ms(ns: Option<f64>) -> String {
    ns.map_or("-".to_owned(), |ns| digits(ns / 1e6))
}

/// Three digits that count, without an exponent.
pub(crate) fn digits(value: f64) -> String {
    let decimals = if value == 0.0 { 0 } else { (2 - value.abs().log10().floor() as i32).clamp(0, 6) };
    format!("{value:.*}", decimals as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["a", "long"]);
        table.row(vec!["xyz".into(), "±".into()]);
        assert_eq!(table.render(), "| a   | long |\n|-----|------|\n| xyz | ±    |\n");
    }

    #[test]
    fn three_digits_count() {
        assert_eq!([1234.5, 81.26, 0.4567, 0.0].map(digits), ["1234", "81.3", "0.457", "0"]);
    }
}

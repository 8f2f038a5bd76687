//! Tables in Markdown that can be read as they are, too.

use std::fmt;

/// A table whose first column is text; the others are numbers, and stand to the right.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells: Vec<String> = cells.into_iter().collect();
        cells.resize(self.head.len(), String::new());
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| lines().map(|line| line[column].chars().count()).max().unwrap_or_default().max(3);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        for (n, line) in lines().enumerate() {
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                if column == 0 {
                    write!(f, "| {cell:<width$} |")?;
                } else {
                    write!(f, " {cell:>width$} |")?;
                }
            }
            writeln!(f)?;
            if n == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let rule = "-".repeat(width - 1);
                    if column == 0 {
                        write!(f, "| {rule}- |")?;
                    } else {
                        write!(f, " {rule}: |")?;
                    }
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["what", "jobs/s"]);
        table.row(["one".to_owned(), "7".to_owned()]);
        table.row(["twenty-two".to_owned()]);
        let expected = "\
            | what       | jobs/s |\n\
            | ---------- | -----: |\n\
            | one        |      7 |\n\
            | twenty-two |        |\n";
        assert_eq!(table.to_string(), expected);
    }
}

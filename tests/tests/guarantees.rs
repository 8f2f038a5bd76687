//! Every test that docs/guarantees.md names is there.

use std::{fs, path::Path};

/// The tests of a row: the file in its last cell, and the functions behind it.
fn tests(row: &str) -> Option<(&str, Vec<&str>)> {
    let cell = row.strip_suffix('|')?.rsplit('|').next()?;
    let (_, cell) = cell.split_once('`')?;
    let (file, functions) = cell.split_once('`')?;
    Some((file, functions.split(',').map(str::trim).collect()))
}

#[test]
fn every_row_names_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    let mut missing = Vec::new();
    let mut rows = 0;
    for row in text.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| Test |")) {
        rows += 1;
        let Some((file, functions)) = tests(row) else {
            missing.push(format!("no test: {row}"));
            continue;
        };
        let folder = if file.starts_with("src/") { "emq" } else { "tests/tests" };
        let code = fs::read_to_string(root.join(folder).join(file)).unwrap_or_default();
        let is_there = |function: &&str| code.contains(&format!("fn {function}("));
        missing.extend(functions.iter().filter(|f| !is_there(f)).map(|function| format!("{file} {function}")));
    }
    assert!(rows > 40, "{rows} rows were found");
    assert!(missing.is_empty(), "{missing:#?}");
}

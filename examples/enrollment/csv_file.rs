//! Reads the portal's file: good rows become jobs, bad ones are refused with the line and the reason.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::Path,
    str::Utf8Error,
};

use csv::{ReaderBuilder, StringRecord, Trim};

use crate::job::EnrollJob;

/// The courses of the school.
const COURSES: [&str; 24] = [
    "ALGE-101", "ANAL-201", "ARAB-110", "ASTR-105", "BIOL-110", "BOTA-220", "CHEM-101", "CHIN-120", "CLAS-130",
    "COMP-101", "COMP-240", "DRAW-102", "ECON-101", "GEOG-115", "GREE-110", "HIST-101", "HIST-230", "LING-101",
    "LOGI-150", "MUSI-101", "PHIL-101", "PHYS-101", "PHYS-210", "STAT-140",
];

/// In characters.
const LONGEST_NAME: usize = 120;

/// What the file holds.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    /// How many rows there are, without the header.
    pub(crate) rows: usize,
    /// One job per good row, repeated rows included.
    pub(crate) jobs: Vec<EnrollJob>,
    pub(crate) refused: Vec<Refused>,
}

/// A row that can't be used.
#[derive(Debug)]
pub(crate) struct Refused {
    /// As an editor counts: the header is line 1.
    pub(crate) line: usize,
    pub(crate) reason: Reason,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error("not UTF-8: {0}")]
    NotUtf8(#[from] Utf8Error),
    #[error("a quote is left open")]
    OpenQuote,
    #[error("a quote inside of a name: {0}")]
    StrayQuote(String),
    #[error("it can't be read: {0}")]
    Csv(#[from] csv::Error),
    #[error("2 columns are expected, and {found} found")]
    Columns { found: usize },
    #[error("no student")]
    NoStudent,
    #[error("no course")]
    NoCourse,
    #[error("a name with a control character: {0:?}")]
    ControlCharacter(String),
    #[error("a name of {length} characters, and {LONGEST_NAME} are allowed")]
    TooLong { length: usize },
    #[error("there is no course {0:?}")]
    UnknownCourse(String),
}

/// Reads the whole file.
pub(crate) fn read(path: &Path) -> io::Result<Roster> {
    let mut roster = Roster::default();
    // One line at a time: a quote that is left open then spoils its own row, and not all that follow.
    for (line, bytes) in (1..).zip(BufReader::new(File::open(path)?).split(b'\n')).skip(1) {
        let bytes = bytes?;
        roster.rows += 1;
        match parse(bytes.strip_suffix(b"\r").unwrap_or(&bytes)) {
            Ok(job) => roster.jobs.push(job),
            Err(reason) => roster.refused.push(Refused { line, reason }),
        }
    }
    Ok(roster)
}

fn parse(line: &[u8]) -> Result<EnrollJob, Reason> {
    let line = str::from_utf8(line)?;
    if line.matches('"').count() % 2 == 1 {
        return Err(Reason::OpenQuote);
    }
    let mut reader =
        ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).from_reader(line.as_bytes());
    let mut record = StringRecord::new();
    reader.read_record(&mut record)?;
    let columns: Vec<&str> = record.iter().collect();
    let [student, course] = columns[..] else {
        return Err(Reason::Columns { found: columns.len() });
    };
    let length = student.chars().count();
    if student.is_empty() {
        Err(Reason::NoStudent)
    } else if course.is_empty() {
        Err(Reason::NoCourse)
    } else if student.contains('"') {
        Err(Reason::StrayQuote(student.to_owned()))
    } else if student.contains(char::is_control) {
        Err(Reason::ControlCharacter(student.to_owned()))
    } else if length > LONGEST_NAME {
        Err(Reason::TooLong { length })
    } else if !COURSES.contains(&course) {
        Err(Reason::UnknownCourse(course.to_owned()))
    } else {
        Ok(EnrollJob { student: student.to_owned(), course: course.to_owned() })
    }
}

//! What came of it: the file held against the school's database.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use emq::Ticket;

use crate::{
    csv_file::Roster,
    job::EnrollJob,
    school::{Counted, School, SchoolError},
    supervisor::Strikes,
};

pub(crate) struct Report {
    rows: usize,
    refused: usize,
    enqueued: usize,
    duplicates: usize,
    kills: u64,
    freezes: u64,
    counted: Counted,
    in_database: u64,
    /// In the file, and not in the database.
    lost: usize,
    /// In the database more often than once, or without having been in the file.
    doubled: u64,
}

impl Report {
    pub(crate) async fn draw_up(
        roster: &Roster,
        tickets: &[Ticket<EnrollJob>],
        strikes: &Strikes,
        school: &School,
    ) -> Result<Self, SchoolError> {
        let duplicates = tickets.iter().filter(|ticket| ticket.is_duplicate()).count();
        let wanted: HashSet<&EnrollJob> = roster.jobs.iter().collect();
        let found: HashMap<EnrollJob, u64> = school
            .enrollments()
            .await?
            .into_iter()
            .map(|((student, course), times)| (EnrollJob { student, course }, times))
            .collect();
        let lost = wanted.iter().filter(|job| !found.contains_key(**job)).count();
        let doubled = found.iter().map(|(job, times)| times - u64::from(wanted.contains(job))).sum();
        Ok(Self {
            rows: roster.rows,
            refused: roster.refused.len(),
            enqueued: tickets.len() - duplicates,
            duplicates,
            kills: strikes.kills(),
            freezes: strikes.freezes(),
            counted: school.counted().await?,
            in_database: found.values().sum(),
            lost,
            doubled,
        })
    }

    /// Whether each job had its effect once.
    pub(crate) fn is_clean(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.counted.same_token == 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, freezes, counted, .. } = self;
        let strikes = format!("after {kills} kills and {freezes} freezes");
        let late = format!(
            "runs that came back too late: {} gave up by themselves, {} were refused",
            counted.dropped, counted.refused
        );
        let lines: [(&str, u64, &str); 11] = [
            ("rows read", self.rows as u64, ""),
            ("refused", self.refused as u64, "as listed above"),
            ("enqueued", self.enqueued as u64, ""),
            ("duplicates", self.duplicates as u64, "rows that were there before"),
            ("deliveries", counted.deliveries, "runs that began"),
            ("redeliveries", counted.redeliveries, &strikes),
            ("effect found done", counted.found_done, "by a redelivery: it enrolled nobody again"),
            ("stale completions refused", counted.dropped + counted.refused, &late),
            ("rows in the database", self.in_database, ""),
            ("lost", self.lost as u64, ""),
            ("doubled", self.doubled, ""),
        ];
        for (what, number, remark) in lines {
            let line = format!("  {what:<26}{number:>6}   {remark}");
            writeln!(f, "{}", line.trim_end())?;
        }
        if counted.same_token > 0 {
            writeln!(f, "  {} runs began twice under one fencing token", counted.same_token)?;
        }
        Ok(())
    }
}

//! The school's database: a SQLite file that the portal and all workers have open.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use emq::{JobId, Stats};
use rusqlite::{Connection, TransactionBehavior, params};
use tokio::task::{JoinError, spawn_blocking};

/// `enrollments` has no key that could hide a doubled row: what keeps an effect from happening twice is `effects` alone,
/// and what the others are for is to count.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS enrollments (student TEXT NOT NULL, course TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS effects (job TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS deliveries (job TEXT NOT NULL, fence INTEGER NOT NULL, found_done INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX IF NOT EXISTS delivery ON deliveries (job, fence);
    CREATE TABLE IF NOT EXISTS workers (worker INTEGER PRIMARY KEY, dropped INTEGER NOT NULL, refused INTEGER NOT NULL);
";

/// Longer than a frozen worker can hold the lock of the file.
const BUSY: Duration = Duration::from_secs(20);

/// One process's connection to the database.
#[derive(Clone, Debug)]
pub(crate) struct School {
    db: Arc<Mutex<Connection>>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SchoolError {
    #[error("the school's database: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the school's database was left: {0}")]
    Stopped(#[from] JoinError),
}

/// What was counted.
#[derive(Debug)]
pub(crate) struct Counted {
    /// Runs that began.
    pub(crate) deliveries: u64,
    /// Runs that weren't the first of their job.
    pub(crate) redeliveries: u64,
    /// Runs that found the effect of an earlier one.
    pub(crate) found_done: u64,
    /// Runs that began twice under one fencing token, which must not be.
    pub(crate) same_token: u64,
    /// Runs that were dropped because their lease was lost.
    pub(crate) dropped: u64,
    /// Completions that the server refused because another worker had the job by then.
    pub(crate) refused: u64,
}

impl School {
    /// Opens the file, and makes what isn't there yet.
    pub(crate) fn open(path: &Path) -> Result<Self, SchoolError> {
        let db = Connection::open(path)?;
        db.busy_timeout(BUSY)?;
        db.pragma_update(None, "journal_mode", "wal")?;
        // A killed process loses nothing with that; only a power cut might.
        db.pragma_update(None, "synchronous", "normal")?;
        db.execute_batch(SCHEMA)?;
        Ok(Self { db: Arc::new(Mutex::new(db)) })
    }

    /// Notes that a run of a job has begun.
    pub(crate) async fn note_delivery(&self, id: JobId, fence: u64) -> Result<(), SchoolError> {
        self.with(move |db| {
            db.execute("INSERT INTO deliveries (job, fence) VALUES (?, ?)", params![id.as_str(), fence])?;
            Ok(())
        })
        .await
    }

    /// Enrols a student, unless this job has done so before: the job's id and the enrolment are written together or not
    /// at all.
    pub(crate) async fn enroll(
        &self,
        id: JobId,
        fence: u64,
        student: String,
        course: String,
    ) -> Result<(), SchoolError> {
        self.with(move |db| {
            let both = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let new = both.execute("INSERT INTO effects (job) VALUES (?) ON CONFLICT DO NOTHING", [id.as_str()])? == 1;
            if new {
                both.execute("INSERT INTO enrollments (student, course) VALUES (?, ?)", [student, course])?;
            } else {
                let note = "UPDATE deliveries SET found_done = 1 WHERE job = ? AND fence = ?";
                both.execute(note, params![id.as_str(), fence])?;
            }
            both.commit()
        })
        .await
    }

    /// Keeps what a worker knows of its late runs, as it may be killed before it can tell.
    pub(crate) async fn note_worker(&self, stats: Stats) -> Result<(), SchoolError> {
        let note = "INSERT OR REPLACE INTO workers (worker, dropped, refused) VALUES (?, ?, ?)";
        self.with(move |db| db.execute(note, params![std::process::id(), stats.lost, stats.stale])).await?;
        Ok(())
    }

    /// The enrolments, and how often each is there.
    pub(crate) async fn enrollments(&self) -> Result<HashMap<(String, String), u64>, SchoolError> {
        self.with(|db| {
            let mut rows = db.prepare("SELECT student, course, count(*) FROM enrollments GROUP BY student, course")?;
            rows.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?.collect()
        })
        .await
    }

    /// What was counted along the way.
    pub(crate) async fn counted(&self) -> Result<Counted, SchoolError> {
        let query = "
            WITH runs AS (
                SELECT count(*) AS begun, count(DISTINCT job) AS jobs, count(DISTINCT job || ' ' || fence) AS tokens,
                    coalesce(sum(found_done), 0) AS found_done
                FROM deliveries
            ), late AS (SELECT coalesce(sum(dropped), 0) AS dropped, coalesce(sum(refused), 0) AS refused FROM workers)
            SELECT begun, begun - jobs, found_done, begun - tokens, dropped, refused FROM runs, late";
        self.with(move |db| {
            db.query_row(query, [], |row| {
                Ok(Counted {
                    deliveries: row.get(0)?,
                    redeliveries: row.get(1)?,
                    found_done: row.get(2)?,
                    same_token: row.get(3)?,
                    dropped: row.get(4)?,
                    refused: row.get(5)?,
                })
            })
        })
        .await
    }

    /// Uses the connection on a thread where it may wait.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, SchoolError> {
        let db = Arc::clone(&self.db);
        Ok(spawn_blocking(move || work(&mut db.lock().unwrap_or_else(PoisonError::into_inner))).await??)
    }
}

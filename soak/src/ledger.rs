//! The ledger: a SQLite file into which all processes write what happens, in one order.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use emq::{JobContext, JobId, Stats};
use rusqlite::{Connection, TransactionBehavior, params};
use tokio::task::{JoinError, spawn_blocking};

use crate::event::{Event, Slot, What};

/// `effects` has no key that could hide a doubled one: what keeps an effect from happening twice is `done` alone.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS done (job TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS effects (job TEXT NOT NULL, fence INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, job TEXT NOT NULL,
        fence INTEGER NOT NULL, pid INTEGER NOT NULL, what TEXT NOT NULL, number INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS events_of_a_job ON events (job);
    CREATE TABLE IF NOT EXISTS slots (name TEXT NOT NULL, at INTEGER NOT NULL, job TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS strikes (time INTEGER NOT NULL, what TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS workers (pid INTEGER PRIMARY KEY, claimed INTEGER, lost INTEGER, stale INTEGER,
        unsettled INTEGER, released INTEGER, dropped INTEGER, reconnects INTEGER);
";

/// Far longer than a frozen worker can hold the lock of the file: what isn't noted would be a failure of the job.
const BUSY: Duration = Duration::from_secs(120);

/// What all workers counted, as far as they came to tell it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) workers: u64,
    pub(crate) claimed: u64,
    pub(crate) lost: u64,
    pub(crate) stale: u64,
    pub(crate) unsettled: u64,
    pub(crate) released: u64,
    pub(crate) dropped: u64,
    pub(crate) reconnects: u64,
}

/// One process's connection to the ledger.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    db: Arc<Mutex<Connection>>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LedgerError {
    #[error("the ledger: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the ledger was left: {0}")]
    Stopped(#[from] JoinError),
}

impl Ledger {
    /// Opens the file, and makes what isn't there yet.
    pub(crate) fn open(path: &Path) -> Result<Self, LedgerError> {
        let db = Connection::open(path)?;
        db.busy_timeout(BUSY)?;
        db.pragma_update(None, "journal_mode", "wal")?;
        // A killed process loses nothing with that; only a power cut might.
        db.pragma_update(None, "synchronous", "off")?;
        db.execute_batch(SCHEMA)?;
        Ok(Self { db: Arc::new(Mutex::new(db)) })
    }

    /// Notes that a run has begun.
    pub(crate) async fn begin(&self, ctx: &JobContext) -> Result<(), LedgerError> {
        self.note_number(ctx.id(), ctx.fence(), What::Begin, ctx.stalls().into()).await
    }

    /// Notes something of a run.
    pub(crate) async fn note(&self, id: JobId, fence: u64, what: What) -> Result<(), LedgerError> {
        self.note_number(id, fence, what, 0).await
    }

    /// The same, with a number.
    pub(crate) async fn note_number(&self, id: JobId, fence: u64, what: What, n: u64) -> Result<(), LedgerError> {
        self.with(move |db| note(db, id, fence, what, n)).await
    }

    /// How often something was noted of a job.
    pub(crate) async fn count(&self, id: JobId, what: What) -> Result<u64, LedgerError> {
        let count = "SELECT count(*) FROM events WHERE job = ? AND what = ?";
        self.with(move |db| db.query_row(count, [id.as_str(), what.word()], |row| row.get(0))).await
    }

    /// Whether a run with a newer token has begun.
    pub(crate) async fn is_overtaken(&self, id: JobId, fence: u64) -> Result<bool, LedgerError> {
        self.with(move |db| Ok(newest(db, id)? > Some(fence))).await
    }

    /// Notes that a job runs for a slot of a recurring job.
    pub(crate) async fn slot(&self, name: String, slot: SystemTime, id: JobId) -> Result<(), LedgerError> {
        let note = "INSERT INTO slots (name, at, job) VALUES (?, ?, ?)";
        self.with(move |db| db.execute(note, params![name, unix_ms(slot), id.as_str()])).await?;
        Ok(())
    }

    /// Has the effect of a job, unless it has been had, or a run with a newer token has begun.
    pub(crate) async fn effect(&self, id: JobId, fence: u64) -> Result<(), LedgerError> {
        self.with(move |db| {
            let all = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let what = if newest(&all, id)? > Some(fence) {
                What::Overtaken
            } else if all.execute("INSERT INTO done (job) VALUES (?) ON CONFLICT DO NOTHING", [id.as_str()])? == 0 {
                What::FoundDone
            } else {
                all.execute("INSERT INTO effects (job, fence) VALUES (?, ?)", params![id.as_str(), fence])?;
                What::Effect
            };
            note(&all, id, fence, what, 0)?;
            all.commit()
        })
        .await
    }

    /// Notes what the driver did.
    pub(crate) async fn strike(&self, what: String) -> Result<(), LedgerError> {
        self.with(move |db| db.execute("INSERT INTO strikes (time, what) VALUES (?, ?)", params![now(), what])).await?;
        Ok(())
    }

    /// Keeps what this worker has counted, as it may be killed before it can tell.
    pub(crate) async fn tell(&self, stats: Stats) -> Result<(), LedgerError> {
        let Stats { claimed, lost, stale, unsettled, released, dropped, reconnects, .. } = stats;
        let tell = "INSERT OR REPLACE INTO workers VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        self.with(move |db| {
            let pid = std::process::id();
            db.execute(tell, params![pid, claimed, lost, stale, unsettled, released, dropped, reconnects])
        })
        .await?;
        Ok(())
    }

    /// How many jobs a worker has claimed, as it told; 0 before it has told anything.
    pub(crate) async fn claimed_by(&self, pid: u32) -> Result<u64, LedgerError> {
        let claimed = "SELECT coalesce(sum(claimed), 0) FROM workers WHERE pid = ?";
        self.with(move |db| db.query_row(claimed, [pid], |row| row.get(0))).await
    }

    /// Some jobs of late with a token of theirs after which a newer one has begun.
    pub(crate) async fn overtaken(&self) -> Result<Vec<(String, u64)>, LedgerError> {
        let overtaken = "SELECT job, min(fence) FROM events
            WHERE what = 'begin' AND seq > (SELECT coalesce(max(seq), 0) - 1000 FROM events)
            GROUP BY job HAVING min(fence) < max(fence) ORDER BY max(seq) DESC LIMIT 10";
        self.with(|db| db.prepare(overtaken)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()).await
    }

    /// Everything that was noted, in its order.
    pub(crate) async fn events(&self) -> Result<Vec<Event>, LedgerError> {
        self.with(|db| {
            let mut rows = db.prepare("SELECT seq, time, job, fence, pid, what, number FROM events ORDER BY seq")?;
            rows.query_map([], |row| {
                let what = row.get::<_, String>(5)?.parse();
                Ok(Event {
                    seq: row.get(0)?,
                    time: row.get(1)?,
                    job: row.get(2)?,
                    fence: row.get(3)?,
                    pid: row.get(4)?,
                    what: what.map_err(|()| rusqlite::Error::InvalidQuery)?,
                    number: row.get(6)?,
                })
            })?
            .collect()
        })
        .await
    }

    /// The slots of recurring jobs that anything has run for, once for each run.
    pub(crate) async fn slots(&self) -> Result<Vec<Slot>, LedgerError> {
        self.with(|db| {
            let mut rows = db.prepare("SELECT name, at, job FROM slots")?;
            rows.query_map([], |row| Ok(Slot { name: row.get(0)?, at: row.get(1)?, job: row.get(2)? }))?.collect()
        })
        .await
    }

    /// The jobs whose effect was had, once for each time.
    pub(crate) async fn effects(&self) -> Result<Vec<String>, LedgerError> {
        self.with(|db| db.prepare("SELECT job FROM effects")?.query_map([], |row| row.get(0))?.collect()).await
    }

    /// What the driver did, with its times.
    pub(crate) async fn strikes(&self) -> Result<Vec<(i64, String)>, LedgerError> {
        self.with(|db| {
            let mut rows = db.prepare("SELECT time, what FROM strikes ORDER BY time")?;
            rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
        .await
    }

    /// The sum of what the workers told.
    pub(crate) async fn told(&self) -> Result<Told, LedgerError> {
        let sums = "SELECT count(*), coalesce(sum(claimed), 0), coalesce(sum(lost), 0), coalesce(sum(stale), 0),
            coalesce(sum(unsettled), 0), coalesce(sum(released), 0), coalesce(sum(dropped), 0),
            coalesce(sum(reconnects), 0) FROM workers";
        self.with(move |db| {
            db.query_row(sums, [], |row| {
                Ok(Told {
                    workers: row.get(0)?,
                    claimed: row.get(1)?,
                    lost: row.get(2)?,
                    stale: row.get(3)?,
                    unsettled: row.get(4)?,
                    released: row.get(5)?,
                    dropped: row.get(6)?,
                    reconnects: row.get(7)?,
                })
            })
        })
        .await
    }

    /// Uses the connection on a thread where it may wait.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let db = Arc::clone(&self.db);
        Ok(spawn_blocking(move || work(&mut db.lock().unwrap_or_else(PoisonError::into_inner))).await??)
    }
}

fn note(db: &Connection, id: JobId, fence: u64, what: What, number: u64) -> rusqlite::Result<()> {
    let note = "INSERT INTO events (time, job, fence, pid, what, number) VALUES (?, ?, ?, ?, ?, ?)";
    db.execute(note, params![now(), id.as_str(), fence, std::process::id(), what.word(), number])?;
    Ok(())
}

/// The newest token under which a run has begun.
fn newest(db: &Connection, id: JobId) -> rusqlite::Result<Option<u64>> {
    let newest = "SELECT max(fence) FROM events WHERE job = ? AND what = 'begin'";
    db.query_row(newest, [id.as_str()], |row| row.get(0))
}

/// Now, in ms.
pub(crate) fn now() -> i64 {
    unix_ms(SystemTime::now())
}

pub(crate) fn unix_ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

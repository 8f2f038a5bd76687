//! What a run tells of itself while it goes on.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::BoxFuture;

use crate::store::{CallError, Lease, Store};

/// The largest progress, encoded, in bytes: 64 KiB.
pub(super) const MAX_PROGRESS: usize = 64 * 1024;

/// Why a run's progress or a line of its log wasn't kept.
///
/// # Examples
///
/// ```
/// # async fn example(ctx: emq::JobContext) {
/// use emq::inject::ReportError;
///
/// if let Err(ReportError::Stale) = ctx.log("half of it is done").await {
///     // The job is somebody else's: the run is about to be dropped.
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The run doesn't hold its job any more; nothing was written.
    #[error("the run doesn't hold its job any more; nothing was written")]
    Stale,
    /// The value can't be encoded as JSON.
    #[error("the progress can't be encoded as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// The value is larger than what is kept.
    #[error("the progress has {size} bytes, and the limit is {limit}; store it elsewhere and tell where it is")]
    TooLarge {
        /// Encoded, in bytes.
        size: usize,
        /// In bytes.
        limit: usize,
    },
    /// The server didn't carry it out, or didn't say so.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// What a run has told of itself, where there is no server: in a test.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let ctx = emq::JobContext::for_test();
/// ctx.progress(&(3, 10)).await.unwrap();
/// ctx.log("three of ten").await.unwrap();
/// let reports = ctx.reports();
/// assert_eq!(reports.progress, Some(serde_json::json!([3, 10])));
/// assert_eq!(reports.log, ["three of ten"]);
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reports {
    /// Its last progress.
    pub progress: Option<serde_json::Value>,
    /// The lines of its log.
    pub log: Vec<String>,
}

/// Where a run's reports go.
#[derive(Clone)]
pub(crate) enum Reporter {
    Server(Store),
    /// There is none: they are kept for a test.
    Recorder(Arc<Mutex<Reports>>),
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server(_) => "Server",
            Self::Recorder(_) => "Recorder",
        })
    }
}

impl Reporter {
    pub(crate) fn recorder() -> Self {
        Self::Recorder(Arc::default())
    }

    /// Whether the lease holds still.
    pub(super) fn progress(&self, lease: Lease, value: String) -> BoxFuture<'static, Result<bool, CallError>> {
        match self.clone() {
            Self::Server(store) => Box::pin(async move { store.progress(&lease, value).await }),
            Self::Recorder(reports) => {
                reports.lock().unwrap_or_else(PoisonError::into_inner).progress = serde_json::from_str(&value).ok();
                Box::pin(std::future::ready(Ok(true)))
            }
        }
    }

    /// Whether the lease holds still.
    pub(super) fn log(&self, lease: Lease, n: u64, line: String) -> BoxFuture<'static, Result<bool, CallError>> {
        match self.clone() {
            Self::Server(store) => Box::pin(async move { store.log(&lease, n, &line).await }),
            Self::Recorder(reports) => {
                reports.lock().unwrap_or_else(PoisonError::into_inner).log.push(line);
                Box::pin(std::future::ready(Ok(true)))
            }
        }
    }

    pub(super) fn reports(&self) -> Reports {
        match self {
            Self::Server(_) => Reports::default(),
            Self::Recorder(reports) => reports.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

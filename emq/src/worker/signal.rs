/// Done when the process is asked to end: by SIGTERM or Ctrl-C on Unix, by Ctrl-C elsewhere.
///
/// # Panics
///
/// If it isn't awaited in a tokio runtime with I/O enabled.
///
/// # Cancel safety
///
/// Dropping the future forgets the wish to know. On Unix the process still doesn't end by itself on these signals
/// afterwards: once listened for, they stay handled.
///
/// # Examples
///
/// ```no_run
/// # async fn example(worker: emq::Worker) -> Result<(), emq::RunError> {
/// worker.run_until(emq::shutdown_signal()).await?;
/// # Ok(()) }
/// ```
pub async fn shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    () = interrupt() => {}
                }
            }
            Err(error) => {
                tracing::warn!(%error, "SIGTERM can't be listened for");
                interrupt().await;
            }
        }
    }
    #[cfg(not(unix))]
    interrupt().await;
}

async fn interrupt() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::warn!(%error, "Ctrl-C can't be listened for");
        std::future::pending::<()>().await;
    }
}

use super::{
    MAX_BATCH, Store,
    error::CallError,
    reply::Reply,
    script::{Script, number, script},
};

pub(super) static SCRIPT: Script<14, 2> = script!("obliterate", uses "clock", "guard", "waiting", "lanes", "unique");

impl Store {
    /// Deletes a slice of everything; how many jobs, and whether there is more. `None` if workers hold jobs.
    pub(crate) async fn obliterate(&self, force: bool) -> Result<Option<(u64, bool)>, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with(
            [
                keys.rows.clone(),
                keys.pending.clone(),
                keys.active.clone(),
                keys.schedule.clone(),
                keys.dead.clone(),
                keys.done.clone(),
                keys.marker.clone(),
                keys.meta.clone(),
                keys.claims.clone(),
                keys.completed.clone(),
                keys.failed.clone(),
                keys.recurring.clone(),
                keys.records.clone(),
                keys.root.clone(),
            ],
            [number(MAX_BATCH as u64), number(u8::from(force))],
        );
        match self.connection.call(call).await {
            Ok(answer) => {
                let mut reply = Reply::list("obliterate", answer.value)?;
                Ok(Some((reply.count()?, reply.integer()? == 1)))
            }
            Err(error) if error.is_code("EMQLOCK") => Ok(None),
            Err(error) => Err(error),
        }
    }
}

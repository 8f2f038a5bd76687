use super::{
    Store,
    error::CallError,
    reply::Reply,
    script::{Script, number, script},
};

pub(super) static SCRIPT: Script<1, 2> = script!("list_lanes");

/// A lane in which jobs wait.
///
/// # Examples
///
/// ```no_run
/// # async fn example(queue: emq::Queue) -> Result<(), emq::CallError> {
/// for emq::ListedLane { name, waiting, .. } in queue.lanes(0, 10).await? {
///     println!("{waiting:6} {name}");
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedLane {
    /// Its name.
    pub name: String,
    /// How many of its jobs wait.
    pub waiting: u64,
}

impl Store {
    /// Up to `count` (at most 1 000) lanes in which jobs wait, after the first `offset`; that with the most in front.
    pub(crate) async fn list_lanes(&self, offset: u64, count: usize) -> Result<Vec<ListedLane>, CallError> {
        let keys = &self.keys;
        let offset = offset.min(u64::from(u32::MAX));
        let count = count.clamp(1, super::MAX_BATCH) as u64;
        let call = SCRIPT.with([keys.root.clone()], [number(offset), number(count)]);
        let mut reply = Reply::list("list_lanes", self.connection.call(call).await?.value)?;
        let mut lanes = Vec::with_capacity(reply.len() / 2);
        while reply.len() > 0 {
            let name = String::from_utf8_lossy(&reply.bytes()?).into_owned();
            let waiting: f64 = reply.lenient_number()?.unwrap_or(0.0);
            lanes.push(ListedLane { name, waiting: waiting.max(0.0) as u64 });
        }
        Ok(lanes)
    }
}

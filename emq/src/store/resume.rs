use super::{
    Store,
    error::CallError,
    reply::{unexpected, word},
    script::{Script, script},
};
use crate::job::LaneName;

pub(super) static SCRIPT: Script<3, 1> = script!("resume", uses "guard", "waiting", "lanes");

impl Store {
    /// Lets the queue, or one lane of it, go on that was paused or held back.
    pub(crate) async fn resume(&self, lane: Option<&LaneName>) -> Result<(), CallError> {
        let keys = &self.keys;
        let call =
            SCRIPT.with([keys.meta.clone(), keys.marker.clone(), keys.root.clone()], [LaneName::on_wire(lane).into()]);
        let answer = self.connection.call(call).await?;
        match word("resume", &answer.value)?.as_str() {
            "OK" => Ok(()),
            _ => Err(unexpected("resume", &answer.value)),
        }
    }
}

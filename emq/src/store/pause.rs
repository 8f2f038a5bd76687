use super::{
    Store,
    error::CallError,
    reply::{unexpected, word},
    script::{Script, script},
};
use crate::job::LaneName;

pub(super) static SCRIPT: Script<2, 1> = script!("pause", uses "guard", "waiting", "lanes");

impl Store {
    /// Lets nothing more of the queue, or of one lane of it, be claimed.
    pub(crate) async fn pause(&self, lane: Option<&LaneName>) -> Result<(), CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with([keys.meta.clone(), keys.root.clone()], [LaneName::on_wire(lane).into()]);
        let answer = self.connection.call(call).await?;
        match word("pause", &answer.value)?.as_str() {
            "OK" => Ok(()),
            _ => Err(unexpected("pause", &answer.value)),
        }
    }
}

use super::{
    Rate, Store,
    error::CallError,
    reply::{unexpected, word},
    script::{Script, script},
};
use crate::job::LaneName;

pub(super) static SCRIPT: Script<2, 3> = script!("tune", uses "guard", "waiting", "lanes");

/// What can be set of a queue or a lane; `None` takes it away.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    /// How many jobs may be active.
    Concurrency(Option<u32>),
    /// How many jobs a turn has; of a lane.
    Weight(Option<u32>),
    /// How many jobs may start in some time.
    Rate(Option<Rate>),
}

impl Setting {
    fn on_wire(self) -> (&'static str, String) {
        let text = |n: Option<u32>| n.map_or_else(String::new, |n| n.to_string());
        match self {
            Self::Concurrency(limit) => ("concurrency", text(limit)),
            Self::Weight(weight) => ("weight", text(weight)),
            Self::Rate(rate) => ("rate", rate.map_or_else(String::new, Rate::on_wire)),
        }
    }
}

impl Store {
    /// Sets, or takes away, a limit of the queue, or a limit or the weight of one lane of it.
    pub(crate) async fn tune(&self, lane: Option<&LaneName>, setting: Setting) -> Result<(), CallError> {
        let keys = &self.keys;
        let (name, value) = setting.on_wire();
        let call = SCRIPT.with(
            [keys.marker.clone(), keys.root.clone()],
            [LaneName::on_wire(lane).into(), name.into(), value.into()],
        );
        let answer = self.connection.call(call).await?;
        match word("tune", &answer.value)?.as_str() {
            "OK" => Ok(()),
            _ => Err(unexpected("tune", &answer.value)),
        }
    }
}

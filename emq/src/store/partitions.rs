use super::{
    Store,
    error::CallError,
    reply::unexpected,
    script::{Script, number, script},
};

pub(super) static SCRIPT: Script<1, 1> = script!("partitions", uses "guard");

impl Store {
    /// How many partitions this queue ever had; from now on `at_least` so many. 1 only looks.
    pub(crate) async fn partitions(&self, at_least: u16) -> Result<u16, CallError> {
        let keys = &self.keys;
        let call = SCRIPT.with([keys.meta.clone()], [number(at_least)]);
        let value = self.connection.call(call).await?.value;
        let ever = value.as_u64().ok_or_else(|| unexpected("partitions", &value))?;
        Ok(u16::try_from(ever).unwrap_or(u16::MAX))
    }
}

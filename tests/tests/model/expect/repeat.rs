//! What has to be on the server of recurring jobs.

use super::Wanted;
use crate::verb::Template;

impl Wanted<'_> {
    pub(super) fn recurring(&mut self) {
        let model = self.model;
        for (name, recurring) in &model.recurring {
            let key = format!("repeat:{name:?}");
            let score = recurring.next.filter(|_| !recurring.paused);
            let score = score.map_or_else(|| "inf".to_owned(), |slot| slot.to_string());
            self.text("repeat", "zset", &format!("{name:?}"), &score);
            for (field, value) in recurring.template.fields() {
                self.text(&key, "hash", field, &value);
            }
            let slot = |slot: Option<i64>| slot.map(|slot| slot.to_string()).unwrap_or_default();
            self.text(&key, "hash", "digest", &recurring.template.digest());
            self.text(&key, "hash", "schedule", &Template::schedule_text(recurring.template.schedule));
            self.text(&key, "hash", "start", &recurring.start);
            self.text(&key, "hash", "next", &slot(recurring.next));
            if let Some(held) = recurring.held {
                self.text(&key, "hash", "held", &held);
            }
            if recurring.paused {
                self.text(&key, "hash", "paused", &1);
            }
            if let Some((last, job)) = recurring.last {
                self.text(&key, "hash", "last", &slot(last));
                self.text(&key, "hash", "job", &format!("{job:?}"));
            }
        }
    }
}

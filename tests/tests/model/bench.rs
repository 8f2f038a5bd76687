//! A server of its own, with what a sequence needs to call it, to look into it and to move its time.

use std::time::Duration;

use emq::{Claimer, Client, JobId, Queue};
use support::{Dump, Raw, Server};

use crate::expect::Brackets;
use crate::facts::{Facts, Short};
use crate::verb::{EXCHANGER, HOUR, Right, Slot, WORKERS};

/// Takes time off everything that has one, which is as good as letting it pass.
const ADVANCE: &str = "
local prefix, wait = ARGV[1], tonumber(ARGV[2])
for _, set in ipairs({'active', 'schedule', 'parked', 'dead', 'done', 'held', 'windows'}) do
    for _, id in ipairs(redis.call('ZRANGE', prefix .. set, 0, -1)) do
        -- What is due at once in any case.
        if id ~= '*' then redis.call('ZINCRBY', prefix .. set, -wait, id) end
    end
end
local claims = redis.call('HGETALL', prefix .. 'claims')
for i = 1, #claims, 2 do
    local request, at, took = string.match(claims[i + 1], '^([^|]*)|([^|]*)|(.*)$')
    local note = request .. '|' .. string.format('%.0f', tonumber(at) - wait) .. '|' .. took
    redis.call('HSET', prefix .. 'claims', claims[i], note)
end
local function later(key, field, pattern)
    local text = redis.call('HGET', key, field)
    local before, at = string.match(text or '', pattern)
    if at then redis.call('HSET', key, field, before .. string.format('%.3f', tonumber(at) - wait)) end
end
for _, lane in ipairs(redis.call('HKEYS', prefix .. 'grate')) do later(prefix .. 'grate', lane, '^(%d+ %d+ %d+ )(.+)$') end
later(prefix .. 'meta', 'rate', '^(%d+ %d+ %d+ )(.+)$')
local function sooner(key, field)
    local at = redis.call('HGET', key, field)
    if at then redis.call('HSET', key, field, string.format('%.0f', tonumber(at) - wait)) end
end
sooner(prefix .. 'meta', 'held')
for _, lane in ipairs(redis.call('HKEYS', prefix .. 'gheld')) do sooner(prefix .. 'gheld', lane) end
for i = 3, #ARGV do
    local row = prefix .. 'job:' .. ARGV[i]
    for _, field in ipairs({'expires', 'latest', 'due', 'unique'}) do
        local words, at = string.match(redis.call('HGET', row, field) or '', '^(.-)(%d+)$')
        if at and words ~= 'after ' then
            redis.call('HSET', row, field, words .. string.format('%.0f', tonumber(at) - wait))
        end
    end
end
for _, key in ipairs(redis.call('KEYS', '*')) do
    local left = redis.call('PTTL', key)
    if left >= 0 then redis.call('PEXPIRE', key, left - wait) end
end
return 'OK'
";

pub(crate) struct Bench {
    _server: Server,
    client: Client,
    raw: Raw,
    listener: Raw,
    sequences: u64,
}

/// One sequence's queue.
pub(crate) struct Stage<'a> {
    pub(crate) client: &'a Client,
    pub(crate) raw: &'a mut Raw,
    listener: &'a mut Raw,
    pub(crate) queue: Queue,
    pub(crate) prefix: String,
    pub(crate) ids: Vec<JobId>,
    pub(crate) claimers: [Option<Claimer>; WORKERS],
    /// The last request of the worker that exchanges, and whether its answer is owed.
    pub(crate) request: u64,
    pub(crate) owed: bool,
    /// The jobs that were plain when they were claimed last, as far as the claim was heard.
    pub(crate) plain: Vec<Right>,
    /// The names of all workers there ever were, and whose place they had.
    pub(crate) names: Vec<(String, usize)>,
    pub(crate) brackets: Brackets,
    /// The server's clock when it was last looked at.
    pub(crate) now: i64,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        let server = Server::start().await;
        // With a number of its own the client needs no key for it, and all keys are the queue's.
        let client = Client::builder(server.url()).node(1).connect().await.expect("the server answers");
        let raw = Raw::connect(&server).await;
        let mut listener = Raw::connect(&server).await;
        listener.line("PSUBSCRIBE emq:*:events").await;
        // A script that the server doesn't know takes two messages, and a claim whose answer nobody waits for sends only
        // the first.
        let warm = client.queue("warm").expect("a good name");
        warm.claimer("warm").claim(1).await.expect("the server answers");
        Self { _server: server, client, raw, listener, sequences: 0 }
    }

    /// An empty server.
    pub(crate) async fn stage(&mut self) -> Stage<'_> {
        self.raw.line("FLUSHALL").await;
        self.sequences += 1;
        let name = format!("model-{}", self.sequences);
        let queue = self.client.queue(&name).expect("a good name");
        let mut stage = Stage {
            client: &self.client,
            raw: &mut self.raw,
            listener: &mut self.listener,
            queue,
            claimers: std::array::from_fn(|_| None),
            request: 0,
            owed: false,
            plain: Vec::new(),
            names: Vec::new(),
            prefix: format!("emq:{{{name}}}:"),
            ids: Slot::NUMBERS.iter().filter_map(|n| JobId::from_number(*n).ok()).collect(),
            brackets: Brackets::default(),
            now: 0,
        };
        (0..WORKERS).for_each(|worker| drop(stage.renew(worker)));
        stage.names.push(("exchanger".to_owned(), EXCHANGER));
        stage
    }
}

impl Stage<'_> {
    pub(crate) fn id(&self, slot: Slot) -> JobId {
        self.ids[slot.0]
    }

    pub(crate) fn slot(&self, id: JobId) -> Result<Slot, String> {
        let found = self.ids.iter().position(|known| *known == id);
        found.map(Slot).ok_or_else(|| format!("a strange id: {id}"))
    }

    /// Puts a new worker into the place of another.
    pub(crate) fn renew(&mut self, worker: usize) -> Option<Claimer> {
        let claimer = self.queue.claimer("w");
        self.names.push((claimer.worker().to_owned(), worker));
        self.claimers[worker].replace(claimer)
    }

    /// Everything that is on the server.
    pub(crate) async fn facts(&mut self) -> Facts {
        let dump = Dump::of(self.raw, "*").await;
        let ids = self.ids.iter().enumerate().map(|(n, id)| (id.to_string(), format!("J{n}")));
        let workers = self.names.iter().map(|(name, worker)| (name.clone(), format!("w{worker}")));
        let mut short = vec![(self.prefix.clone(), String::new())];
        short.extend(ids.chain(workers));
        Facts::of(&dump, &Short(short))
    }

    /// The server's clock in ms.
    pub(crate) async fn time(&mut self) -> i64 {
        let reply = self.raw.line("TIME").await;
        let part = |n: usize| reply.items()[n].text().parse::<i64>().expect("a number");
        part(0) * 1_000 + part(1) / 1_000
    }

    /// Waits for the next ms of the server, so that what two verbs write is never of the same. It looks at the clock
    /// until then, which is no more than a few times.
    pub(crate) async fn tick(&mut self) -> i64 {
        let last = self.now;
        while self.now <= last {
            self.now = self.time().await;
        }
        self.now
    }

    pub(crate) async fn advance(&mut self, wait: i64) {
        let mut command = vec!["EVAL".to_owned(), ADVANCE.to_owned(), "0".to_owned(), self.prefix.clone()];
        command.push(wait.to_string());
        command.extend(self.ids.iter().map(ToString::to_string));
        let reply = self.raw.command(&command).await;
        assert!(!reply.is_error(), "{reply}");
    }

    /// In how many ms a key goes.
    pub(crate) async fn left(&mut self, key: &str) -> i64 {
        let key = format!("{}{key}", self.prefix);
        self.raw.line(&format!("PTTL {key}")).await.int()
    }

    /// What those who listen were told, since this was asked last.
    pub(crate) async fn events(&mut self) -> Result<Vec<(String, Slot)>, String> {
        let channel = format!("{}events", self.prefix);
        self.raw.line(&format!("PUBLISH {channel} end")).await;
        let mut events = Vec::new();
        loop {
            let message = self.listener.receive().await.map_err(|error| error.to_string())?;
            let [_, _, from, text] = message.items() else { return Err(format!("not a message: {message}")) };
            // What a sequence that failed before has left.
            if from.text() != channel {
                continue;
            }
            if text.text() == "end" {
                return Ok(events);
            }
            let event: serde_json::Value = serde_json::from_str(text.text()).map_err(|error| error.to_string())?;
            let field = |name: &str| event[name].as_str().unwrap_or_default();
            let id = field("job").parse().map_err(|error| format!("{event}: {error}"))?;
            events.push((field("event").to_owned(), self.slot(id)?));
        }
    }
}

/// A wait of the model.
pub(crate) fn ms(wait: i64) -> Duration {
    debug_assert!(wait % (HOUR / 2) == 0, "{wait}");
    Duration::from_millis(wait.unsigned_abs())
}

//! apalis-redis.

use std::time::Duration;

use ::apalis::prelude::*;
use apalis_redis::{Config, RedisStorage};
use redis::aio::ConnectionManager;

use crate::{LOOK, Order, Result, body, ready};

const QUEUE: &str = "bench";

/// More in one call are no faster.
const BULK: usize = 500;

/// A worker that finds more than 8 000 jobs due fails for good, with every job due at its push: so what was pushed is put
/// where the worker would put it, in portions.
const MOVE: &str = "
local due = redis.call('ZRANGE', KEYS[1], 0, 4999)
if #due > 0 then
    redis.call('RPUSH', KEYS[2], unpack(due))
    redis.call('ZREM', KEYS[1], unpack(due))
end
return #due
";

pub(crate) async fn run(order: &Order, locks: bool) -> Result<()> {
    let mut connection = apalis_redis::connect(order.url.as_str()).await?;
    // Its batches are as large as they can be: with its locks, 500 end its worker by a timeout.
    let config = Config::default().queue(QUEUE).emit_events(false).lock_tasks(locks);
    let config = config.batch_size(if locks { 100 } else { 200 });
    let mut storage = RedisStorage::new(connection.clone()).with_config(config);
    match order.task.as_str() {
        "enqueue-one" => {
            let clock = ready().await?;
            for _ in 0..order.jobs {
                storage.push(body()).await?;
            }
            clock.done();
        }
        "enqueue-many" => {
            let clock = ready().await?;
            push(&mut storage, order.jobs).await?;
            clock.done();
        }
        _ => {
            push(&mut storage, order.jobs).await?;
            while redis::Script::new(MOVE)
                .key(format!("{QUEUE}:scheduled"))
                .key(format!("{QUEUE}:active"))
                .invoke_async::<usize>(&mut connection)
                .await?
                > 0
            {}
            let storage = storage.poll_with_interval(Duration::from_millis(10));
            let worker = WorkerBuilder::new("bench").backend(storage).concurrency(order.concurrency).build(noop);
            let clock = ready().await?;
            let running = tokio::spawn(worker.run());
            while finished(&mut connection).await? < order.jobs {
                if running.is_finished() {
                    running.await??;
                    return Err("the worker ended before its jobs".into());
                }
                tokio::time::sleep(LOOK).await;
            }
            clock.done();
            running.abort();
        }
    }
    Ok(())
}

async fn push(storage: &mut RedisStorage<String, ConnectionManager>, jobs: usize) -> Result<()> {
    let mut left = jobs;
    while left > 0 {
        let count = left.min(BULK);
        storage.push_bulk(vec![body(); count]).await?;
        left -= count;
    }
    Ok(())
}

async fn finished(connection: &mut ConnectionManager) -> Result<usize> {
    Ok(redis::cmd("SCARD").arg(format!("{QUEUE}:done")).query_async(connection).await?)
}

async fn noop(_: String) -> std::result::Result<(), BoxDynError> {
    Ok(())
}

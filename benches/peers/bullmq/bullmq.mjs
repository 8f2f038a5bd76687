// BullMQ at the same work; benches/src/peers.rs says what this is called with, and what it prints.

import { createInterface } from "node:readline";
import { Queue, Worker } from "bullmq";

const QUEUE = "bench";
const BULK = 1000;

const [, task, url, jobsText, concurrencyText] = process.argv.slice(2);
const jobs = Number(jobsText);
const { hostname: host, port } = new URL(url);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const data = { body: "x".repeat(89) };
const removeOnComplete = true;

// Says that all is prepared, and waits until it may begin.
async function ready() {
    const input = createInterface({ input: process.stdin });
    const line = new Promise((resolve) => input.once("line", resolve));
    console.log("ready");
    await line;
    input.close();
    const [begun, cpu] = [performance.now(), process.cpuUsage()];
    return () => {
        const { user, system } = process.cpuUsage(cpu);
        console.log(`done ${Math.round((performance.now() - begun) * 1000)} ${user + system}`);
    };
}

async function addAll(queue) {
    for (let left = jobs; left > 0; left -= BULK) {
        const count = Math.min(left, BULK);
        await queue.addBulk(Array.from({ length: count }, () => ({ name: "noop", data })));
    }
}

const queue = new Queue(QUEUE, { connection, defaultJobOptions: { removeOnComplete } });
await queue.waitUntilReady();
if (task === "enqueue-one") {
    const done = await ready();
    for (let n = 0; n < jobs; n += 1) await queue.add("noop", data);
    done();
} else if (task === "enqueue-many") {
    const done = await ready();
    await addAll(queue);
    done();
} else {
    await addAll(queue);
    const options = { connection, concurrency: Number(concurrencyText), removeOnComplete, autorun: false };
    const worker = new Worker(QUEUE, async () => {}, { ...options, removeOnComplete: { count: 0 } });
    await worker.waitUntilReady();
    let completed = 0;
    const all = new Promise((resolve, reject) => {
        worker.on("completed", () => {
            completed += 1;
            if (completed === jobs) resolve();
        });
        worker.on("failed", (_, error) => reject(error));
    });
    const done = await ready();
    worker.run();
    await all;
    done();
}
// Its connections would keep it alive.
process.exit(0);

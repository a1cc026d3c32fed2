// Worker threads with shared memory, and the thread pool of libuv: digests, compression, files.
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib'), fs = require('fs'), util = require('util');

if (!isMainThread) {
    const counter = new Int32Array(workerData);
    let kept = [];
    for (let i = 0; i < 20000; i++) {
        Atomics.add(counter, 0, 1);
        kept.push({ i, text: 'x'.repeat(i % 50) });
        if (kept.length > 2000) kept = [];
    }
    parentPort.postMessage(crypto.createHash('sha256').update(String(workerData.byteLength)).digest('hex'));
} else (async () => {
    const shared = new SharedArrayBuffer(4);
    const workers = [...Array(4)].map(() => new Promise((done, failed) => {
        const worker = new Worker(__filename, { workerData: shared });
        worker.on('message', done).on('error', failed);
    }));
    const derive = util.promisify(crypto.pbkdf2), pack = util.promisify(zlib.gzip), unpack = util.promisify(zlib.gunzip);
    const jobs = [...Array(64)].map(async (_, n) => {
        const key = await derive('password', String(n), 500, 32, 'sha256');
        const text = Buffer.alloc(20000, key);
        const same = (await unpack(await pack(text))).equals(text);
        const size = (await fs.promises.stat(__filename)).size;
        return [key.toString('hex'), same, size];
    });
    const digest = crypto.createHash('sha256').update(JSON.stringify(await Promise.all(jobs)));
    digest.update(JSON.stringify(await Promise.all(workers)));
    console.log(digest.digest('hex'), new Int32Array(shared)[0]);
})();

const { Worker, isMainThread, workerData } = require('worker_threads');
const fs = require('fs');
if (isMainThread) {
  const shared = new SharedArrayBuffer(4);
  for (let i = 0; i < 4; i++) new Worker(__filename, { workerData: shared });
} else {
  const word = new Int32Array(workerData);  // 0: free, 1: locked, 2: locked, with waiters
  const file = fs.openSync('journal', 'a');
  const lock = () => {
    if (Atomics.compareExchange(word, 0, 0, 1) === 0) return;
    while (Atomics.exchange(word, 0, 2) !== 0) Atomics.wait(word, 0, 2);
  };
  const unlock = () => { if (Atomics.exchange(word, 0, 0) === 2) Atomics.notify(word, 0, 1); };
  for (let i = 0; i < 1500; i++) {
    lock();
    fs.writeSync(file, 'sold\n');
    fs.fdatasyncSync(file);
    unlock();
  }
}

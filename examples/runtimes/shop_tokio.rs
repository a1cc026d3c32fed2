use std::sync::{Arc, Mutex};
use std::time::Duration;

async fn order(cache: Arc<Mutex<Vec<u64>>>, item: u64) {
    tokio::time::sleep(Duration::from_micros(item % 7 * 100)).await;
    refill(&cache, item);
}

fn refill(cache: &Mutex<Vec<u64>>, item: u64) {
    let mut cache = cache.lock().unwrap();
    std::thread::sleep(Duration::from_micros(200)); // a blocking call with the lock
    cache.push(item);
}

#[tokio::main(worker_threads = 4)]
async fn main() {
    let cache = Arc::new(Mutex::new(Vec::new()));
    let orders: Vec<_> = (0..4000).map(|item| tokio::spawn(order(cache.clone(), item))).collect();
    for order in orders {
        order.await.unwrap();
    }
}

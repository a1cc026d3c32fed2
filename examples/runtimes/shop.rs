use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;
use std::thread;

static STOCK: Mutex<[u64; 1024]> = Mutex::new([0; 1024]);
static JOURNAL: Mutex<Option<File>> = Mutex::new(None);

fn sell(item: usize) -> u64 {
    let mut stock = STOCK.lock().unwrap();
    stock[item % 1024] += 1;
    stock.iter().sum()
}

fn write_journal(sold: u64) {
    let mut journal = JOURNAL.lock().unwrap();
    let file = journal.get_or_insert_with(|| File::create("journal").unwrap());
    writeln!(file, "sold {sold}").unwrap();
    file.sync_data().unwrap();
}

fn serve(server: &TcpListener) {
    loop {
        let (mut client, _) = server.accept().unwrap();
        let mut request = [0; 4096];
        let length = client.read(&mut request).unwrap();
        if request.starts_with(b"GET /end") {
            std::process::exit(0);
        }
        let sold = sell(length);
        write_journal(sold);
        write!(client, "HTTP/1.0 200 OK\r\n\r\nsold\n").unwrap();
    }
}

fn main() {
    let server = TcpListener::bind("127.0.0.1:7979").unwrap();
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| serve(&server)))));
}

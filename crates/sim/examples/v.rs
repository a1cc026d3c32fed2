use spinpark_platform::Event;
use spinpark_sim::machine::Machine;
use spinpark_sim::workload::Setting;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let machine = &args[1];
    let workload = &args[2];
    let tasks: u32 = args[3].parse().unwrap();
    let ms: u64 = args[4].parse().unwrap();
    for lock in args[5].split(',') {
        let machine = Machine::load(machine).unwrap();
        let mut setting = Setting::new(machine, lock, workload, tasks);
        setting.for_ns = ms * 1_000_000;
        let start = std::time::Instant::now();
        let report = setting.run().unwrap();
        let wall = start.elapsed().as_secs_f64();
        let o = &report.outcome;
        let c = &o.counts;
        let n = report.total().max(1) as f64;
        println!(
            "{lock}: {:.0} ops/s  wall {wall:.1}s events {:.1}M util {:.3} el {} fail {:?}",
            report.throughput(),
            c.events as f64 / 1e6,
            o.utilisation(),
            o.elapsed_ns,
            o.failure
        );
        println!(
            "  per op: moves {:.1} ({:.1}/{:.1}/{:.1}) switches {:.2} wakes {:.2} migr {:.2} preempt {:.3}",
            c.moves() as f64 / n,
            c.moves_near as f64 / n,
            c.moves_socket as f64 / n,
            c.moves_far as f64 / n,
            c.switches as f64 / n,
            c.wakes as f64 / n,
            c.migrations as f64 / n,
            c.preemptions as f64 / n
        );
        println!(
            "  spin acq {:.3} left-changed {:.3} left-off {:.3} parked {:.3}",
            c.of(Event::SpinAcquired) as f64 / n,
            c.of(Event::SpinLeftOwnerChanged) as f64 / n,
            c.of(Event::SpinLeftOffCpu) as f64 / n,
            c.of(Event::Parked) as f64 / n
        );
        let t: Vec<_> = o.threads.iter().collect();
        let sum = |f: fn(&spinpark_sim::ThreadTimes) -> u64| {
            t.iter().map(|t| f(t)).sum::<u64>() as f64 / t.len() as f64 / 1e6
        };
        println!(
            "  per thread ms: cpu {:.2} spinning {:.2} runnable {:.2} asleep {:.2}",
            sum(|t| t.on_cpu_ns),
            sum(|t| t.spinning_ns),
            sum(|t| t.runnable_ns),
            sum(|t| t.asleep_ns)
        );
        for p in &report.places {
            println!(
                "  {}: acq {} cont {:.3} wait mean {:.0} ns longest {:.0} hold mean {:.0} ns longest {:.0} passed {}",
                p.name,
                p.acquisitions,
                p.contended as f64 / p.acquisitions as f64,
                p.wait_ns / p.acquisitions as f64,
                p.longest_wait_ns,
                p.hold_ns / p.acquisitions as f64,
                p.longest_hold_ns,
                p.most_passed
            );
            let tot = p.waits.total().max(1) as f64;
            println!(
                "   {}",
                p.waits
                    .bins()
                    .iter()
                    .enumerate()
                    .filter(|(_, n)| **n > 0)
                    .map(|(b, n)| format!("{b}:{:.1}%", *n as f64 / tot * 100.0))
                    .collect::<Vec<_>>()
                    .join(" ")
            );
        }
    }
}

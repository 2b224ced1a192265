//! What is counted, and the JSON object made of it: compare/PROTOCOL.md.

use crate::load::{stream_check, Load, Operation};
use redis::Value;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

const WARMING: u8 = 0;
const OPEN: u8 = 1;
const OVER: u8 = 2;

/// What a command brought, or that it failed.
pub type Reply = Result<Value, ()>;

/// Counts of all callers.
pub struct Tally {
    phase: AtomicU8,
    total: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    wrong: AtomicU64,
    errors: AtomicU64,
    gets: AtomicU64,
    sets: AtomicU64,
    most: AtomicU64,
    buckets: Vec<AtomicU64>,
}

/// What the window was.
pub struct Window {
    seconds: f64,
    cpu: u64,
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Tally {
    pub fn new() -> Tally {
        let zero = || AtomicU64::new(0);
        Tally {
            phase: AtomicU8::new(WARMING),
            total: zero(),
            hits: zero(),
            misses: zero(),
            wrong: zero(),
            errors: zero(),
            gets: zero(),
            sets: zero(),
            most: zero(),
            buckets: std::iter::repeat_with(zero).take(64 * 58).collect(),
        }
    }

    /// Opens and closes the window, and then returns.
    pub async fn window(&self, warmup: f64, duration: f64) -> Window {
        tokio::time::sleep(Duration::from_secs_f64(warmup)).await;
        let (opened, cpu) = (Instant::now(), cpu_time());
        self.phase.store(OPEN, Relaxed);
        tokio::time::sleep(Duration::from_secs_f64(duration)).await;
        let window = Window { seconds: opened.elapsed().as_secs_f64(), cpu: cpu_time() - cpu };
        self.phase.store(OVER, Relaxed);
        window
    }

    pub fn is_over(&self) -> bool {
        self.phase.load(Relaxed) == OVER
    }

    pub fn sent(&self, operation: Operation) {
        add(if operation.is_set { &self.sets } else { &self.gets });
    }

    pub fn count(&self, load: &Load, operation: Operation, reply: &Reply, took: Duration) {
        let mut within = self.phase.load(Relaxed) == OPEN;
        match reply {
            Err(_) | Ok(Value::ServerError(_)) => return add(&self.errors),
            Ok(Value::Okay) if operation.is_set => {}
            Ok(Value::Nil) if !operation.is_set => {
                if within {
                    add(&self.misses);
                }
                within = within && load.options.misses;
            }
            Ok(Value::BulkString(value)) if !operation.is_set && !load.options.misses && value == load.value(operation) => {
                if within {
                    add(&self.hits);
                }
            }
            Ok(_) => return add(&self.wrong),
        }
        if within {
            let took = took.as_nanos() as u64;
            add(&self.total);
            add(&self.buckets[bucket_of(took)]);
            self.most.fetch_max(took, Relaxed);
        }
    }

    fn percentile(&self, share: f64) -> u64 {
        let most = self.most.load(Relaxed);
        let rank = ((share * self.total.load(Relaxed) as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count.load(Relaxed);
            if seen >= rank {
                return bucket_end(bucket).min(most);
            }
        }
        most
    }

    pub fn report(&self, load: &Load, window: &Window, connections: usize, notes: &[String]) -> String {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        let latencies = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99_9", 0.999), ("max", 1.0)]
            .map(|(name, share)| format!("\"{name}\": {}", self.percentile(share)));
        format!(
            "{{\"schema\": \"redis-client-compare-peer/1\", \"client\": \"redis-rs\", \"version\": \"{}\", \
             \"runtime\": \"{}\", \"operation\": \"{}\", \"ops_per_sec\": {:.1}, \"duration_sec\": {:.6}, \
             \"total_ops\": {}, \"hits\": {}, \"misses\": {}, \"wrong\": {}, \"errors\": {}, \"latency\": {{{}}}, \
             \"cpu_ns\": {}, \"all_get\": {}, \"all_set\": {}, \"connections\": {}, \"stream_check\": \"{:#x}\", \
             \"notes\": [{}]}}",
            env!("CLIENT_VERSION"),
            env!("RUNTIME_VERSION"),
            load.options.operation,
            of(&self.total) as f64 / window.seconds,
            window.seconds,
            of(&self.total),
            of(&self.hits),
            of(&self.misses),
            of(&self.wrong),
            of(&self.errors),
            latencies.join(", "),
            window.cpu,
            of(&self.gets),
            of(&self.sets),
            connections,
            stream_check(load.options.seed),
            notes.iter().map(|note| format!("\"{note}\"")).collect::<Vec<_>>().join(", "),
        )
    }
}

/// User and system time of all threads, in nanoseconds.
fn cpu_time() -> u64 {
    // SAFETY: the structure is plain numbers, and is filled before it is read.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    nanos(usage.ru_utime) + nanos(usage.ru_stime)
}

// 64 buckets for every power of two; below 128 one for every number.
fn bucket_of(value: u64) -> usize {
    if value < 128 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() as usize - 6;
    shift * 64 + (value >> shift) as usize
}

fn bucket_end(bucket: usize) -> u64 {
    if bucket < 128 {
        return bucket as u64;
    }
    let shift = bucket / 64 - 1;
    (((bucket - shift * 64 + 1) as u64) << shift) - 1
}

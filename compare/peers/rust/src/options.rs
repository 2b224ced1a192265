//! The command line: compare/PROTOCOL.md.

use std::fmt::Display;
use std::str::FromStr;

#[derive(Clone)]
pub struct Options {
    pub host: String,
    pub port: u16,
    pub cluster: bool,
    pub operation: String,
    /// A draw whose lower half is below this is a SET.
    pub set_below: u64,
    pub misses: bool,
    pub in_flight: usize,
    pub batches: bool,
    pub batch: usize,
    pub keys: u64,
    pub key_size: usize,
    pub value_size: usize,
    /// Seconds.
    pub warmup: f64,
    /// Seconds.
    pub duration: f64,
    pub seed: u64,
    pub connections: usize,
}

impl Options {
    /// Callers, and the commands that each has at once.
    pub fn callers(&self) -> usize {
        if self.batches {
            self.in_flight / self.batch
        } else {
            self.in_flight
        }
    }
}

pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        host: "127.0.0.1".to_string(),
        port: 6379,
        cluster: false,
        operation: "get".to_string(),
        set_below: 0,
        misses: false,
        in_flight: 1,
        batches: false,
        batch: 64,
        keys: 100_000,
        key_size: 16,
        value_size: 512,
        warmup: 1.0,
        duration: 2.0,
        seed: 1,
        connections: 1,
    };
    while let Some(flag) = arguments.next() {
        match flag.as_str() {
            "--cluster" => options.cluster = true,
            "--misses" => options.misses = true,
            name => {
                let value = arguments.next().ok_or(format!("{name}: unknown, or has no value"))?;
                set(&mut options, name, value)?;
            }
        }
    }
    options.set_below = match options.operation.as_str() {
        "get" => 0,
        "set" => 1 << 32,
        "mixed" => 858_993_459,
        other => return Err(format!("--operation {other}: get, set or mixed")),
    };
    if options.in_flight == 0 || options.batch == 0 || options.keys == 0 || options.connections == 0 {
        return Err("in-flight, batch, keys and connections are at least 1".to_string());
    }
    if options.batches && options.in_flight % options.batch != 0 {
        return Err("--in-flight: not a multiple of the batch".to_string());
    }
    Ok(options)
}

fn set(options: &mut Options, flag: &str, value: String) -> Result<(), String> {
    match flag {
        "--host" => options.host = value,
        "--port" => options.port = number(flag, &value)?,
        "--operation" => options.operation = value,
        "--in-flight" => options.in_flight = number(flag, &value)?,
        "--style" => {
            options.batches = match value.as_str() {
                "wait" => false,
                "batch" => true,
                _ => return Err(format!("--style {value}: wait or batch")),
            }
        }
        "--batch" => options.batch = number(flag, &value)?,
        "--keys" => options.keys = number(flag, &value)?,
        "--key-size" => options.key_size = number(flag, &value)?,
        "--value-size" => options.value_size = number(flag, &value)?,
        "--warmup" => options.warmup = number(flag, &value)?,
        "--duration" => options.duration = number(flag, &value)?,
        "--seed" => options.seed = number(flag, &value)?,
        "--connections" => options.connections = number(flag, &value)?,
        "--json" if value == "-" => {}
        _ => return Err(format!("{flag} {value}: unknown")),
    }
    Ok(())
}

fn number<T: FromStr>(flag: &str, value: &str) -> Result<T, String>
where
    T::Err: Display,
{
    value.parse().map_err(|problem| format!("{flag} {value}: {problem}"))
}

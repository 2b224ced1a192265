//! The comparison's program around redis-rs: compare/PROTOCOL.md.
//!
//! A caller is a task of tokio. All callers share a multiplexed connection, of which each has a
//! clone; a cluster's connection has one to each node.

mod load;
mod options;
mod tally;

use futures_util::future::join_all;
use load::{Load, Operation};
use options::Options;
use redis::aio::ConnectionLike;
use redis::cluster::ClusterClient;
use redis::{cmd, Client, Cmd, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally::{Reply, Tally};
use tokio::runtime::Builder;

/// Primaries of the comparison's cluster.
const PRIMARIES: usize = 5;

fn main() {
    let result = options::parse(std::env::args().skip(1)).and_then(run);
    match result {
        Ok(report) => println!("{report}"),
        Err(problem) => {
            eprintln!("redis-rs: {problem}");
            std::process::exit(1);
        }
    }
}

fn run(options: Options) -> Result<String, String> {
    // As many threads as it may use cores; with one, a runtime without a pool of threads.
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    // Otherwise a variable of the environment says how many.
    let runtime = builder.worker_threads(threads).enable_all().build().map_err(|problem| problem.to_string())?;
    let notes = [format!("threads of tokio: {threads}"), "tcp_nodelay".to_string()];
    runtime.block_on(async {
        let load = Arc::new(Load::new(options));
        let address = format!("redis://{}:{}", load.options.host, load.options.port);
        let connect = async {
            if load.options.cluster {
                let client = ClusterClient::new(vec![address])?;
                let mut connections = Vec::new();
                for _ in 0..load.options.connections {
                    connections.push(client.get_async_connection().await?);
                }
                Ok(measure(&load, connections, &notes, PRIMARIES).await)
            } else {
                let client = Client::open(address)?;
                let mut connections = Vec::new();
                for _ in 0..load.options.connections {
                    connections.push(client.get_multiplexed_async_connection().await?);
                }
                Ok(measure(&load, connections, &notes, 1).await)
            }
        };
        connect.await.map_err(|problem: redis::RedisError| problem.to_string())
    })
}

async fn measure<C>(load: &Arc<Load>, connections: Vec<C>, notes: &[String], nodes: usize) -> String
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
{
    let tally = Arc::new(Tally::new());
    let callers: Vec<_> = (0..load.options.callers())
        .map(|caller| {
            let connection = connections[caller % connections.len()].clone();
            tokio::spawn(call(load.clone(), tally.clone(), connection, caller))
        })
        .collect();
    let window = tally.window(load.options.warmup, load.options.duration).await;
    for caller in callers {
        caller.await.expect("a caller does not panic");
    }
    tally.report(load, &window, connections.len() * nodes, notes)
}

async fn call<C: ConnectionLike + Clone + Send + Sync>(load: Arc<Load>, tally: Arc<Tally>, mut connection: C, caller: usize) {
    let mut stream = load.stream(caller);
    // One reading of the clock for each command that waits, as in our program: the next one begins where the last one ended.
    let mut begun = Instant::now();
    while !tally.is_over() {
        let failed = if load.options.batches {
            let operations: Vec<Operation> = stream.by_ref().take(load.options.batch).collect();
            operations.iter().for_each(|&operation| tally.sent(operation));
            let replies =
                if load.options.cluster { together(&load, &operations, &connection).await } else { pipeline(&load, &operations, &mut connection).await };
            let took = since(&mut begun);
            operations.iter().zip(&replies).for_each(|(&operation, reply)| tally.count(&load, operation, reply, took));
            replies.iter().any(Result::is_err)
        } else {
            let operation = stream.next().expect("a stream does not end");
            tally.sent(operation);
            let reply = command(&load, operation).query_async(&mut connection).await.map_err(drop);
            tally.count(&load, operation, &reply, since(&mut begun));
            reply.is_err()
        };
        if failed {
            // A server that is gone fails commands faster than it ever answered them.
            tokio::time::sleep(Duration::from_millis(1)).await;
            begun = Instant::now();
        }
    }
}

fn since(begun: &mut Instant) -> Duration {
    let now = Instant::now();
    now.duration_since(std::mem::replace(begun, now))
}

fn command(load: &Load, operation: Operation) -> Cmd {
    if operation.is_set {
        let mut command = cmd("SET");
        command.arg(load.key(operation)).arg(load.value(operation));
        command
    } else {
        let mut command = cmd("GET");
        command.arg(load.key(operation));
        command
    }
}

async fn pipeline(load: &Load, operations: &[Operation], connection: &mut impl ConnectionLike) -> Vec<Reply> {
    let mut pipeline = redis::pipe();
    for &operation in operations {
        pipeline.add_command(command(load, operation));
    }
    match pipeline.query_async::<Vec<Value>>(connection).await {
        Ok(replies) => replies.into_iter().map(Ok).collect(),
        // It tells of the first that failed, and withholds what the others brought.
        Err(_) => operations.iter().map(|_| Err(())).collect(),
    }
}

/// A pipeline of a cluster must not leave one slot, so there a batch is that many commands at once.
async fn together<C: ConnectionLike + Clone>(load: &Load, operations: &[Operation], connection: &C) -> Vec<Reply> {
    join_all(operations.iter().map(|&operation| {
        let mut connection = connection.clone();
        async move { command(load, operation).query_async(&mut connection).await.map_err(drop) }
    }))
    .await
}

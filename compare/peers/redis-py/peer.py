"""The comparison's program around redis-py: compare/PROTOCOL.md.

    peer.py threads|asyncio --host …
    peer.py --version

A caller is a thread with redis-py's blocking client, or a task with its other
one. Both lend a caller a connection for each command, or for each batch.
"""

import asyncio
import sys
import threading
import time

import hiredis
import uvloop
from load import OPEN, OVER, Load, Tally, Window, parse_options, report, stream

# redis-py wants hiredis 3.2, for push messages of RESP3, and would else take its parser in Python,
# which no one would choose for speed. Debian has 2.3, which is enough: nothing here is pushed.
HIREDIS_VERSION = hiredis.__version__
hiredis.__version__ = "3.2.0"

import redis  # noqa: E402
import redis.asyncio  # noqa: E402
import redis.asyncio.cluster  # noqa: E402
import redis.cluster  # noqa: E402
from redis.exceptions import RedisError  # noqa: E402

MASTERS = 5


def threads(options, load):
    if options.cluster:
        client = redis.cluster.RedisCluster(host=options.host, port=options.port)
    else:
        client = redis.Redis(host=options.host, port=options.port)
        client.ping()
    window = Window()
    tallies = [Tally(options, load) for _ in range(options.callers)]

    def waiter(operations, tally):
        # The clock is read once for each command: the next one begins where the last one ended.
        begun = time.perf_counter_ns()
        for number, is_set in operations:
            if window.phase == OVER:
                return
            try:
                if is_set:
                    tally.sets += 1
                    reply = client.set(load.keys[number], load.values[number])
                else:
                    tally.gets += 1
                    reply = client.get(load.keys[number])
            except RedisError as error:
                reply = error
            now = time.perf_counter_ns()
            tally.count(window.phase == OPEN, number, is_set, reply, now - begun)
            begun = now

    def batcher(operations, tally):
        while window.phase != OVER:
            begun = time.perf_counter_ns()
            # A cluster's pipeline knows no transaction.
            pipeline = client.pipeline() if options.cluster else client.pipeline(transaction=False)
            sent = fill(pipeline, operations, tally, options, load)
            replies = pipeline.execute(raise_on_error=False)
            took, within = time.perf_counter_ns() - begun, window.phase == OPEN
            for (number, is_set), reply in zip(sent, replies):
                tally.count(within, number, is_set, reply, took)

    call = batcher if options.style == "batch" else waiter
    callers = [
        threading.Thread(target=call, args=(stream(options, caller), tally)) for caller, tally in enumerate(tallies)
    ]
    for caller in callers:
        caller.start()
    time.sleep(options.warmup)
    window.open()
    time.sleep(options.duration)
    window.close()
    for caller in callers:
        caller.join()
    return window, tallies


def fill(pipeline, operations, tally, options, load):
    """Puts the next batch into a pipeline; says what it is."""
    sent = []
    for operation in operations:
        number, is_set = operation
        if is_set:
            tally.sets += 1
            pipeline.set(load.keys[number], load.values[number])
        else:
            tally.gets += 1
            pipeline.get(load.keys[number])
        sent.append(operation)
        if len(sent) == options.batch:
            break
    return sent


async def tasks(options, load):
    async def connect():
        if options.cluster:
            return await redis.asyncio.cluster.RedisCluster(host=options.host, port=options.port)
        client = redis.asyncio.Redis(host=options.host, port=options.port)
        await client.ping()
        return client

    client = await connect()
    window = Window()
    tallies = [Tally(options, load) for _ in range(options.callers)]

    async def waiter(operations, tally):
        # The clock is read once for each command: the next one begins where the last one ended.
        begun = time.perf_counter_ns()
        for number, is_set in operations:
            if window.phase == OVER:
                return
            try:
                if is_set:
                    tally.sets += 1
                    reply = await client.set(load.keys[number], load.values[number])
                else:
                    tally.gets += 1
                    reply = await client.get(load.keys[number])
            except RedisError as error:
                reply = error
            now = time.perf_counter_ns()
            tally.count(window.phase == OPEN, number, is_set, reply, now - begun)
            begun = now

    async def batcher(operations, tally):
        while window.phase != OVER:
            begun = time.perf_counter_ns()
            pipeline = client.pipeline() if options.cluster else client.pipeline(transaction=False)
            sent = fill(pipeline, operations, tally, options, load)
            replies = await pipeline.execute(raise_on_error=False)
            took, within = time.perf_counter_ns() - begun, window.phase == OPEN
            for (number, is_set), reply in zip(sent, replies):
                tally.count(within, number, is_set, reply, took)

    call = batcher if options.style == "batch" else waiter
    callers = [
        asyncio.create_task(call(stream(options, caller), tally)) for caller, tally in enumerate(tallies)
    ]
    await asyncio.sleep(options.warmup)
    window.open()
    await asyncio.sleep(options.duration)
    window.close()
    await asyncio.gather(*callers)
    return window, tallies


def main(how, *arguments):
    if how == "--version":
        print(redis.__version__)
        return
    options = parse_options(arguments)
    load = Load(options)
    parser = redis.connection.DefaultParser.__name__
    notes = ["a connection for each caller", f"reply parser: {parser}, hiredis {HIREDIS_VERSION}"]
    try:
        if how == "threads":
            name, (window, tallies) = "redis-py", threads(options, load)
        else:
            name = "redis-py asyncio"
            notes.append(f"uvloop {uvloop.__version__}")
            window, tallies = uvloop.run(tasks(options, load))
    except (RedisError, OSError) as error:
        sys.exit(f"redis-py: {error}")
    connections = options.callers * (MASTERS if options.cluster else 1)
    report(options, window, tallies, name, redis.__version__, connections, notes)


if __name__ == "__main__":
    main(*sys.argv[1:])

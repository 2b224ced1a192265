"""The options, the stream of operations and the counts: compare/PROTOCOL.md."""

import argparse
import json
import platform
import resource
import time

WORD = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
SET_BELOW = {"get": 0, "set": 1 << 32, "mixed": 858993459}
WARMING, OPEN, OVER = range(3)


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def parse_options(arguments):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--operation", choices=list(SET_BELOW), default="get")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--in-flight", type=int, default=1)
    parser.add_argument("--style", choices=["wait", "batch"], default="wait")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--keys", type=int, default=100000)
    parser.add_argument("--key-size", type=int, default=16)
    parser.add_argument("--value-size", type=int, default=512)
    parser.add_argument("--warmup", type=float, default=1)
    parser.add_argument("--duration", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    # A connection of redis-py serves one caller at a time.
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--json", choices=["-"], default="-")
    options = parser.parse_args(arguments)
    if options.style == "batch" and options.in_flight % options.batch != 0:
        parser.error("--in-flight: not a multiple of the batch")
    options.callers = options.in_flight // options.batch if options.style == "batch" else options.in_flight
    return options


class Load:
    """Keys, and the value of each, as bytes; made before the clock starts."""

    def __init__(self, options):
        prefix = "mis:" if options.misses else "key:"
        width = options.key_size - len(prefix)
        self.keys = [(prefix + str(n).zfill(width)).encode() for n in range(options.keys)]
        block = bytearray()
        state = 1
        for _ in range(4096 + options.value_size):
            block.append(97 + (((mix(state) >> 32) * 26) >> 32))
            state = (state + GAMMA) & WORD
        slices = [bytes(block[start : start + options.value_size]) for start in range(4096)]
        self.values = [slices[mix(n) & 4095] for n in range(options.keys)]


def stream(options, caller):
    """The operations of one caller: (number of the key, is it a SET)."""
    state = mix((options.seed + mix(caller + 1)) & WORD)
    keys, set_below = options.keys, SET_BELOW[options.operation]
    while True:
        state = (state + GAMMA) & WORD
        # `mix`, without a call of it.
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        z ^= z >> 31
        yield ((z >> 32) * keys) >> 32, (z & 0xFFFFFFFF) < set_below


def stream_check(seed):
    state, total = mix((seed + mix(1)) & WORD), 0
    for _ in range(1000):
        state = (state + GAMMA) & WORD
        total += mix(state)
    return hex(total & WORD)


class Tally:
    """What one caller counts; `merge` adds up what several did."""

    def __init__(self, options, load):
        self.misses_are_right, self.load = options.misses, load
        self.total = self.hits = self.misses = self.wrong = self.errors = self.gets = self.sets = self.most = 0
        self.buckets = {}

    def count(self, within, number, is_set, reply, took):
        """A reply, or the exception in its place, that took so many nanoseconds."""
        if isinstance(reply, Exception):
            self.errors += 1
            return
        if is_set:
            if reply is not True:
                self.wrong += 1
                return
        elif reply is None:
            self.misses += within
            within = within and self.misses_are_right
        elif reply == self.load.values[number] and not self.misses_are_right:
            self.hits += within
        else:
            self.wrong += 1
            return
        if within:
            self.total += 1
            if took > self.most:
                self.most = took
            # 64 buckets for every power of two, by the end of each.
            shift = max(0, took.bit_length() - 7)
            end = (((took >> shift) + 1) << shift) - 1
            self.buckets[end] = self.buckets.get(end, 0) + 1

    def merge(self, other):
        for name in ("total", "hits", "misses", "wrong", "errors", "gets", "sets"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.most = max(self.most, other.most)
        for end, count in other.buckets.items():
            self.buckets[end] = self.buckets.get(end, 0) + count

    def percentile(self, share):
        seen = 0
        for end, count in sorted(self.buckets.items()):
            seen += count
            if seen >= share * self.total:
                return min(end, self.most)
        return self.most


class Window:
    """Whether replies count, and whether callers go on."""

    def __init__(self):
        self.phase = WARMING

    @staticmethod
    def cpu():
        use = resource.getrusage(resource.RUSAGE_SELF)
        return use.ru_utime + use.ru_stime

    def open(self):
        self.opened, self.cpu_opened = time.perf_counter(), self.cpu()
        self.phase = OPEN

    def close(self):
        self.seconds, self.cpu_used = time.perf_counter() - self.opened, self.cpu() - self.cpu_opened
        self.phase = OVER


def report(options, window, tallies, client, version, connections, notes):
    tally = tallies[0]
    for other in tallies[1:]:
        tally.merge(other)
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "max": 1}
    result = {
        "schema": "redis-client-compare-peer/1", "client": client, "version": version,
        "runtime": "python " + platform.python_version(), "operation": options.operation,
        "ops_per_sec": tally.total / window.seconds, "duration_sec": window.seconds, "total_ops": tally.total,
        "hits": tally.hits, "misses": tally.misses, "wrong": tally.wrong, "errors": tally.errors,
        "latency": {name: tally.percentile(share) for name, share in shares.items()},
        "cpu_ns": round(window.cpu_used * 1e9), "all_get": tally.gets, "all_set": tally.sets,
        "connections": connections, "stream_check": stream_check(options.seed), "notes": notes,
    }
    print(json.dumps(result), flush=True)

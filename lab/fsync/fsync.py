#!/usr/bin/env python3
"""Measures SETs to a server that syncs its log before each reply, by the number of connections.

    fsync.py [--rounds N] [--sizes N,N] [--connections N,N] [--seconds S] [--seed N]
    fsync.py --check

Fifty callers, each of whom waits for its reply, share so many connections of "redis-client bench"; beside
them "redis-benchmark" with fifty. Each run has a new private server, on core 0, with its files in a temporary
folder (TMPDIR decides the disk); it does not rewrite its log meanwhile. The load is on core 1. The order of a
round is random. Said are the medians, with the slowest and the fastest. Raw data and table: results/fsync/. It begins
once no other program keeps the machine busy (scripts/quiet.sh). --check makes one short round, and says no figures.
Exit status: 0, or 2 if it could not be measured.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "pair"))

import builds  # noqa: E402
import judge  # noqa: E402
import kept  # noqa: E402
import lone  # noqa: E402
import pair  # noqa: E402
from builds import Trouble  # noqa: E402

CALLERS, KEYS = 50, 10000
REFERENCE = "redis-benchmark"


def output(words):
    done = subprocess.run(["taskset", "-c", "1", *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Trouble(f"{words[0]}: {done.stderr.strip()}")
    return done.stdout


def ours(program, server, connections, size, options, folder):
    """SETs in a second."""
    file = pathlib.Path(folder, "run.json")
    words = [program, "bench", "--host", "127.0.0.1", "--port", server.port, "--test", "set", "--value-size", size, "--keys", KEYS]
    words += ["--threads", CALLERS, "--batch", 1, "--mux-count", connections, "--duration", options.seconds, "--warmup", 0.5]
    output([*words, "--json", file, "--allow", "saturation,little"])
    return json.loads(file.read_text())["runs"][0]["ops_per_sec"]


def theirs(server, size, options):
    def rate(requests):
        words = [REFERENCE, "-p", server.port, "-t", "set", "-d", size, "-c", CALLERS, "-r", KEYS, "-n", requests, "--csv"]
        return float(output(words).splitlines()[1].split('","')[1])

    # It takes a number of requests: the second time, as many as take the time.
    return rate(max(1000, int(rate(2000) * options.seconds)))


def measure(options):
    program = builds.own_program("redis-client")
    builds.quiet()
    rows = [*map(str, options.connections), REFERENCE]
    found = {str(size): {row: [] for row in rows} for size in options.sizes}
    cells = [(size, row) for size in options.sizes for row in rows]
    order = random.Random(options.seed)
    for number in range(1, options.rounds + 1):
        for size, row in order.sample(cells, len(cells)):
            durable = ["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"]
            with tempfile.TemporaryDirectory() as folder, contextlib.closing(lone.Server(folder, *durable)) as server:
                os.sched_setaffinity(server.process.pid, {0})
                rate = theirs(server, size, options) if row == REFERENCE else ours(program, server, row, size, options, folder)
                found[str(size)][row].append(rate)
                version = server.version()
        pair.say(f"round {number} of {options.rounds}")
    if options.check:
        print(f"all run, {version}")
        return
    document = {**kept.about(), "client": {"commit": builds.commit_of("HEAD")}, "server": version, "settings": vars(options), "raw": found}
    kept.keep("fsync", document, markdown(document))


def markdown(document):
    raw = document["raw"]
    rows = list(next(iter(raw.values())))
    lines = ["| value | " + " | ".join(row if row == REFERENCE else f"{row} connection{'s' * (row != '1')}" for row in rows) + " |", "|--:" * (len(rows) + 1) + "|"]
    for size, found in raw.items():
        told = [f"{judge.median(rates) / 1e3:.1f} k ({min(rates) / 1e3:.1f}–{max(rates) / 1e3:.1f})" for rates in found.values()]
        lines.append(f"| {size} B | " + " | ".join(told) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="fsync.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: %(default)s")
    parser.add_argument("--sizes", type=kept.numbers, default=[3, 3000], metavar="N,N", help="default: 3,3000")
    parser.add_argument("--connections", type=kept.numbers, default=[1, 4, 50], metavar="N,N", help="default: 1,4,50")
    parser.add_argument("--seconds", type=float, default=4, metavar="S", help="of a run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), metavar="N", help="decides the orders (default: any)")
    parser.add_argument("--check", action="store_true", help="one short round, unmeasured")
    options = parser.parse_args()
    if options.check:
        options.rounds, options.connections, options.seconds = 1, [1], 0.3
    try:
        measure(options)
    except Trouble as trouble:
        print(f"fsync: {trouble}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

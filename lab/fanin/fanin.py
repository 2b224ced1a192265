#!/usr/bin/env python3
"""Measures how fast messages of one channel are taken on one connection, beside hiredis.

    fanin.py [--rounds N] [--messages N] [--bytes N] [--seed N]
    fanin.py --check

A private server, a publisher that sends PUBLISH without waiting, and one program that
takes the messages: ours (client/bench, benchmark "fanin"), or one in C (take.c) with
hiredis. Each round measures each twice, in random order: "live", while they are
published, where the server is mostly what is slow; and "backlog", where the program
stands still until all were published, so that the server only hands out what it has and
the program is what is slow.

The figure is ours over hiredis's, in messages per second, of the same round. It misses
its bar if the whole interval is below. Raw data and table: results/fanin/. --check takes
a few messages, and says no figures. Exit status: 0 no figure missed, 1 one did, 2 it
could not be measured.
"""

import argparse
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "pair"))

import builds  # noqa: E402
import judge  # noqa: E402
import kept  # noqa: E402
import lone  # noqa: E402
import pair  # noqa: E402
from builds import Trouble  # noqa: E402

# Of what hiredis takes in the same time.
BOUND = 0.85
WAYS = ("live", "backlog")


class Server(lone.Server):
    """One that keeps for a subscriber whatever it does not take."""

    def __init__(self, folder):
        super().__init__(folder, "--client-output-buffer-limit", "pubsub 0 0 0")

    def publish(self, count, size):
        """Publishes so many messages, and waits for all replies: each has one listener."""
        batch = 1000
        block = lone.request("PUBLISH", "fanin", b"x" * size) * batch
        wanted = b":1\r\n" * batch
        sent = 0
        while sent < count:
            self.connection.sendall(block)
            got = b""
            while len(got) < len(wanted):
                more = self.connection.recv(1 << 20)
                if not more:
                    raise Trouble("the server hung up")
                got += more
            if got != wanted:
                raise Trouble("a message had no listener")
            sent += batch


def taken(server, program, way, options):
    """One run: nanoseconds, those of the processor."""
    with subprocess.Popen([*program, str(server.port), str(options.messages)], stdout=subprocess.PIPE, text=True) as process:
        if process.stdout.readline() != "ready\n":
            raise Trouble(f"{program[0]} does not listen")
        if way == "backlog":
            process.send_signal(signal.SIGSTOP)
        try:
            server.publish(options.messages, options.bytes)
        finally:
            process.send_signal(signal.SIGCONT)
        answer = process.stdout.readline().split()
        if len(answer) != 3:
            raise Trouble(f"{program[0]} ended")
    nanoseconds, spent, size = map(int, answer)
    if size != options.messages * options.bytes:
        raise Trouble(f"{program[0]} took {size} bytes")
    return {"ns": nanoseconds, "cpu": spent}


def programs(folder):
    flags = os.environ.get("FANIN_CABAL", "").split()
    if subprocess.run(["cabal", "build", "-v1", *flags, "redis-client:bench:fanin"], cwd=ROOT, stdout=2).returncode != 0:
        raise Trouble("our program does not build")
    theirs = str(pathlib.Path(folder) / "take")
    builds.output("gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-o", theirs, str(HERE / "take.c"), "-lhiredis")
    return {"ours": [builds.output("cabal", "list-bin", "-v0", *flags, "redis-client:bench:fanin")], "hiredis": [theirs]}


def measure(options):
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Server(folder)) as server:
        both = {"ours": [options.ours], "hiredis": [options.theirs]} if options.ours else programs(folder)
        builds.quiet()
        everything = [(name, way) for name in both for way in WAYS]
        found = {f"{name}/{way}": [] for name, way in everything}
        order = random.Random(options.seed)
        for number in range(1, options.rounds + 1):
            for name, way in order.sample(everything, len(everything)):
                found[f"{name}/{way}"].append(taken(server, both[name], way, options))
            pair.say(f"round {number} of {options.rounds}")
        if options.check:
            print(f"{options.messages} messages taken each time, {server.version()}")
            return 0
        document = {
            **kept.about(),
            "client": {"commit": builds.commit_of("HEAD")},
            "server": server.version(),
            "settings": vars(options),
            "lines": [line(way, found, options) for way in WAYS],
            "raw": found,
        }
    return told(document)


def line(way, found, options):
    mean, low, high = judge.interval([theirs["ns"] / ours["ns"] for ours, theirs in zip(found[f"ours/{way}"], found[f"hiredis/{way}"])])
    verdict = judge.UNDECIDED if low is None or low <= BOUND < high else judge.HOLDS if low > BOUND else "MISSES"
    each = {
        name: {
            "rate": options.messages / judge.median([one["ns"] for one in found[f"{name}/{way}"]]) * 1e9,
            "cpu": judge.median([one["cpu"] for one in found[f"{name}/{way}"]]) / options.messages,
        }
        for name in ("ours", "hiredis")
    }
    return {"way": way, **each, "ratio": mean, "low": low, "high": high, "verdict": verdict}


def told(document):
    kept.keep("fanin", document, markdown(document))
    return 1 if any(line["verdict"] == "MISSES" for line in document["lines"]) else 0


def markdown(document):
    lines = ["| messages | ours | hiredis | ours ÷ hiredis | 95 % | verdict |", "|---|--:|--:|--:|---|---|"]
    for one in document["lines"]:
        each = [f"{one[name]['rate'] / 1e6:.2f} M/s, {one[name]['cpu']:.0f} ns CPU" for name in ("ours", "hiredis")]
        between = "none" if one["low"] is None else f"{one['low']:.2f}–{one['high']:.2f}"
        lines.append(f"| {one['way']} | {each[0]} | {each[1]} | {one['ratio']:.2f} | {between} | {one['verdict']} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="fanin.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="default: %(default)s")
    parser.add_argument("--messages", type=int, default=300000, metavar="N", help="of each run, in thousands (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=100, metavar="N", help="of each (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), metavar="N", help="decides the orders (default: any)")
    parser.add_argument("--ours", metavar="PROGRAM", help="a program that is built already; with --theirs")
    parser.add_argument("--theirs", metavar="PROGRAM", help="the same, of take.c")
    parser.add_argument("--check", action="store_true", help="a few messages, unmeasured")
    options = parser.parse_args()
    if options.check:
        options.rounds, options.messages = 1, 1000
    if options.messages % 1000 or options.messages <= 0 or bool(options.ours) != bool(options.theirs):
        parser.error("--messages in thousands, and --ours only with --theirs")
    try:
        return measure(options)
    except Trouble as trouble:
        print(f"fanin: {trouble}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measures when callers that wait are back while their server is frozen.

    frozen.py [--rounds N] [--callers N,N] [--areas SIZE,SIZE] [--capabilities N] [--frozen S] [--timeout S] [--seed N]
    frozen.py --check

A private server is stopped (SIGSTOP). Then as many callers as said ask for a key at once, by one
program (client/bench, benchmark "frozen"), whose command timeout is --timeout seconds. The
server goes on (SIGCONT) --frozen seconds after the callers have asked. Each round runs every
number of callers with every allocation area (+RTS -A), in random order.

Said are medians over the rounds: the seconds from the question to the first and to the last
caller that is back, how many ran out of time, and the seconds in collections. Raw data and
table: results/frozen/. It begins once no other program keeps the machine busy
(scripts/quiet.sh). The program should be built as a service would be: FROZEN_CABAL has flags
for cabal. --check runs a few callers once, and says no figures.
Exit status: 0, or 2 if it could not be measured.
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
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "pair"))

import builds  # noqa: E402
import judge  # noqa: E402
import kept  # noqa: E402
import lone  # noqa: E402
import pair  # noqa: E402
from builds import Trouble  # noqa: E402

NAMES = ("first", "last", "replies", "timeouts", "others", "collections", "major", "collecting", "alive", "resident")


def once(server, program, callers, area, options):
    """One run: nanoseconds, counts and bytes, by name."""
    words = [program, str(server.port), str(callers), str(options.timeout), "+RTS", "-T", f"-A{area}", f"-N{options.capabilities}"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout.readline() != "ready\n":
            raise Trouble(f"{program} is not ready")
        server.process.send_signal(signal.SIGSTOP)
        try:
            process.stdin.write("\n")
            process.stdin.flush()
            time.sleep(options.frozen)
        finally:
            server.process.send_signal(signal.SIGCONT)
        answer = process.stdout.readline().split()
    if len(answer) != len(NAMES):
        raise Trouble(f"{program} ended")
    found = dict(zip(NAMES, map(int, answer)))
    if found["replies"] + found["timeouts"] + found["others"] != callers:
        raise Trouble(f"{program} lost callers: {found}")
    return found


def our_program():
    flags = os.environ.get("FROZEN_CABAL", "").split()
    if subprocess.run(["cabal", "build", "-v1", *flags, "redis-client:bench:frozen"], cwd=ROOT, stdout=2).returncode != 0:
        raise Trouble("our program does not build")
    return builds.output("cabal", "list-bin", "-v0", *flags, "redis-client:bench:frozen")


def measure(options):
    program = our_program()
    builds.quiet()
    cells = [(callers, area) for callers in options.callers for area in options.areas]
    found = {f"{callers}/{area}": [] for callers, area in cells}
    order = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(lone.Server(folder)) as server:
        for number in range(1, options.rounds + 1):
            for callers, area in order.sample(cells, len(cells)):
                found[f"{callers}/{area}"].append(once(server, program, callers, area, options))
            pair.say(f"round {number} of {options.rounds}")
        version = server.version()
    if options.check:
        print(f"all callers are back each time, {version}")
        return
    document = {
        **kept.about(),
        "client": {"commit": builds.commit_of("HEAD")},
        "flags": os.environ.get("FROZEN_CABAL", ""),
        "server": version,
        "settings": vars(options),
        "raw": found,
    }
    kept.keep("frozen", document, markdown(document))


def markdown(document):
    lines = ["| callers | `-A` | first, s | last, s | ran out of time | collecting, s | alive, bytes for each caller |", "|--:|--:|--:|--:|--:|--:|--:|"]
    for name, runs in document["raw"].items():
        callers, area = name.split("/")
        middle = {what: judge.median([run[what] for run in runs]) for what in NAMES}
        spread = f"{middle['last'] / 1e9:.2f} ({min(run['last'] for run in runs) / 1e9:.2f}–{max(run['last'] for run in runs) / 1e9:.2f})"
        lines.append(
            f"| {callers} | {area} | {middle['first'] / 1e9:.2f} | {spread} | {middle['timeouts']:.0f} "
            f"| {middle['collecting'] / 1e9:.2f} | {middle['alive'] / int(callers):.0f} |"
        )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="frozen.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: %(default)s")
    parser.add_argument("--callers", type=kept.numbers, default=[1000, 5000, 20000], metavar="N,N", help="default: 1000,5000,20000")
    parser.add_argument("--areas", type=lambda text: text.split(","), default=["1m", "4m", "16m", "64m"], metavar="SIZE,SIZE", help="default: 1m,4m,16m,64m")
    parser.add_argument("--capabilities", type=int, default=1, metavar="N", help="default: %(default)s")
    parser.add_argument("--frozen", type=float, default=2, metavar="S", help="seconds (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=2, metavar="S", help="seconds (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), metavar="N", help="decides the orders (default: any)")
    parser.add_argument("--check", action="store_true", help="a few callers, unmeasured")
    options = parser.parse_args()
    if options.check:
        options.rounds, options.callers, options.areas, options.frozen, options.timeout = 1, [10], ["4m"], 0.2, 0.2
    try:
        measure(options)
    except Trouble as trouble:
        print(f"frozen: {trouble}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

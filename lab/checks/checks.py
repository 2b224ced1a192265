#!/usr/bin/env python3
"""Measures what the setting reply_checks costs, by pairs of runs of the program redis-client.

    checks.py [--rounds N] [--callers N,N] [--seconds S] [--seed N]
    checks.py --check

A private server is on core 0, "redis-client bench" on core 1: GETs of so many callers, each of whom
waits for its reply, with the setting and without it, one after the other. The order of a round is
random. Said is the ratio, with to without, of the pairs' rates and of their processor time for each
command: the geometric mean and its 95 % interval. Raw data and table: results/checks/. It begins
once no other program keeps the machine busy (scripts/quiet.sh). --check runs one short pair, and
says no figures. Exit status: 0, or 2 if it could not be measured.
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

SETTINGS = {"without": "", "with": "?reply_checks=true"}
FIGURES = {"rate": "ops_per_sec", "cpu": "client_cpu_ns_per_op"}


def once(program, server, callers, setting, options, folder):
    """One run: commands in a second, and nanoseconds of processor time for a command."""
    file = pathlib.Path(folder, "run.json")
    words = ["taskset", "-c", "1", program, "bench", "--url", f"redis://127.0.0.1:{server.port}{SETTINGS[setting]}"]
    words += ["--operation", "get", "--threads", str(callers), "--batch", "1", "--keys", "10000"]
    words += ["--duration", str(options.seconds), "--warmup", "0.3", "--json", str(file)]
    done = subprocess.run([*words, "--allow", "saturation,little"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Trouble(f"the program says: {done.stderr}")
    run = json.loads(file.read_text())["runs"][0]
    return {name: run[field] for name, field in FIGURES.items()}


def measure(options):
    program = builds.own_program("redis-client")
    builds.quiet()
    cells = [(callers, setting) for callers in options.callers for setting in SETTINGS]
    found = {str(callers): {setting: [] for setting in SETTINGS} for callers in options.callers}
    order = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(lone.Server(folder)) as server:
        os.sched_setaffinity(server.process.pid, {0})
        for number in range(1, options.rounds + 1):
            for callers, setting in order.sample(cells, len(cells)):
                found[str(callers)][setting].append(once(program, server, callers, setting, options, folder))
            pair.say(f"round {number} of {options.rounds}")
        version = server.version()
    if options.check:
        print(f"both run, {version}")
        return
    document = {
        **kept.about(),
        "client": {"commit": builds.commit_of("HEAD")},
        "server": version,
        "settings": vars(options),
        "raw": found,
    }
    kept.keep("checks", document, markdown(document))


def markdown(document):
    lines = ["| callers | rate without, k/s | rate, × | processor time without, µs | processor time, × |", "|--:|--:|--:|--:|--:|"]
    for callers, runs in document["raw"].items():
        def ratio(figure):
            middle, low, high = judge.interval([new[figure] / old[figure] for old, new in zip(runs["without"], runs["with"])])
            return f"{middle:.2f}" + ("" if low is None else f" ({low:.2f}–{high:.2f})")

        rate = judge.median([run["rate"] for run in runs["without"]]) / 1e3
        cpu = judge.median([run["cpu"] for run in runs["without"]]) / 1e3
        lines.append(f"| {callers} | {rate:.1f} | {ratio('rate')} | {cpu:.2f} | {ratio('cpu')} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="checks.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12, metavar="N", help="default: %(default)s")
    parser.add_argument("--callers", type=kept.numbers, default=[1, 50, 256], metavar="N,N", help="default: 1,50,256")
    parser.add_argument("--seconds", type=float, default=1, metavar="S", help="of a run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), metavar="N", help="decides the orders (default: any)")
    parser.add_argument("--check", action="store_true", help="one short pair, unmeasured")
    options = parser.parse_args()
    if options.check:
        options.rounds, options.callers, options.seconds = 1, [1], 0.3
    try:
        measure(options)
    except Trouble as trouble:
        print(f"checks: {trouble}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measures one GET of a large value beside hiredis: time, and the most memory.

    value.py [--mib N] [--rounds N] [--hiredis FOLDER]

A private server holds a value of N MiB. Each round starts two programs in random order,
each of which gets it once: ours (client/bench, benchmark "value") and one in C (get.c).
The time is that of the command alone. The memory is the largest resident set of the
whole program, as the kernel counted it (what /usr/bin/time -v says). Said are medians,
and the memory as a multiple of the value.

Needs Debian's libhiredis-dev, or --hiredis: a folder of that name with its sources, in
which "make static" was run. VALUE_CABAL has flags for cabal. Exit status: 0 if ours takes
at most 1.2 times the value, else 1; 2 if it could not be measured.
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "pair"))

import builds  # noqa: E402
import judge  # noqa: E402
import lone  # noqa: E402
from builds import Trouble  # noqa: E402

BOUND = 1.2


def our_program():
    flags = os.environ.get("VALUE_CABAL", "").split()
    if subprocess.run(["cabal", "build", "-v1", *flags, "redis-client:bench:value"], cwd=ROOT, stdout=2).returncode != 0:
        raise Trouble("our program does not build")
    return builds.output("cabal", "list-bin", "-v0", *flags, "redis-client:bench:value")


def their_program(folder, sources):
    place = [f"-I{sources.parent}"] if sources else []
    library = [str(sources / "libhiredis.a")] if sources else ["-lhiredis"]
    path = str(pathlib.Path(folder) / "get")
    builds.output("gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", *place, "-o", path, str(HERE / "get.c"), *library)
    return path


def once(program, port, size):
    """Seconds of the command, and the most bytes resident."""
    process = subprocess.Popen([program, str(port), "large"], stdout=subprocess.PIPE, text=True)
    said = process.stdout.read().split()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode != 0 or said[:1] != [str(size)]:
        raise Trouble(f"{program} ended with {process.returncode} and said {' '.join(said)}")
    return int(said[1]) / 1e9, usage.ru_maxrss * 1024


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--mib", type=int, default=512)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--hiredis", type=pathlib.Path)
    chosen = arguments.parse_args()
    size = chosen.mib * 1024 * 1024
    try:
        with tempfile.TemporaryDirectory() as folder:
            server = lone.Server(folder)
            try:
                server.says("SETRANGE", "large", size - 1, "x")
                programs = {"this library": our_program(), "hiredis": their_program(folder, chosen.hiredis)}
                builds.quiet()
                found = {name: [] for name in programs}
                for _ in range(chosen.rounds):
                    for name in random.sample(list(programs), len(programs)):
                        found[name].append(once(programs[name], server.port, size))
            finally:
                server.close()
    except Trouble as trouble:
        print(f"value: {trouble}", file=sys.stderr)
        return 2
    print(f"| GET, {chosen.mib} MiB, {chosen.rounds} rounds | s | most resident | × value |\n|---|--:|--:|--:|")
    most = {}
    for name, runs in found.items():
        seconds = judge.median([one for one, _ in runs])
        most[name] = judge.median([one for _, one in runs]) / size
        print(f"| {name} | {seconds:.2f} | {most[name] * chosen.mib:.0f} MiB | {most[name]:.2f} |")
    return 0 if most["this library"] <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())

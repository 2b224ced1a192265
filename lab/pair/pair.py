#!/usr/bin/env python3
"""Measures two revisions of the library in pairs, and says whether the new one is slower.

    pair.py --revision REVISION [--rows NAME,NAME...] [--pairs N] [--seconds S]
    pair.py --render FILE.json

Old is the revision that is named, new is the working tree as it is. Each pair is
one run of both, in random order, against the same servers; each round takes one
pair of every row, in random order too, so that whatever the machine does meanwhile
falls on all. It begins once no other program keeps the machine busy (scripts/quiet.sh).
Whether the load program counted right, the servers say after each run.

Raw data and table: results/pairs/. Exit status: 0 no row failed, 1 a row did, 2 it
could not be measured.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys

import builds
import judge
import report
import rows
import servers
from builds import Trouble

WARMUP = 0.5
# Of a process that starts, fills its caches and ends.
OVERHEAD = 0.2


def main():
    options = parsed()
    try:
        if options.render:
            document = json.loads(pathlib.Path(options.render).read_text())
            sys.stdout.write(report.markdown(document))
            return 0
        return measure(options)
    except Trouble as trouble:
        print(f"pair: {trouble}", file=sys.stderr)
        return 2


def parsed():
    parser = argparse.ArgumentParser(prog="pair.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revision", metavar="REVISION", help="the old side")
    parser.add_argument("--tree", default=str(builds.ROOT), metavar="FOLDER", help="the new side: another checkout instead of this one")
    parser.add_argument("--rows", default="", metavar="NAMES", help="only these, with commas between: " + ", ".join(row.name for row in rows.ROWS))
    parser.add_argument("--pairs", type=int, default=12, metavar="N", help="pairs of each row (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2, metavar="S", help="measured of each run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), metavar="N", help="decides the orders (default: any)")
    parser.add_argument("--render", metavar="FILE", help="only write the table of an earlier measurement")
    options = parser.parse_args()
    try:
        options.rows = rows.chosen([name for name in options.rows.replace(",", " ").split()])
    except KeyError as unknown:
        parser.error(f"there is no row {unknown}")
    if not options.render and not options.revision:
        parser.error("which revision? --revision (make bench-pair REV=...)")
    if options.pairs < 1 or options.seconds <= 0:
        parser.error("--pairs and --seconds must be more than 0")
    return options


def measure(options):
    if not shutil.which("taskset") or not {0, 1} <= os.sched_getaffinity(0):
        raise Trouble("the servers need core 0, the client core 1, and both taskset")
    sides = {"old": builds.revision_build(options.revision), "new": builds.tree_build(options.tree)}
    keeper = builds.own_program("pair-servers")
    builds.quiet()
    count = 2 * options.pairs * len(options.rows)
    estimate = count * (options.seconds + WARMUP + OVERHEAD)
    say(f"{options.pairs} pairs of {len(options.rows)} rows: {count} runs, about {estimate / 60:.0f} minutes")
    document = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "old": sides["old"].about,
        "new": sides["new"].about,
        "machine": machine(),
        "idle_at_start": os.environ["QUIET_IDLE"],
        "compiler": builds.output("ghc", "--version"),
        "settings": {
            "pairs": options.pairs,
            "seconds": options.seconds,
            "warmup": WARMUP,
            "seed": options.seed,
            "rate_bound": judge.RATE_BOUND,
            "cpu_bound": judge.CPU_BOUND,
        },
        "rows": [],
        "runs": [],
    }
    wanted = [name for name in ("pinned", "free", "cluster") if any(row.place == name for row in options.rows)]
    with servers.running(keeper, wanted) as places:
        document["server"] = places[wanted[0]].version()
        for place in places.values():
            builds.output(str(sides["old"].load), "fill", place.argument)
        cut = None
        try:
            take_pairs(options, sides, places, document["runs"])
        except (KeyboardInterrupt, Trouble) as reason:
            cut = str(reason) or "interrupted"
    document["rows"] = [judge.judged(row, [run for run in document["runs"] if run["row"] == row.name]) for row in options.rows]
    told(document)
    if cut is not None:
        raise Trouble(f"{cut}; the table is of what there was so far")
    verdicts = {line["verdict"] for line in document["rows"]}
    return 2 if judge.INVALID in verdicts else 1 if judge.FAILS in verdicts else 0


def take_pairs(options, sides, places, runs):
    order = random.Random(options.seed)
    for pair in range(1, options.pairs + 1):
        for row in order.sample(options.rows, len(options.rows)):
            both = [run(row, pair, side, sides[side], places[row.place], options.seconds) for side in order.sample(["old", "new"], 2)]
            runs += both
            say(f"pair {pair} of {options.pairs}, {row.name}: " + progress({one["side"]: one for one in both}))


def progress(both):
    for one in both.values():
        if one["problem"]:
            return f"{one['side']}: {one['problem']}"
    return f"rate {judge.rate(both['new']) / judge.rate(both['old']):.3f}, processor time {judge.cpu(both['new']) / judge.cpu(both['old']):.3f}"


def run(row, pair, side, build, place, seconds):
    """One run of one side. What is wrong with it stands under "problem"."""
    before = place.calls(row.operation)
    arguments = ["taskset", "-c", row.cores, str(build.load), "run", place.argument, row.operation]
    arguments += [str(row.threads), str(row.batch), str(seconds), str(WARMUP), "+RTS", f"-N{row.capabilities}", *row.runtime, "-RTS"]
    # Raw data are kept: where the repository lies is nobody's business.
    told = [argument.replace(f"{builds.ROOT}/", "") for argument in arguments]
    found = {"row": row.name, "pair": pair, "side": side, "command": told, "problem": None}
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60 + 5 * seconds)
    except subprocess.TimeoutExpired:
        return {**found, "problem": "it did not end"}
    if done.returncode != 0:
        return {**found, "problem": f"status {done.returncode}: {done.stderr.strip()[-500:]}"}
    found.update(json.loads(done.stdout))
    counted = place.calls(row.operation) - before
    if found["commands"] <= 0:
        found["problem"] = "it did nothing"
    elif counted != found["total"]:
        found["problem"] = f"it counted {found['total']} commands, the servers {counted}"
    return found


def told(document):
    folder = builds.ROOT / "results" / "pairs"
    folder.mkdir(parents=True, exist_ok=True)
    moment = document["date"][:19].replace(":", "")
    name = f"{moment}-{document['old']['commit'][:8]}-{document['new']['commit'][:8]}"
    (folder / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (folder / f"{name}.md").write_text(report.markdown(document))
    print(report.console(document))
    for line in document["rows"]:
        for problem in line["problems"]:
            print(f"{line['row']}: {problem}")
    print(f"results/pairs/{name}.md")


def machine():
    processor = platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    return {"processor": processor, "cores": os.cpu_count(), "kernel": platform.release()}


def say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

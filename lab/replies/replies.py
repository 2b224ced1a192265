#!/usr/bin/env python3
"""Measures large replies beside hiredis, and typed commands beside raw ones.

    replies.py [--rounds N] [--milliseconds M] [--seed N] [--core N] [--hiredis FOLDER]
    replies.py --check

A private server says the replies, in both protocols. Two programs read their bytes
from memory: ours (client/bench, benchmark "replies") to values and to the results of
the typed commands, and one in C (parse.c) with hiredis's reader. Each round measures
everything once, in random order; one program at a time, on one core. Figures are
processor time, the collector's work included.

Ours runs with an allocation area of 1 MiB, GHC 9.0's default, and once more with one of
4 MiB, the default since 9.2.

hiredis before 1.0, as Debian 12 has it, reads RESP2 only: what is different in RESP3 is
set beside its time for what the server says to the same command in RESP2, without a
verdict. --hiredis takes another: a folder of that name with its sources, in which
"make static" was run.

A figure misses its bar if the whole interval is beyond it. Raw data and table:
results/replies/. --check does everything once, and says no figures. Exit status: 0
no figure missed, 1 one did, 2 it could not be measured.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
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

# Times what C hiredis takes, and what "raw" of the same words takes.
PARSE_BOUND = 1.5
TYPED_BOUND = 1.05

# What the replies are called, what they are, elements, commands.
COUNT = 1000
LARGE = {
    "mget": (f"MGET, {COUNT} × 100 B", COUNT, ["MGET", *(f"value:{n}" for n in range(COUNT))]),
    "hgetall": (f"HGETALL, {COUNT} fields", COUNT, ["HGETALL", "hash"]),
    "zrange-whole": (f"ZRANGE WITHSCORES, {COUNT}, whole scores", COUNT, ["ZRANGE", "whole", 0, -1, "WITHSCORES"]),
    "zrange-fractions": (f"ZRANGE WITHSCORES, {COUNT}, of 17 digits", COUNT, ["ZRANGE", "fractions", 0, -1, "WITHSCORES"]),
    "xrange": (f"XRANGE, {COUNT} × 5 fields", COUNT, ["XRANGE", "stream", "-", "+"]),
    "value": ("GET, 10 MB", 1, ["GET", "large"]),
}
# How many elements hiredis sees in RESP2: keys and values come in turn.
FLAT = {"hgetall": 2, "zrange-whole": 2, "zrange-fractions": 2}
CALLS = {
    "get": "GET, 100 B",
    "set": "SET, 100 B",
    "hset": "HSET, one field, 100 B",
    "zadd": "ZADD, one member, score 1714",
    "zadd-fraction": "ZADD, one member, score 17.25",
    "mget": "MGET, 100 × 100 B",
}


def fill():
    """The commands by which the server gets what it is to say."""
    for n in range(COUNT):
        yield ["SET", f"value:{n}", f"{n:0100d}"]
        yield ["HSET", "hash", f"field:{n:04d}", f"value:{n:04d}"]
        yield ["ZADD", "whole", 7 * n, f"member:{n:04d}"]
        yield ["ZADD", "fractions", f"{n / 7:.17g}", f"member:{n:04d}"]
        yield ["XADD", "stream", f"17000000{n:05d}-0", *(word for m in range(5) for word in (f"field:{m}", f"{n:08d}"))]
    yield ["SET", "large", "x" * 10_000_000]


def record(folder):
    """Writes the replies. The server's version, and for each kind its protocols: one
    if they say the same."""
    with tempfile.TemporaryDirectory() as place, contextlib.closing(lone.Server(place)) as server:
        version = server.version()
        for words in fill():
            server.says(*words)
        said = {kind: [server.says(*words)] for kind, (_, _, words) in LARGE.items()}
        server.says("HELLO", 3)
        for kind, (_, _, words) in LARGE.items():
            said[kind].append(server.says(*words))
    protocols = {}
    for kind, (two, three) in said.items():
        protocols[kind] = [2] if two == three else [2, 3]
        for protocol, reply in ((2, two), (3, three)):
            (folder / file_of(kind, protocol)).write_bytes(reply)
    return version, protocols, {kind: [len(reply) for reply in both] for kind, both in said.items()}


def file_of(kind, protocol):
    return f"{kind}-resp{protocol}"


class Program:
    """One that answers lines."""

    def __init__(self, name, core, *command):
        pinned = ["taskset", "-c", str(core)] if core is not None else []
        self.name = name
        self.process = subprocess.Popen([*pinned, *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        """Processor time of one run in ns, its bytes, and the count."""
        runs = int(line.split()[-1])
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 3:
            raise Trouble(f"the program for {self.name} ended at: {line}")
        spent, allocated, counted = map(int, answer)
        return {"ns": spent / runs, "bytes": allocated if self.name == "hiredis" else allocated / runs, "counted": counted, "runs": runs}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def our_program():
    flags = os.environ.get("REPLIES_CABAL", "").split()
    done = subprocess.run(["cabal", "build", "-v1", *flags, "redis-client:bench:replies"], cwd=ROOT, stdout=2)
    if done.returncode != 0:
        raise Trouble("our program does not build")
    return builds.output("cabal", "list-bin", "-v0", *flags, "redis-client:bench:replies")


class Hiredis:
    """The C program, and which hiredis it has."""

    def __init__(self, folder, sources):
        self.place = [f"-I{sources.parent}"] if sources else []
        self.path = folder / "parse"
        library = [str(sources / "libhiredis.a")] if sources else ["-lhiredis"]
        flags = ["-O2", "-std=gnu11", "-Wall", "-Wextra", *self.place]
        builds.output("gcc", *flags, "-o", str(self.path), str(HERE / "parse.c"), *library)
        self.version = self.read_version()
        self.protocols = [2] if self.version.startswith("0.") else [2, 3]

    def read_version(self):
        said = subprocess.run(
            ["gcc", "-E", "-P", *self.place, "-x", "c", "-"],
            input="#include <hiredis/hiredis.h>\nHIREDIS_MAJOR.HIREDIS_MINOR.HIREDIS_PATCH\n",
            capture_output=True,
            text=True,
        )
        return said.stdout.strip().split("\n")[-1].replace(" ", "")

    def file(self, known, protocol):
        """Which protocol's reply is the measure for this one's."""
        return protocol if protocol in known and protocol in self.protocols else 2


def tasks(protocols, hiredis):
    """What is measured: a name, which program, the line to ask but for the runs, and
    what it must count, if that is known."""
    for kind, known in protocols.items():
        elements = LARGE[kind][1]
        flat = elements * FLAT.get(kind, 1)
        for protocol in known:
            yield f"{kind}/{protocol}/parse", "1m", f"parse {kind} {file_of(kind, protocol)}", flat if protocol == 2 else elements
            if protocol in hiredis.protocols:
                # To it a map is an array of keys and values in turn.
                for way in ("parse", "feed"):
                    counted = elements if protocol == 3 and kind != "hgetall" else flat
                    yield f"{kind}/{protocol}/c-{way}", "hiredis", f"{way} {file_of(kind, protocol)}", counted
            for area, way in (("1m", "type"), ("4m", "type-4m")):
                yield f"{kind}/{protocol}/{way}", area, f"type {kind} {file_of(kind, protocol)}", elements
    for name in CALLS:
        for way in ("typed", "raw"):
            yield f"call/{name}/{way}", "1m", f"{way} {name}", None


def measure(options):
    core = options.core if shutil.which("taskset") else None
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        folder = pathlib.Path(place)
        version, protocols, sizes = record(folder)
        hiredis = Hiredis(folder, options.hiredis)
        programs = {"hiredis": Program("hiredis", core, hiredis.path, folder)}
        ours = our_program()
        programs.update((area, Program(area, core, ours, folder, "+RTS", f"-A{area}")) for area in ("1m", "4m"))
        for program in programs.values():
            stack.callback(program.close)
        builds.quiet()
        everything = list(tasks(protocols, hiredis))
        runs = {}
        for name, program, line, counted in everything:
            first = programs[program].ask(f"{line} 1")
            if counted is not None and first["counted"] != counted:
                raise Trouble(f"{line}: {program} counted {first['counted']}, not {counted}")
            if not options.check:
                # The first is slow: another, and so many that fill the time.
                guess = programs[program].ask(f"{line} 20")["ns"]
                runs[name] = max(1, round(options.milliseconds * 1e6 / guess))
        if options.check:
            print(f"{len(everything)} things measured once, {version}")
            return 0
        found = {name: [] for name, *_ in everything}
        order = random.Random(options.seed)
        for number in range(1, options.rounds + 1):
            pair.say(f"round {number} of {options.rounds}")
            for name, program, line, _ in order.sample(everything, len(everything)):
                found[name].append(programs[program].ask(f"{line} {runs[name]}"))
    document = {
        **kept.about(),
        "client": builds.about(ROOT, HERE / "parse.c"),
        "hiredis": hiredis.version,
        "server": version,
        "settings": {name: str(setting) if name == "hiredis" else setting for name, setting in vars(options).items()},
        "sizes": sizes,
        "large": [line for kind, known in protocols.items() for line in large_lines(kind, known, hiredis, found)],
        "calls": [call_line(name, found) for name in CALLS],
        "raw": found,
    }
    return told(document)


def ratio(found, one, other, bound):
    mean, low, high = judge.interval([a["ns"] / b["ns"] for a, b in zip(found[one], found[other])])
    verdict = judge.UNDECIDED if low is None or low <= bound < high else "MISSES" if low > bound else judge.HOLDS
    return {"ratio": mean, "low": low, "high": high, "verdict": verdict}


def middle(found, name, what):
    return judge.median([one[what] for one in found[name]])


def large_lines(kind, known, hiredis, found):
    what, elements, _ = LARGE[kind]
    for protocol in known:
        theirs = f"{kind}/{hiredis.file(known, protocol)}/c-"
        ours = {way: f"{kind}/{protocol}/{way}" for way in ("parse", "type", "type-4m")}
        yield {
            "what": what + ("" if known == [2] else f", RESP{protocol}"),
            "elements": elements,
            "same": hiredis.file(known, protocol) == protocol,
            "ns": {way: middle(found, name, "ns") for way, name in ours.items()},
            "bytes": {way: middle(found, name, "bytes") for way, name in ours.items()},
            "c": {way: middle(found, theirs + way, "ns") for way in ("parse", "feed")},
            "c_bytes": middle(found, theirs + "parse", "bytes"),
            **{f"{way}/{c}": ratio(found, name, theirs + c, PARSE_BOUND) for way, name in ours.items() for c in ("parse", "feed")},
        }


def call_line(name, found):
    both = {way: f"call/{name}/{way}" for way in ("typed", "raw")}
    return {
        "what": CALLS[name],
        "ns": {way: middle(found, one, "ns") for way, one in both.items()},
        "bytes": {way: middle(found, one, "bytes") for way, one in both.items()},
        **ratio(found, both["typed"], both["raw"], TYPED_BOUND),
    }


def told(document):
    kept.keep("replies", document, markdown(document))
    missed = [line for line in document["large"] if line["same"] and line["type/parse"]["verdict"] == "MISSES"]
    missed += [line for line in document["calls"] if line["verdict"] == "MISSES"]
    return 1 if missed else 0


def markdown(document):
    lines = [
        "| reply | parsing | to the result | an element | hiredis parses | with feeding | result ÷ hiredis | 95 % | verdict | with 4 MiB | 95 % |",
        "|---|--:|--:|--:|--:|--:|--:|---|---|--:|---|",
    ]
    for line in document["large"]:
        held, larger = line["type/parse"], line["type-4m/parse"]
        lines.append(
            f"| {line['what']} | {cost(line, 'parse')} | {cost(line, 'type')} | {each(line)} | {micro(line['c']['parse'])}, {size(line['c_bytes'])}"
            f" | {micro(line['c']['feed'])} | {held['ratio']:.2f} | {between(held)} | {held['verdict'] if line['same'] else 'other bytes'} | {larger['ratio']:.2f} | {between(larger)} |"
        )
    lines += ["", "| call | typed | raw | typed ÷ raw | 95 % | verdict |", "|---|--:|--:|--:|---|---|"]
    for line in document["calls"]:
        typed, raw = (f"{line['ns'][way]:.0f} ns, {line['bytes'][way]:.0f} B" for way in ("typed", "raw"))
        lines.append(f"| {line['what']} | {typed} | {raw} | {line['ratio']:.2f} | {between(line)} | {line['verdict']} |")
    return "\n".join(lines) + "\n"


def cost(line, way):
    return f"{micro(line['ns'][way])}, {size(line['bytes'][way])}"


def each(line):
    return f"{line['ns']['type'] / line['elements']:.0f} ns, {line['bytes']['type'] / line['elements']:.0f} B" if line["elements"] > 1 else "–"


def micro(ns):
    return f"{ns / 1000:.0f} µs"


def size(count):
    return f"{count / 1000:.0f} kB"


def between(held):
    return "none" if held["low"] is None else f"{held['low']:.2f}–{held['high']:.2f}"


def main():
    parser = argparse.ArgumentParser(prog="replies.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="default: %(default)s")
    parser.add_argument("--milliseconds", type=float, default=30, metavar="M", help="of each measurement (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), metavar="N", help="decides the orders (default: any)")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), metavar="N", help="default: %(default)s")
    parser.add_argument("--hiredis", type=lambda name: pathlib.Path(name).resolve(), metavar="FOLDER", help="the hiredis to compare with (default: the system's)")
    parser.add_argument("--check", action="store_true", help="everything once, unmeasured")
    options = parser.parse_args()
    if options.rounds < 2 or options.milliseconds <= 0:
        parser.error("--rounds must be 2 or more, --milliseconds more than 0")
    try:
        return measure(options)
    except Trouble as trouble:
        print(f"replies: {trouble}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

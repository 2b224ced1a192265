#!/usr/bin/env python3
"""Where the processor time of a GET and of the REST service goes, ours beside .NET's and hiredis'.

Each program runs on core 1 under the load of the comparison (compare/), its server on core 0.
While it runs, perf looks 997 times a second which function has the processor. The share of a part
times the processor time per command (or per request), which the kernel counts in the same seconds,
is the time of that part. Programs take turns, and the table has the medians of the rounds. .NET runs with its
collector as a library of its own, with maps for perf and without W^X, so its totals are not those of the comparison.

    lab/profile/profile.py [--rounds 3] [--seconds 5] [--only get|rest]

Status 1: something is not installed, or a program did not run.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab/pair"))

import builds  # noqa: E402
import kept  # noqa: E402
from builds import Trouble  # noqa: E402
from lone import Server  # noqa: E402

KEYS = 100000
# .NET compiles while it runs: the peers' settings have it done in two seconds, the service takes longer.
WARMUP_GET, WARMUP_REST = 3, 12
# .NET tells perf the names of what it has compiled, which must not lie in a file; its collector is a
# library of its own.
NAMED = {"DOTNET_PerfMapEnabled": "1", "DOTNET_EnableWriteXorExecute": "0", "DOTNET_GCName": "libclrgcexp.so"}
REST_DOTNET = {
    "DOTNET_GCDynamicAdaptationMode": "0",
    "DOTNET_ReadyToRun": "0",
    "DOTNET_HillClimbing_Disable": "1",
    "DOTNET_TieredPGO": "1",
}
GETS = {
    "GET, 16 callers × 64": ["--in-flight", "1024", "--style", "batch", "--batch", "64"],
    "GET, 256 callers": ["--in-flight", "256", "--style", "wait"],
    "GET, 1 caller": ["--in-flight", "1", "--style", "wait"],
}
RESTS = {"REST, one user, 100 connections": "single", "REST, list, 100 connections": "list", "REST, new user, 100 connections": "post"}

# Which part a function belongs to: the first line that matches its shared object and its name. What a
# Haskell program does between two names that its linker kept is "[unknown]": the client, HTTP and the
# load cannot be told apart there, so they are one part of all programs.
PARTS = [
    ("kernel: sockets", r"^\[kernel", r"tcp|sock|skb|inet|ip_|sendto|recvfrom|send|recv|msg|net_|netif|loopback|dev_|eth_|copy_user|copy_to_iter|copy_from_iter|csum|slab|kmem|bbr|local_deliver"),
    ("kernel: threads, waiting, the way in and out", r"^\[(?!vdso|unknown)", r""),
    ("collector", r"libclrgc", r""),
    ("collector", r"redis-client-peer|rest-service", r"^(evacuate|scavenge|Garbage|gc_|alloc_todo|todo_block|copy|markCAF|isAlive|traverseWeak|tidyThread|sweep|freeChain|freeGroup|alloc(Group|LargeChunk|Nursery|ate_?Mut)|resetNurs|clear_nurs|mark|collect|eval_|stat_|resize)"),
    ("compiling while it runs", r"libclrjit", r""),
    ("copying and comparing bytes", r"", r"^__?mem(move|cpy|cmp|set|chr)|SpanHelpers::(Memmove|SequenceEqual|Fill)|Buffer::(Memmove|BlockCopy)"),
    ("SQLite", r"sqlite|SQLite", r""),
    ("runtime and standard library", r"redis-client-peer|rest-service", r"^(stg_|schedule|threadPaused|dirty_|allocate|itimer|base_|ghczm|updateRemembered|recordMutable|lockClosure|append|wake|try|raise|awaken|pause|resume|suspend|acquire|release|yield|new|run|await|push|pop|maybe|throw|bytestring)"),
    ("client, HTTP, the service or the load", r"redis-client-peer|rest-service|/(peer|async)$", r""),
    ("client, HTTP, the service or the load", r"perf-", r"\[(StackExchange|RESPite|Pipelines|client|rest-service|Microsoft\.AspNetCore)"),
    ("client, HTTP, the service or the load", r"libhiredis", r""),
    ("client, HTTP, the service or the load", r"", r"^(sds|redis|createStringObject|freeReplyObject)"),
    ("runtime and standard library", r"", r""),
]


def part_of(shared, symbol):
    return next(name for name, wanted_shared, wanted in PARTS if re.search(wanted_shared, shared) and re.search(wanted, symbol))


def run_text(*words, fine=(0,), **options):
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, **options)
    if done.returncode not in fine:
        raise Trouble(f"{words[0]}: {(done.stderr or done.stdout).strip()[-500:]} (status {done.returncode})")
    return done.stdout


def ticks(process):
    """The processor seconds of a process, all threads."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sampled(process, seconds, folder):
    """What perf saw in these seconds: samples by part, and by function."""
    data = folder / "perf.data"
    # It ends by this signal if the process does while it looks.
    run_text("perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-p", process, "-o", data, "--", "sleep", seconds, fine=[0, -signal.SIGTERM])
    told = run_text("perf", "script", "-i", data, "-F", "ip,sym,dso")
    parts, functions = collections.Counter(), collections.Counter()
    for line in told.splitlines():
        found = re.match(r"\s*[0-9a-f]+ (.*) \((.*)\)$", line)
        if found:
            symbol, shared = found.groups()
            parts[part_of(shared, symbol)] += 1
            functions[f"{symbol} ({pathlib.Path(shared).name})"] += 1
    return parts, functions


@contextlib.contextmanager
def running(words, env=None, **options):
    process = subprocess.Popen([str(word) for word in words], env={**os.environ, **(env or {})}, **options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def pinned(core, words):
    return ["taskset", "-c", str(core), *words]


def peers():
    """The programs of the comparison: for each row its folder, words and environment."""
    found = {}
    for folder in ["compare/peers/redis-client", "compare/dotnet/client", "compare/peers/hiredis"]:
        for line in run_text("./build.sh", cwd=ROOT / folder).splitlines():
            row = json.loads(line)
            if "absent" not in row:
                found[row["row"]] = (ROOT / folder, row["run"], row.get("env", {}))
    return found


def measure_get(flags, peer, port, seconds, folder):
    where, words, env = peer
    words = pinned(1, [*words, "--host", "127.0.0.1", "--port", port, "--operation", "get", *flags, "--keys", KEYS, "--key-size", "16"])
    words += ["--value-size", "512", "--warmup", WARMUP_GET, "--duration", seconds, "--seed", "1", "--json", "-"]
    with running(words, {**env, **NAMED}, cwd=where, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(WARMUP_GET + 0.4)
        parts, functions = sampled(process.pid, seconds - 0.8, folder)
        told = json.loads(process.stdout.read())
    if told["wrong"] or told["errors"] or told["misses"]:
        raise Trouble(f"a peer has wrong replies, errors or misses: {told}")
    return told["cpu_ns"] / told["total_ops"] / 1000, told["ops_per_sec"], parts, functions


def services(build):
    ours = builds.own_program("rest-service")
    version = "1.2.6"
    run_text("dotnet", "publish", "compare/rest/dotnet", "-c", "Release", "-o", build / version, "--artifacts-path", build / f"{version}.artifacts", cwd=ROOT, env={**os.environ, "SeRedisVersion": version, "SE_REDIS_DIR": ""})
    return {"redis-client on warp": ([ours, "+RTS", "-N1", "-RTS"], {}), f"StackExchange.Redis {version} on Kestrel": ([build / version / "rest-service"], {**REST_DOTNET, **NAMED})}


def measure_rest(script, service, seed, seconds, folder):
    # A cache of its own, which nobody has filled.
    with contextlib.closing(Server(str(folder))) as server:
        os.sched_setaffinity(server.process.pid, {0})
        for old in folder.glob("users.db*"):
            old.unlink()
        run_text(seed, ROOT / "compare/rest/shared/statements.sql", folder / "users.db")
        return measure_service(script, service, server.port, seconds, folder)


def measure_service(script, service, port, seconds, folder):
    words, env = service
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listening = probe.getsockname()[1]
    where = {"SQLITE_DB": folder / "users.db", "SQL_FILE": ROOT / "compare/rest/shared/statements.sql", "REDIS_HOST": "127.0.0.1", "REDIS_PORT": port, "PORT": listening}
    environment = {**env, **{name: str(value) for name, value in where.items()}}
    with open(folder / "service.log", "w") as log, running(pinned(1, words), environment, stdout=log, stderr=log, cwd=folder) as process:
        limit = time.monotonic() + 20
        while "listening" not in (folder / "service.log").read_text():
            if time.monotonic() > limit:
                raise Trouble("the service does not listen: " + (folder / "service.log").read_text()[-300:])
            time.sleep(0.1)

        def load(length, run):
            # The scripts read them. RUN is in the addresses of new users, which differ from run to run.
            drawn = {**os.environ, "SEED": "1", "RUN": run, "THREADS": "1"}
            words = ["wrk", "-t1", "-c100", f"-d{length}", "-s", ROOT / f"compare/rest/wrk/{script}.lua", f"http://127.0.0.1:{listening}/"]
            return subprocess.Popen([str(word) for word in pinned(0, words)], env=drawn, stdout=subprocess.PIPE, text=True)

        load(WARMUP_REST, "warm").communicate()
        before, begun = ticks(process.pid), time.monotonic()
        generator = load(seconds, "run")
        time.sleep(0.2)
        parts, functions = sampled(process.pid, seconds - 0.4, folder)
        told = generator.communicate()[0]
        spent = ticks(process.pid) - before
    requests = int(re.search(r"(\d+) requests in", told).group(1))
    if "Non-2xx" in told or not requests:
        raise Trouble(f"the service failed: {told}")
    return spent / requests * 1e6, requests / (time.monotonic() - begun), parts, functions


def summary(cell, found):
    """A table: a row for each part, a column for each program, µs per command."""
    names = list(found)
    rows = [f"\n{cell}\n", "| µs of processor time | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]

    def line(title, value):
        rows.append(f"| {title} | " + " | ".join(value(found[name]) for name in names) + " |")

    line("all", lambda rounds: f"**{statistics.median(one['micros'] for one in rounds):.2f}**")
    for part in dict.fromkeys(name for name, _, _ in PARTS):
        times = {name: statistics.median(one["micros"] * one["parts"].get(part, 0) / max(1, sum(one["parts"].values())) for one in found[name]) for name in names}
        if max(times.values()) > 0:
            rows.append(f"| {part} | " + " | ".join(f"{times[name]:.2f}" for name in names) + " |")
    line("thousand per second", lambda rounds: f"{statistics.median(one['rate'] for one in rounds) / 1000:.1f}")
    return "\n".join(rows)


def main():
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument("--seconds", type=int, default=5)
    reader.add_argument("--only", choices=["get", "rest"])
    chosen = reader.parse_args()
    for program in ["perf", "taskset", *(["wrk", "dotnet"] if chosen.only != "get" else [])]:
        if not shutil.which(program):
            raise Trouble(f"{program} is not installed (make setup, scripts/setup.sh profile; .NET SDK 10: https://dotnet.microsoft.com/download)")
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    with tempfile.TemporaryDirectory(prefix="redis-client-profile") as place:
        folder = pathlib.Path(place)
        cells = []
        with contextlib.closing(Server(place)) as server:
            os.sched_setaffinity(server.process.pid, {0})
            if chosen.only != "rest":
                programs = peers()
                where, words, env = next(iter(programs.values()))
                filling = ["--host", "127.0.0.1", "--port", server.port, "--operation", "set", "--in-flight", "1024", "--style", "batch", "--batch", "64"]
                filling += ["--keys", KEYS, "--key-size", "16", "--value-size", "512", "--warmup", "0", "--duration", "8", "--seed", "1", "--json", "-"]
                run_text(*words, *filling, cwd=where, env={**os.environ, **env})
                cells += [(cell, name, lambda flags=flags, peer=peer: measure_get(flags, peer, server.port, chosen.seconds, folder)) for cell, flags in GETS.items() for name, peer in programs.items()]
            if chosen.only != "get":
                programs, seed = services(ROOT / "build/rest-profile"), builds.own_program("rest-seed")
                cells += [(cell, name, lambda script=script, service=service: measure_rest(script, service, seed, chosen.seconds, folder)) for cell, script in RESTS.items() for name, service in programs.items()]
            builds.quiet()
            for turn in range(chosen.rounds):
                for cell, name, measure in cells if turn % 2 == 0 else reversed(cells):
                    micros, rate, parts, functions = measure()
                    found[cell][name].append({"micros": micros, "rate": rate, "parts": dict(parts), "functions": dict(functions.most_common(40))})
                    print(f"{turn + 1}/{chosen.rounds} {cell}, {name}: {micros:.2f} µs", file=sys.stderr, flush=True)
            version = server.version()
    document = {
        **kept.about(),
        "client": {"commit": builds.commit_of("HEAD")},
        "server": version,
        "settings": vars(chosen),
        "dotnet": {**REST_DOTNET, **NAMED},
        "raw": found,
    }
    kept.keep("profile", document, "\n".join(summary(cell, found[cell]) for cell in found) + "\n")


if __name__ == "__main__":
    try:
        main()
    except Trouble as problem:
        sys.exit(f"profile: {problem}")

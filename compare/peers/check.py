#!/usr/bin/env python3
"""Checks that peers do what compare/PROTOCOL.md says.

    check.py [NAME ...]     the peers in these folders (all, if none is named)

Each peer is built and run, for moments, against servers of its own. Checked is
that it sends the commands that everyone sends, in their order; that its counts
are the servers'; and that it notices a value that is not right, a key that is
not there, a command that fails. Ends with "N passed, N failed". A peer that is
absent is named and is no failure.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
OTHERS = [HERE.parent / "dotnet" / "client"]
WORD = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
KEYS = 5000
VALUE_SIZE = 100
LATENCIES = ["p50", "p90", "p95", "p99", "p99_9", "max"]
FIELDS = {
    "schema", "client", "version", "runtime", "operation", "ops_per_sec", "duration_sec", "total_ops", "hits",
    "misses", "wrong", "errors", "latency", "cpu_ns", "all_get", "all_set", "connections", "stream_check", "notes",
}


# What everyone sends.


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def key_of(number, prefix="key:"):
    return prefix + str(number).zfill(16 - len(prefix))


def letters(count):
    return "".join(chr(97 + (((mix((1 + i * GAMMA) & WORD) >> 32) * 26) >> 32)) for i in range(count))


BLOCK = letters(4096 + VALUE_SIZE)


def value_of(number):
    start = mix(number) & 4095
    return BLOCK[start : start + VALUE_SIZE]


class Caller:
    """The operations of one caller: (key, is it a SET)."""

    def __init__(self, seed, number, set_below=0, prefix="key:"):
        self.state = mix((seed + mix(number + 1)) & WORD)
        self.set_below, self.prefix, self.operations = set_below, prefix, []

    def at(self, index):
        while len(self.operations) <= index:
            self.state = (self.state + GAMMA) & WORD
            word = mix(self.state)
            number = ((word >> 32) * KEYS) >> 32
            self.operations.append((key_of(number, self.prefix), (word & 0xFFFFFFFF) < self.set_below))
        return self.operations[index]


def stream_check(seed):
    state, total = mix((seed + mix(1)) & WORD), 0
    for _ in range(1000):
        state = (state + GAMMA) & WORD
        total = (total + mix(state)) & WORD
    return hex(total)


def is_merge(seen, callers):
    """Whether the operations seen are those of the callers, each in its order.

    Two callers may be at the same operation at once, so all ways to assign
    what was seen are followed; there are hardly ever more than one."""
    states = {tuple(0 for _ in callers)}
    for count, operation in enumerate(seen):
        states = {
            state[:i] + (state[i] + 1,) + state[i + 1 :]
            for state in states
            for i, caller in enumerate(callers)
            if caller.at(state[i]) == operation
        }
        if not states:
            return f"command {count + 1} of {len(seen)}, {operation}, is no caller's next one"
    return ""


# Servers.


def free_port():
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    return port if port < 55000 else free_port()


class Link:
    """A connection of our own: just enough of the protocol for this."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.file = self.socket.makefile("rb", buffering=1 << 20)

    def send(self, *commands):
        out = bytearray()
        for words in commands:
            out += b"*%d\r\n" % len(words)
            for word in words:
                data = word if isinstance(word, bytes) else str(word).encode()
                out += b"$%d\r\n%s\r\n" % (len(data), data)
        self.socket.sendall(out)

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the server closed the connection")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.file.read(size + 2)[:-2].decode()
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        if kind == b"-":
            raise RuntimeError(rest)
        return int(rest) if kind == b":" else rest

    def do(self, *words):
        self.send(words)
        return self.reply()

    def do_all(self, commands):
        self.send(*commands)
        return [self.reply() for _ in commands]


class Server:
    def __init__(self, folder, cluster, pin=None):
        self.port = free_port()
        self.folder = tempfile.mkdtemp(dir=folder)
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if program is None:
            sys.exit("check: needs redis-server (apt-get install redis-server)")
        command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        command += ["--client-output-buffer-limit", "normal", "0", "0", "0", "--dir", self.folder]
        if cluster:
            command += ["--cluster-enabled", "yes", "--cluster-port", str(self.port + 10000)]
        if pin is not None:
            command = ["taskset", "-c", str(pin)] + command
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.link = until(lambda: Link(self.port), "the server to listen")

    def calls(self):
        counts = {"get": 0, "set": 0}
        for line in self.link.do("INFO", "commandstats").splitlines():
            for name in counts:
                if line.startswith(f"cmdstat_{name}:calls="):
                    counts[name] = int(line.split("=")[1].split(",")[0])
        return counts

    def stop(self):
        self.process.kill()
        self.process.wait()


def until(action, what, limit=20):
    end = time.monotonic() + limit
    while True:
        try:
            result = action()
            if result:
                return result
        except (OSError, EOFError, RuntimeError):
            pass
        if time.monotonic() > end:
            sys.exit(f"check: waited {limit} s for {what}")
        time.sleep(0.02)


class Servers:
    """A server, or a cluster of five primaries."""

    def __init__(self, cluster, pin=None):
        self.cluster = cluster
        self.folder = tempfile.mkdtemp(prefix="compare-peers-")
        self.all = [Server(self.folder, cluster, pin) for _ in range(5 if cluster else 1)]
        self.port = self.all[0].port
        if cluster:
            for i, server in enumerate(self.all):
                first, last = i * 16384 // 5, (i + 1) * 16384 // 5 - 1
                server.link.do("CLUSTER", "ADDSLOTSRANGE", first, last)
                server.link.do("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            for server in self.all[1:]:
                server.link.do("CLUSTER", "MEET", "127.0.0.1", self.port)
            until(lambda: all(self.settled(server) for server in self.all), "the cluster")

    def settled(self, server):
        info = server.link.do("CLUSTER", "INFO")
        whole = len(server.link.do("CLUSTER", "SLOTS")) == len(self.all)
        return whole and "cluster_state:ok" in info and f"cluster_known_nodes:{len(self.all)}" in info

    def home(self, key):
        if not self.cluster:
            return self.all[0]
        slot = self.all[0].link.do("CLUSTER", "KEYSLOT", key)
        return self.all[next(i for i in range(5) if slot < (i + 1) * 16384 // 5)]

    def fill(self, keys=KEYS, value=value_of):
        if self.cluster:
            slots = self.all[0].link.do_all([("CLUSTER", "KEYSLOT", key_of(n)) for n in range(keys)])
        for i, server in enumerate(self.all):
            first, last = i * 16384 // 5, (i + 1) * 16384 // 5 - 1
            mine = [n for n in range(keys) if not self.cluster or first <= slots[n] <= last]
            for start in range(0, len(mine), 1000):
                server.link.do_all([("SET", key_of(n), value(n)) for n in mine[start : start + 1000]])

    def empty(self):
        for server in self.all:
            server.link.do("FLUSHALL")

    def forget(self):
        for server in self.all:
            server.link.do("CONFIG", "RESETSTAT")

    def calls(self):
        each = [server.calls() for server in self.all]
        return {name: sum(one[name] for one in each) for name in ("get", "set")}

    def stop(self):
        for server in self.all:
            server.stop()
        shutil.rmtree(self.folder)


class Monitor:
    """What a server is told, up to a number of commands, in order."""

    def __init__(self, port, most):
        self.link = Link(port)
        self.link.do("MONITOR")
        self.seen, self.most = [], most
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        with contextlib.suppress(OSError, EOFError, ValueError):
            while len(self.seen) < self.most:
                words = self.link.file.readline().decode().split('"')
                if len(words) > 3 and words[1].upper() in ("GET", "SET") and ":" in words[3]:
                    self.seen.append((words[3], words[1].upper() == "SET"))

    def stop(self):
        with contextlib.suppress(OSError):
            self.link.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        return self.seen


# Peers.


def rows_of(folder):
    """The rows of a peer, by its build script."""
    built = subprocess.run(["./build.sh"], cwd=folder, stdout=subprocess.PIPE, timeout=1200)
    if built.returncode != 0:
        return [{"row": folder.name, "broken": f"build.sh ended with {built.returncode}"}]
    return [json.loads(line) for line in built.stdout.decode().splitlines()]


def start(row, folder, port, arguments, pin=None):
    environment = {**os.environ, **row.get("env", {})}
    command = [str(word) for word in row["run"] + ["--host", "127.0.0.1", "--port", port] + arguments]
    if os.sep in command[0]:
        command[0] = str(folder / command[0])
    if pin is not None:
        command = ["taskset", "-c", str(pin)] + command
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=60)


# Seconds of a run, and of one that is repeated because nothing was done in it.
SHORT, LONG = 0.3, 3.0


def load(style, callers, operation="get", seed=1, **more):
    in_flight = callers * (8 if style == "batch" else 1)
    flags = {"operation": operation, "in-flight": in_flight, "style": style, "batch": 8, "keys": KEYS}
    flags.update({"key-size": 16, "value-size": VALUE_SIZE, "warmup": 0.1, "duration": SHORT, "seed": seed})
    flags.update({"connections": 1, "json": "-", **more})
    return [word for flag, value in flags.items() for word in ("--" + flag, value)]


class Checker:
    def __init__(self):
        self.passed, self.failed = 0, 0
        # Of the row that is checked: in how many runs with operations it told what
        # it allocates, and in how many it did not.
        self.told, self.silent = 0, 0

    def say(self, what, problem):
        if problem:
            self.failed += 1
            print(f"FAILED  {what}: {problem}", flush=True)
        else:
            self.passed += 1

    def result(self, what, row, folder, servers, arguments):
        """Runs a peer; its result, if it has the right form."""
        servers.forget()
        before = servers.calls()
        if servers.cluster and "--cluster" not in arguments:
            arguments = arguments + ["--cluster"]
        try:
            done = start(row, folder, servers.port, arguments)
            result = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            return self.say(what, "did not end")
        except ValueError:
            return self.say(what, f"ended with {done.returncode}: {done.stderr.decode()[-300:].strip()}")
        idle = result.get("total_ops") == result.get("errors") == result.get("wrong") == 0
        if SHORT in arguments and (idle or result.get("alloc_bytes_per_op") == 0):
            # A machine that is busy elsewhere gave it no turn in so short a time, or so few
            # that the runtime, which counts when it collects, has not collected.
            return self.result(what, row, folder, servers, [LONG if word == SHORT else word for word in arguments])
        after = servers.calls()
        if result.get("total_ops", 0) > 0:
            told = "alloc_bytes_per_op" in result
            self.told, self.silent = self.told + told, self.silent + (not told)
        problem = self.form(result, arguments) if done.returncode == 0 else f"ended with {done.returncode}"
        for name in ("get", "set"):
            if not problem and after[name] - before[name] != result[f"all_{name}"]:
                counted = after[name] - before[name]
                problem = f"the servers counted {counted} {name.upper()}s, the peer {result[f'all_{name}']}"
        self.say(what, problem)
        return None if problem else result

    def form(self, result, arguments):
        missing = FIELDS - set(result)
        if missing:
            return f"lacks {sorted(missing)}"
        latency = [result["latency"][name] for name in LATENCIES]
        seed = arguments[arguments.index("--seed") + 1]
        every = result["all_get"] + result["all_set"]
        rate = result["total_ops"] / result["duration_sec"]
        rules = {
            "the schema": result["schema"] == "redis-client-compare-peer/1",
            "the stream": result["stream_check"] == stream_check(seed),
            "percentiles rise": latency == sorted(latency),
            "latencies are nanoseconds": result["total_ops"] == 0 or 1000 < latency[0] and latency[-1] < 1e10,
            "duration": 0.29 < result["duration_sec"] < 5,
            "rate": abs(rate - result["ops_per_sec"]) <= 1 + rate / 1000,
            "all_get and all_set": result["total_ops"] <= every,
            "processor time": 0 < result["cpu_ns"] < result["duration_sec"] * 8e9,
            "alloc_bytes_per_op": result.get("alloc_bytes_per_op", 1) > 0,
        }
        return ", ".join(name for name, holds in rules.items() if not holds)


def clean(result, **expected):
    """What is wrong with the counts of a run in which nothing should be."""
    expected = {"wrong": 0, "errors": 0, **expected}
    found = {name: result[name] for name in expected}
    if found != expected:
        return f"{found}, not {expected}"
    return "" if result["total_ops"] > 0 else "no operation"


def check_bench_flags(checker, row, folder, one):
    """The harness in C# takes the flags of `redis-client bench`, and has its four keys."""
    one.empty()
    one.fill()
    with tempfile.TemporaryDirectory() as place:
        file = os.path.join(place, "report.json")
        for threads, batch in ((3, 1), (2, 8)):
            flags = {"--operation": "get", "--duration": 0.3, "-n": threads, "--batch": batch, "--keys": KEYS}
            flags.update({"--key-size": 16, "-d": VALUE_SIZE, "--seed": 1, "--mux-count": 1, "--json": file})
            done = start(row, folder, one.port, [word for pair in flags.items() for word in pair])
            what = f"{row['row']}: the flags of bench, {threads} x {batch}"
            if done.returncode != 0:
                checker.say(what, f"ended with {done.returncode}: {done.stderr.decode()[-300:].strip()}")
                continue
            with open(file) as written:
                result = json.load(written)
            keys = {"operation", "ops_per_sec", "duration_sec", "total_ops"} - set(result)
            checker.say(what, f"lacks {sorted(keys)}" if keys else clean(result, misses=0))
        both = start(row, folder, one.port, ["--threads", 2, "--in-flight", 2])
        checker.say(f"{row['row']}: two kinds of flags", "" if both.returncode == 2 and not both.stdout else "were taken")


def check_row(checker, row, folder, one, five):
    name = row["row"]
    checker.told, checker.silent = 0, 0
    if row.get("language") == "C#":
        check_bench_flags(checker, row, folder, one)
    for style in row["styles"]:
        # What is sent, and in which order.
        for callers in (1, 2):
            what = f"{name}: {style}, {callers} at once"
            one.empty()
            one.fill()
            monitor = Monitor(one.port, 3000)
            result = checker.result(what, row, folder, one, load(style, callers, "mixed", seed=7))
            seen = monitor.stop()
            if result and len(seen) < 100:
                # A busy machine: again, with more time.
                monitor = Monitor(one.port, 3000)
                longer = load(style, callers, "mixed", seed=7, warmup=0.5, duration=2)
                result = checker.result(what, row, folder, one, longer)
                seen = monitor.stop()
            if result:
                streams = [Caller(7, number, 858993459) for number in range(callers)]
                checker.say(what + ": nothing wrong", clean(result, misses=0))
                checker.say(what + ": the commands", "none" if len(seen) < 100 else is_merge(seen, streams))

        what = f"{name}: {style}, 40 at once"
        result = checker.result(what, row, folder, one, load(style, 40))
        if result:
            problem = clean(result, misses=0, hits=result["total_ops"])
            checker.say(what + ": all hits", problem)

        # What is stored.
        what = f"{name}: {style}, SETs"
        one.empty()
        result = checker.result(what, row, folder, one, load(style, 2, "set"))
        if result:
            keys = one.all[0].link.do("KEYS", "*")
            values = dict(zip(keys, one.all[0].link.do_all([("GET", key) for key in keys])))
            odd = [key for key, value in values.items() if value != value_of(int(key[4:]))]
            problem = clean(result, hits=0, misses=0) or ("no keys" if not keys else f"{odd[:3]}" if odd else "")
            checker.say(what + ": the values", problem)

        # What is not there.
        what = f"{name}: {style}, misses"
        one.empty()
        result = checker.result(what, row, folder, one, load(style, 2) + ["--misses"])
        if result:
            checker.say(what + ": all misses", clean(result, hits=0, misses=result["total_ops"]))
        what = f"{name}: {style}, misses that were not asked for"
        result = checker.result(what, row, folder, one, load(style, 2))
        if result:
            checker.say(what + ": seen", "" if result["misses"] > 0 == result["total_ops"] else f"{result}")

        # What is not right.
        first = Caller(1, 0).at(0)[0]
        right = value_of(int(first[4:]))
        altered = {"last letter": right[:-1] + "A", "first letter": "A" + right[1:], "shorter": right[:-1], "longer": right + "a"}
        for how, value in altered.items():
            what = f"{name}: {style}, a value with another {how}" if "letter" in how else f"{name}: {style}, a {how} value"
            one.fill()
            one.all[0].link.do("SET", first, value)
            result = checker.result(what, row, folder, one, load(style, 1))
            if result:
                checker.say(what + ": seen", "" if result["wrong"] > 0 < result["total_ops"] else "not noticed")
        what = f"{name}: {style}, a key of another type"
        one.all[0].link.do("DEL", first)
        one.all[0].link.do("RPUSH", first, "x")
        result = checker.result(what, row, folder, one, load(style, 1))
        if result:
            checker.say(what + ": seen", "" if result["errors"] > 0 < result["total_ops"] else "not noticed")

        if five is not None:
            for callers in (1, 20):
                what = f"{name}: {style}, cluster, {callers} at once"
                five.fill()
                result = checker.result(what, row, folder, five, load(style, callers, "mixed"))
                if result:
                    checker.say(what + ": nothing wrong", clean(result, misses=0))
            what = f"{name}: {style}, cluster, a wrong value"
            five.home(first).link.do("SET", first, altered["last letter"])
            result = checker.result(what, row, folder, five, load(style, 1))
            if result:
                checker.say(what + ": seen", "" if result["wrong"] > 0 < result["total_ops"] else "not noticed")

    # A runtime may fail to tell once, with little time on a busy machine.
    rarely = checker.told and checker.silent > checker.told
    checker.say(f"{name}: what it allocates", f"told in {checker.told} runs, not in {checker.silent}" if rarely else "")

    for what, port, arguments in [
        ("nobody listens", free_port(), load("wait", 1)),
        ("an unknown flag", one.port, load("wait", 1) + ["--unheard-of", "1"]),
    ]:
        try:
            status = start(row, folder, port, arguments).returncode
            checker.say(f"{name}: {what}", "" if status != 0 else "ended with 0")
        except subprocess.TimeoutExpired:
            checker.say(f"{name}: {what}", "did not end")


def main():
    names = sys.argv[1:]
    folders = sorted(path.parent for path in HERE.glob("*/build.sh")) + [path for path in OTHERS if path.exists()]
    unknown = set(names) - {folder.name for folder in folders}
    if unknown:
        sys.exit(f"check: no such peer: {', '.join(sorted(unknown))}")
    checker = Checker()
    for folder in folders:
        if names and folder.name not in names:
            continue
        for row in rows_of(folder):
            if "absent" in row:
                print(f"absent  {row['row']}: {row['absent']}", flush=True)
            elif "broken" in row:
                checker.say(row["row"], row["broken"])
            else:
                with contextlib.ExitStack() as stack:
                    one = Servers(False)
                    stack.callback(one.stop)
                    five = Servers(True) if row["cluster"] else None
                    if five is not None:
                        stack.callback(five.stop)
                    before = checker.passed, checker.failed
                    check_row(checker, row, folder, one, five)
                    print(f"checked {row['row']} {row['version']}: {checker.passed - before[0]} passed", flush=True)
    print(f"{checker.passed} passed, {checker.failed} failed")
    sys.exit(1 if checker.failed else 0)


if __name__ == "__main__":
    main()

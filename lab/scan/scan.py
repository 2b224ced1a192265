#!/usr/bin/env python3
"""Measures a walk over all keys beside redis-cli --scan.

    scan.py [--keys N] [--rounds N] [--cli PROGRAM]

A private server is filled by DEBUG POPULATE. In each round, in turn: redis-cli --scan with
its default COUNT, redis-cli --scan --count 1000, and ours (client/bench, benchmark "scan"),
which counts the keys. redis-cli writes to /dev/null. A redis-cli older than 7.2 has no
--count: then a walk over a bare socket with COUNT 1000 stands for it, which only looks for
cursors, and does not read the keys.

Said are the fastest of the rounds, and the most memory that ours had alive. Both need at
least two cores, one for the server. SCAN_CABAL has flags for cabal. Exit status: 0 if ours
takes at most a fifth of the first and no longer than the second, else 1.
"""

import argparse
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "pair"))

import builds  # noqa: E402
import lone  # noqa: E402
from builds import Trouble  # noqa: E402

BOUND = 5


def bare(port, count):
    """A walk that asks for page after page and reads nothing but the cursors."""
    connection = socket.create_connection(("127.0.0.1", port))
    cursor = b"0"
    while True:
        connection.sendall(lone.request("SCAN", cursor.decode(), "COUNT", count))
        page = bytearray()
        while not (page.endswith(b"\r\n") and complete(page)):
            page += connection.recv(1 << 20)
        cursor = page.split(b"\r\n", 3)[2]
        if cursor == b"0":
            return


def complete(page):
    """Each key is two lines."""
    lines = page.count(b"\r\n")
    head = page.split(b"\r\n", 4)
    return lines >= 4 and lines == 4 + 2 * int(head[3][1:])


def timed(action):
    began = time.monotonic()
    result = action()
    return time.monotonic() - began, result


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--keys", type=int, default=10_000_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--cli", default=shutil.which("redis-cli") or shutil.which("valkey-cli"))
    chosen = arguments.parse_args()
    flags = os.environ.get("SCAN_CABAL", "").split()
    if subprocess.run(["cabal", "build", "-v1", *flags, "redis-client:bench:scan"], cwd=ROOT, stdout=2).returncode != 0:
        sys.exit("our program does not build")
    ours = subprocess.run(["cabal", "list-bin", "-v0", *flags, "redis-client:bench:scan"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    builds.quiet()
    counts = "--count" in subprocess.run([chosen.cli, "--help"], capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        server = lone.Server(folder, "--enable-debug-command", "yes")
        try:
            taken, _ = timed(lambda: server.says("DEBUG", "POPULATE", chosen.keys))
            print(f"{server.says('DBSIZE').decode()[1:].strip()} keys in {taken:.1f} s", flush=True)
            cli = lambda *more: subprocess.run([chosen.cli, "-p", str(server.port), "--scan", *more], stdout=subprocess.DEVNULL, check=True)
            large = (lambda: cli("--count", "1000")) if counts else (lambda: bare(server.port, 1000))
            walk = lambda: subprocess.run([ours, "127.0.0.1", str(server.port), "0", "+RTS", "-T"], check=True, capture_output=True, text=True).stdout.split()
            times = {"default": [], "thousand": [], "ours": []}
            alive = 0
            for _ in range(chosen.rounds):
                times["default"].append(timed(cli)[0])
                times["thousand"].append(timed(large)[0])
                taken, (keys, _, _, bytes_alive) = timed(walk)
                times["ours"].append(taken)
                alive = max(alive, int(bytes_alive))
                if int(keys) < chosen.keys:
                    sys.exit(f"ours saw {keys} keys")
        finally:
            server.close()
    best = {name: min(list_of) for name, list_of in times.items()}
    named = "redis-cli --scan --count 1000" if counts else "a bare socket, COUNT 1000"
    print(f"redis-cli --scan            {best['default']:8.2f} s  {best['default'] / best['ours']:6.2f} times ours")
    print(f"{named:27s} {best['thousand']:8.2f} s  {best['thousand'] / best['ours']:6.2f} times ours")
    print(f"foldScan                    {best['ours']:8.2f} s  {alive / 1e6:.2f} MB alive at most")
    sys.exit(0 if best["default"] >= BOUND * best["ours"] and best["thousand"] >= best["ours"] else 1)


if __name__ == "__main__":
    try:
        main()
    except Trouble as trouble:
        sys.exit(f"scan: {trouble}")

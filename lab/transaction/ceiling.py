#!/usr/bin/env python3
"""What a server itself does with transactions of two commands, and with the two alone.

    ceiling.py [--rounds N] [--seconds N]

A bare socket sends 256 times INCR and GET, or 256 times MULTI, INCR, GET and EXEC, as one
block that is ready beforehand, and waits for all replies, which it only counts in bytes.
So the client does next to nothing, and what is measured is the server. Rounds of both, in
random order.

Said is how many INCR and GET a second there were in transactions, over how many there were
alone: no client can come above that. Exit status 0.
"""

import argparse
import contextlib
import pathlib
import random
import socket
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "pair"))

import builds  # noqa: E402
import lone  # noqa: E402

CALLERS = 256
ALONE = lone.request(b"INCR", b"key") + lone.request(b"GET", b"key")
INSIDE = lone.request(b"MULTI") + ALONE + lone.request(b"EXEC")


def blocks(port, block, replies, seconds):
    """INCR and GET a second."""
    connection = socket.create_connection(("127.0.0.1", port))
    # Ten digits, so that all replies have one length.
    connection.sendall(lone.request(b"SET", b"key", b"1000000000"))
    connection.recv(100)
    done, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        connection.sendall(block * CALLERS)
        missing = CALLERS * replies
        while missing > 0:
            missing -= len(connection.recv(1 << 20))
        assert missing == 0, "replies of another length"
        done += 2 * CALLERS
    connection.close()
    return done / (time.monotonic() - began)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=12)
    arguments.add_argument("--seconds", type=float, default=2)
    chosen = arguments.parse_args()
    alone = len(b":1000000001\r\n$10\r\n1000000001\r\n")
    ways = {
        "alone": (ALONE, alone),
        "inside": (INSIDE, alone + len(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n")),
    }
    builds.quiet()
    ratios, rates = [], {"alone": [], "inside": []}
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(lone.Server(folder)) as server:
        for _ in range(chosen.rounds):
            found = {}
            for way in random.sample(sorted(ways), 2):
                found[way] = blocks(server.port, *ways[way], chosen.seconds)
                rates[way].append(found[way])
            ratios.append(found["inside"] / found["alone"])
    for way in ways:
        print(f"{way:7s} {statistics.median(rates[way]):12,.0f} INCR and GET a second")
    print(f"inside / alone {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {chosen.rounds} rounds")


if __name__ == "__main__":
    main()

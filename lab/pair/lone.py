"""A private server by itself, and one connection to it."""

import contextlib
import os
import shutil
import socket
import subprocess
import time

from builds import Trouble
from servers import version_of


def request(*words):
    """A command as bytes."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Server:
    """With these options besides."""

    def __init__(self, folder, *options):
        program = os.environ.get("REDIS_TESTKIT_SERVER") or shutil.which("redis-server") or shutil.which("valkey-server")
        if not program:
            raise Trouble("there is no redis-server")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        words = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", folder, *options]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        for _ in range(500):
            with contextlib.suppress(OSError):
                self.connection = socket.create_connection(("127.0.0.1", self.port))
                return
            time.sleep(0.02)
        self.process.kill()
        self.process.wait()
        raise Trouble("the server did not start")

    def says(self, *words):
        """The bytes of the reply: what comes before that to a marker."""
        marker = b"end of the reply"
        self.connection.sendall(request(*words) + request("ECHO", marker))
        end = b"$%d\r\n%s\r\n" % (len(marker), marker)
        said = bytearray()
        while not said.endswith(end):
            got = self.connection.recv(1 << 20)
            if not got:
                raise Trouble("the server hung up")
            said += got
        reply = bytes(said[: -len(end)])
        if reply.startswith(b"-"):
            raise Trouble(f"the server says {reply.decode()}")
        return reply

    def version(self):
        return version_of(self.says("INFO", "server").decode())

    def close(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait()

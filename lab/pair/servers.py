"""The private servers of a measurement, and what they say of themselves."""

import contextlib
import socket
import subprocess

from builds import Trouble


class Place:
    """A server, or the nodes of a cluster."""

    def __init__(self, name, ports):
        self.ports = ports
        # As the load program takes it.
        self.argument = ("cluster" if name == "cluster" else "server") + f":{ports[0]}"

    def calls(self, command):
        """How often the servers have run a command."""
        total = 0
        for port in self.ports:
            for line in info(port, "commandstats").splitlines():
                if line.startswith(f"cmdstat_{command}:calls="):
                    total += int(line.split("=")[1].split(",")[0])
        return total

    def version(self):
        return version_of(info(self.ports[0], "server"))


@contextlib.contextmanager
def running(program, names):
    """The places of these names, for as long as the block lasts."""
    # They end when their keeper does, and it ends when its input does.
    keeper = subprocess.Popen([program, *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        places = {}
        for line in keeper.stdout:
            if not line.strip():
                break
            name, *ports = line.split()
            places[name] = Place(name, [int(port) for port in ports])
        if set(places) != set(names):
            raise Trouble("the servers did not start")
        yield places
    finally:
        keeper.stdin.close()
        keeper.stdout.close()
        keeper.wait()


def version_of(told):
    """Name and version, from what INFO server says."""
    fields = dict(line.split(":", 1) for line in told.splitlines() if ":" in line)
    # Valkey also says for which Redis it stands.
    name = "valkey" if "valkey_version" in fields else "redis"
    return f"{name} {fields[name + '_version']}"


def info(port, section):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, connection.makefile("rb") as replies:
            connection.sendall(f"INFO {section}\r\n".encode())
            header = replies.readline()
            if not header.startswith(b"$"):
                raise Trouble(f"a server answers INFO with {header!r}")
            return replies.read(int(header[1:])).decode()
    except OSError as problem:
        raise Trouble(f"a server does not answer: {problem}") from None

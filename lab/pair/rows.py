"""What is measured of each revision: the rows of the table."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    what: str
    place: str
    operation: str
    threads: int
    batch: int
    capabilities: int = 1
    # Each collection looks at every thread's stack; fewer of them for many threads.
    runtime: tuple = ()

    @property
    def cores(self):
        return "0,1" if self.place == "free" else "1"


ROWS = [
    Row("get-batch", "GET, 16 threads × 64", "pinned", "get", 16, 64),
    Row("set-batch", "SET, 16 threads × 64", "pinned", "set", 16, 64),
    Row("get-1", "GET, 1 waiting", "pinned", "get", 1, 1),
    Row("get-16", "GET, 16 waiting", "pinned", "get", 16, 1),
    Row("get-64", "GET, 64 waiting", "pinned", "get", 64, 1),
    Row("get-256", "GET, 256 waiting", "pinned", "get", 256, 1),
    Row("get-1024", "GET, 1024 waiting", "pinned", "get", 1024, 1, runtime=("-A16m",)),
    Row("mget-100", "MGET of 100 keys, 16 waiting", "pinned", "mget", 16, 1),
    Row("cluster-batch", "cluster: GET, 16 threads × 64", "cluster", "get", 16, 64),
    Row("cluster-256", "cluster: GET, 256 waiting", "cluster", "get", 256, 1),
    Row("cluster-8192", "cluster: GET, 8192 waiting", "cluster", "get", 8192, 1, runtime=("-A16m",)),
    Row("n2-batch", "-N2: GET, 16 threads × 64", "free", "get", 16, 64, capabilities=2),
    Row("n2-256", "-N2: GET, 256 waiting", "free", "get", 256, 1, capabilities=2),
]


def chosen(names):
    """The rows of these names, in the table's order; all for none. Raises KeyError."""
    known = {row.name for row in ROWS}
    for name in names:
        if name not in known:
            raise KeyError(name)
    return [row for row in ROWS if not names or row.name in names]

"""The comparison of the REST services, as docs/speed.md shows it.

A round's ratio is to the service in C# that was best in that round: the fastest for the rate, the one of the lowest
p99.9 for the latency, the one that needs least for the processor time. A round in which a service in C# had fewer than
ten seconds of warm-up has no ratio, because .NET still compiles then.
"""
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from libraries import FULL, Standing, several, spread, standing_of
from runs import ROOT, Run, text_of

SCENARIOS = {"single": "GET one", "list": "GET list", "post": "POST", "mixed": "mixed"}
PLACES = {
    ("Standalone", "Pinned"): "one Redis, a core each",
    ("Standalone", "Free"): "one Redis, both cores for all",
    ("Cluster", "Pinned"): "a cluster of five, a core each",
    ("Cluster", "Free"): "a cluster of five, both cores for all",
}

Round = dict[str, dict]


def rate(one: dict) -> float:
    return one["outcome"]["requestsPerSecond"]


def cost(one: dict) -> float:
    return one["outcome"]["cpuPerRequest"]


def tail(one: dict) -> float | None:
    """p99.9 of the open loop in microseconds; none where a round has no open loop."""
    return (one["outcome"].get("openLoop") or {}).get("p99_9")


def warmed_up(one: dict) -> bool:
    """Whether a service had time to be compiled for good."""
    return float(one["facts"].get("warm-up", 0)) >= 10


def loop_full(one: dict) -> bool:
    """Whether the generator of the closed loop was at its end, or the core that it shares with Redis."""
    outcome, cores = one["outcome"], one["outcome"].get("coresBusy") or [0]
    return outcome.get("generatorBusy", 0) > FULL or (one["cell"]["layout"] == "Pinned" and cores[0] > 0.95)


def sender_full(one: dict) -> bool:
    """Whether the generator of the open loop was at its end."""
    return (one["outcome"].get("openLoop") or {}).get("senderBusy", 0) > FULL


@dataclass
class Service:
    """One cell of a run: in each of its rounds ours, and all in C#."""

    place: str
    title: str
    rounds: list[tuple[dict, Round]]

    @property
    def warm(self) -> list[tuple[dict, Round]]:
        return [(ours, others) for ours, others in self.rounds if all(map(warmed_up, others.values()))]

    def ratios(self, of: Callable[[dict], float | None], best: Callable) -> list[float]:
        found = []
        for ours, others in self.warm:
            values = [value for one in others.values() if (value := of(one)) is not None]
            mine = of(ours)
            if mine is not None and values and best(values):
                found.append(mine / best(values))
        return found

    @property
    def rates(self) -> list[float]:
        return self.ratios(rate, max)

    def median(self, name: str, of: Callable[[dict], float | None]) -> float | None:
        values = [value for _, others in self.rounds if name in others and (value := of(others[name])) is not None]
        return statistics.median(values) if values else None

    def name(self, of: Callable[[dict], float | None], best: Callable) -> str | None:
        """The row in C# that is best by its median."""
        names = {name for _, others in self.rounds for name in others}
        known = [(value, name) for name in sorted(names) if (value := self.median(name, of)) is not None]
        return best(known)[1] if known else None

    def mark(self, full: Callable[[dict], bool]) -> str:
        return "\\*" if any(full(one) for ours, others in self.rounds for one in (ours, *others.values())) else ""

    @property
    def line(self) -> str:
        mine = statistics.median(rate(ours) for ours, _ in self.rounds)
        fastest = self.name(rate, max)
        theirs = self.median(fastest, rate)
        shown = [f"{self.title}, {self.place}", f"{mine / 1000:.1f} k/s{self.mark(loop_full)}", f"{fastest.removeprefix('dotnet-')}, {theirs / 1000:.1f} k/s"]
        if not self.rates:
            return "| " + " | ".join([*shown, "too little warm-up of C#", "", "", ""]) + " |"
        shown += [spread(self.rates), f"{sum(ratio > 1 for ratio in self.rates)} of {len(self.rates)}"]
        tails = self.ratios(tail, min)
        if tails:
            quick = self.name(tail, min)
            own = statistics.median(value for ours, _ in self.warm if (value := tail(ours)) is not None)
            other = self.median(quick, tail)
            shown.append(f"{spread(tails)}: {own / 1000:.1f} / {other / 1000:.1f} ms{self.mark(sender_full)}")
        else:
            shown.append("–")
        shown.append(spread(self.ratios(cost, min)))
        return "| " + " | ".join(shown) + " |"


def services_of(run: Run) -> list[Service]:
    groups: dict[tuple, dict[int, Round]] = {}
    for one in run.document["cells"]:
        cell = one["cell"]
        # The naive design is another question.
        if one["outcome"]["problems"] or cell["row"].endswith("-naive") or not cell["row"].startswith(("haskell", "dotnet")):
            continue
        key = (cell["topology"], cell["layout"], cell["scenario"], cell["connections"])
        groups.setdefault(key, {}).setdefault(cell["iteration"], {})[cell["row"]] = one
    found = []
    for (topology, layout, scenario, connections), turns in groups.items():
        rounds = []
        for _, rows in sorted(turns.items()):
            others = {name: one for name, one in rows.items() if name.startswith("dotnet")}
            if "haskell" in rows and others:
                rounds.append((rows["haskell"], others))
        if rounds:
            found.append(Service(PLACES[topology, layout], f"{SCENARIOS.get(scenario, scenario)}, {connections} connections", rounds))
    return found


HEAD = ["| | haskell | fastest C# | rate, ours ÷ | rounds ahead | p99.9, ours ÷ | processor time, ours ÷ |", "|---|--:|---|--:|--:|--:|--:|"]


def service_lines(run: Run) -> list[str]:
    """A REST run as a table; empty if it has nothing in C#."""
    cells = services_of(run)
    return HEAD + [cell.line for cell in cells] if cells else []


def autocannon_lines(run: Run) -> list[str]:
    """A run by autocannon: each row's median, slowest and fastest round, and ours beside the fastest in C# of the same round."""
    groups: dict[tuple, dict[str, dict[int, dict]]] = {}
    for line in text_of(run.raw).splitlines():
        one = json.loads(line)
        groups.setdefault((one["scenario"], one["connections"]), {}).setdefault(one["row"], {})[one["iteration"]] = one
    out = ["| | row | requests a second | generator busy | ours ÷ the faster C# of the round |", "|---|---|--:|--:|--:|"]
    for (scenario, connections), rows in groups.items():
        others = {name: rounds for name, rounds in rows.items() if name != "haskell"}
        for name, rounds in rows.items():
            rates = [one["perSecond"] for one in rounds.values()]
            busy = statistics.median(one["generatorBusy"] for one in rounds.values())
            mark = "\\*" if busy > FULL else ""
            ratios = [one["perSecond"] / max(other[turn]["perSecond"] for other in others.values()) for turn, one in rounds.items()] if name == "haskell" else []
            spreads = f"{statistics.median(rates) / 1000:.1f} k/s{mark} ({min(rates) / 1000:.1f}–{max(rates) / 1000:.1f})"
            out.append(f"| {SCENARIOS.get(scenario, scenario)}, {connections} connections | {name} | {spreads} | {100 * busy:.0f} % | {spread(ratios) if ratios else ''} |")
    return out


def sides(run: Run) -> tuple:
    """The rows in C# of a run, and the .NET that they ran on."""
    rows = {one["cell"]["row"] for one in run.document["cells"]}
    return run.document["manifest"].get("dotnet"), frozenset(row for row in rows if row.startswith("dotnet") and not row.endswith("-naive"))


def measured_services(runs: list[Run]) -> list[tuple[Run, list[Service]]]:
    """The runs that have ratios, beside the same services in C# as the newest of them."""
    whole = [(run, found) for run in runs if (found := [cell for cell in services_of(run) if cell.rates])]
    return [(run, found) for run, found in whole if sides(run) == sides(whole[-1][0])]


@dataclass
class Scenario:
    """A cell of several runs, the oldest first."""

    services: list[Service]

    def mark(self, full: Callable[[dict], bool]) -> str:
        """A star if the generator was full in a round of any of the runs."""
        return next((star for service in self.services if (star := service.mark(full))), "")

    @property
    def newest(self) -> Service:
        return self.services[-1]

    @property
    def rates(self) -> Standing:
        return standing_of([service.rates for service in self.services], lambda ratio: ratio > 1, "rounds")

    @property
    def tails(self) -> Standing | None:
        return standing_of([service.ratios(tail, min) for service in self.services], lambda ratio: ratio < 1, "rounds")

    @property
    def costs(self) -> Standing:
        return standing_of([service.ratios(cost, min) for service in self.services], lambda ratio: ratio < 1, "rounds")

    @property
    def line(self) -> str:
        newest = self.newest
        fastest = newest.name(rate, max)
        mine = statistics.median(rate(ours) for ours, _ in newest.rounds), statistics.median(cost(ours) for ours, _ in newest.rounds)
        theirs = newest.median(fastest, rate), newest.median(fastest, cost)
        shown = [f"{one / 1000:.1f} k/s, {each:.0f} µs" for one, each in (mine, theirs)]
        tails = f"{self.tails}{self.mark(sender_full)}" if self.tails else "–"
        columns = [newest.title, f"{shown[0]}{self.mark(loop_full)}", f"{fastest.removeprefix('dotnet-')}: {shown[1]}", self.rates, tails, self.costs]
        return "| " + " | ".join(map(str, columns)) + " |"


def scenarios(known: list[tuple[Run, list[Service]]], place: str) -> list[Scenario]:
    """What these runs have of a place, in the order of the newest."""
    cells = [service for _, found in reversed(known) for service in found if service.place == place]
    titles = dict.fromkeys(service.title for service in cells)
    return [Scenario([service for service in reversed(cells) if service.title == title]) for title in titles]


def in_services(runs: list[Run]) -> list[str]:
    """The scenarios of each place: rate, latency and processor time."""
    known = measured_services(runs)
    out: list[str] = []
    for place in PLACES.values():
        found = scenarios(known, place)
        if not found:
            continue
        worst = min(ratio for run in runs for cell in services_of(run) if cell.place == place for ratio in cell.rates)
        out += [f"| {place} | haskell | the faster C# | rate, ours ÷ the faster C# | p99.9, ours ÷ the lower | processor time, ours ÷ the lower |", "|---|--:|--:|---|---|---|"]
        out += [scenario.line for scenario in found]
        out += ["", f"The worst round of all runs had {worst:.2f} of the rate.", ""]
    names = [run.name for run, _ in known]
    out += [f"**Bold** is of the {several(len(names))} beside today's services in C#: {', '.join(names)}; rates and processor time per request are of the newest that has the place.",
            "▼: ours was behind in half of the rounds or more. Shorter is better for p99.9 and processor time. \*: a lower bound, [as below](#in-a-service)."]
    return out


def in_one_sentence(runs: list[Run]) -> str:
    """What the README says of it: the ratios of all scenarios in all places, lowest and highest."""
    known = measured_services(runs)
    found = [scenario for place in PLACES.values() for scenario in scenarios(known, place)]
    rates = [scenario.rates.ratio for scenario in found]
    tails = [scenario for scenario in found if scenario.tails]
    shorter = [scenario for scenario in tails if scenario.tails.ratio < 1]
    limited = sum(bool(scenario.mark(sender_full)) for scenario in shorter)
    return (
        f"A REST service answers {min(rates):.2f} to {max(rates):.2f} times the requests of one in ASP.NET Core; its p99.9 is shorter in {len(shorter)} of {len(tails)} "
        "[scenarios](docs/speed.md#in-a-rest-service)" + (f", in {limited} of them with a generator that was busy." if limited else ".")
    )

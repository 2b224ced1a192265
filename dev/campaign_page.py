"""What docs/campaign.md shows: the newest campaign beside the series of measurements that it follows, and the curves of its long runs."""
import json
import re
import statistics
from functools import cache
from pathlib import Path

from libraries import FULL, spread
from runs import RESULTS, ROOT, stored, text_of

SOURCE = ROOT / "compare" / "source-campaign.json"
PLACES = [("aof-everysec", "disk"), ("aof-everysec", "memory"), ("aof-always", "disk"), ("aof-always", "memory")]
SOAKED = ["aof-everysec", "aof-always"]
PARTS = ["campaign", "campaign-participant", "campaign-one-caller", "campaign-network", "campaign-one-key", "campaign-script-load"]
NETWORK = "rtt=124us"
ROUND_TRIP = 124e-6

# By workload, persistence, place, bytes and callers.
Cells = dict[tuple, dict]


def kept(suffix: str) -> list[Path]:
    """The runs of a part."""
    return [folder for folder in RESULTS.glob(f"*-{suffix}") if stored(folder / "campaign.json").exists()]


def newest(suffix: str) -> Path | None:
    return max(kept(suffix), default=None)


def newest_soak() -> Path | None:
    """The newest run with the long runs, which up to 2026-11-28 stood in the first part."""
    return max((folder for folder in [*kept("campaign"), *kept("campaign-soak")] if soaks(folder)), default=None)


@cache
def document_of(folder: Path) -> dict:
    return json.loads(text_of(stored(folder / "campaign.json")))


def is_soak(run: dict) -> bool:
    return run["name"].startswith("soak ")


def runs_of(folder: Path | None, net: str = "local") -> list[dict]:
    """Those of Redis at this distance; local: on this machine, without round trips that were added."""
    if folder is None:
        return []
    axes = [(run, run["spec"]["axes"]) for run in document_of(folder)["runs"]]
    return [run for run, each in axes if each["net"] == net and each["server"].startswith("redis")]


def cells_of(folder: Path | None, net: str = "local") -> Cells:
    return {key(run): run for run in runs_of(folder, net) if not is_soak(run)}


def key(run: dict) -> tuple:
    axes = run["spec"]["axes"]
    return (axes["workload"], axes["persistence"], axes["place"], int(axes["payload"]), int(axes["clients"]))


def thousands(value: float | None) -> str:
    return "–" if value is None else f"{round(value):,}".replace(",", " ")


def short(value: float) -> str:
    """Two or three digits: no more of them mean anything."""
    return f"{value / 1000:.0f} k" if value >= 20_000 else f"{value / 1000:.1f} k"


def rates(run: dict) -> list[float]:
    return [each["ops_per_sec"] for each in run["iterations"]]


def is_full(run: dict) -> bool:
    """Whether the load's own core was full in a turn."""
    return any(((each.get("trust") or {}).get("cpu_share") or 0) > FULL for each in run["iterations"])


def ours(run: dict | None) -> str:
    """The median of the turns, with the slowest and the fastest; a star where the load's own core was full."""
    if run is None:
        return "–"
    if run["problems"]:
        return "not valid"
    found = rates(run)
    star = "\\*" if is_full(run) else ""
    return f"{short(statistics.median(found))}{star} ({short(min(found))}–{short(max(found))})"


def benchmark(run: dict | None) -> str:
    """The median of as many runs as ours has turns, with the slowest and the fastest where the raw data have them."""
    said = (run or {}).get("redis_benchmark")
    if not said:
        return "–"
    turns = said.get("turns_ops_per_sec")
    return short(said["ops_per_sec"]) + (f" ({short(min(turns))}–{short(max(turns))})" if turns else "")


def part(folder: Path) -> str:
    """One part: where it is, how it was measured, and on what disk."""
    document = document_of(folder)
    cell = next(run for run in document["runs"] if not is_soak(run))
    manifest = document["manifest"]
    syncs = manifest["disk"]["fsync_ns"]
    page = f"../{folder.relative_to(ROOT).as_posix()}/report.md"
    load = manifest["facts"]["load_average_at_start"].partition(" ")[0]
    return f"| [{folder.name}]({page}) | {manifest['revision'][:7]} | {len(cell['iterations'])} × {cell['spec']['duration_sec']:g} s | {syncs['p50'] / 1000:.0f} µs, {syncs['p99'] / 1000:.0f} µs | {load} |"


def tests(source: dict, whole: Cells) -> list[str]:
    out = [
        "| test | " + " | ".join(f"there: {machine}" for machine in source["machines"]) + " | redis-benchmark here, disk: everysec | always | redis-client here, disk: everysec | always |",
        "|---|" + "--:|" * (len(source["machines"]) + 4),
    ]
    for test in source["tests"]:
        disk = [whole.get((test["workload"], persistence, "disk", test["payload"], 50)) for persistence in SOAKED]
        out.append("| " + " | ".join([test["test"], *map(thousands, test["rates"]), *map(benchmark, disk), *map(ours, disk)]) + " |")
    return out


def not_in_tests(whole: Cells) -> str:
    """What the table of the tests has no column for."""
    everysec, always = (ours(whole.get(("set", persistence, "memory", 3, 50))) for persistence in SOAKED)
    return f"With the server's files in memory, the first part measures SET of a random key alone: {everysec} with `everysec`, {always} with `always`."


def scripts(source: dict, whole: Cells, participant: Cells) -> list[str]:
    out = ["| SET by a script, 50 callers | key | everysec, disk | everysec, memory | always, disk | always, memory |", "|---|---|--:|--:|--:|--:|"]
    for payload in source["scripts"]:
        for name, cells in [("`key:…`", whole), ("as long as a participant's", participant)]:
            found = [cells.get(("eval-set", *place, payload, 50)) for place in PLACES]
            if any(found):
                out.append("| " + " | ".join([f"{payload} bytes", name, *map(ours, found)]) + " |")
    return out


def one_client(source: dict, cells: Cells) -> list[str]:
    out = ["| SET, one client, always | there | redis-benchmark here, disk | redis-client here, disk | memory |", "|---|--:|--:|--:|--:|"]
    for test in source["one_client"]:
        disk, memory = (cells.get(("set", "aof-always", place, test["payload"], 1)) for place in ("disk", "memory"))
        out.append(f"| {test['test']} | {thousands(test['rate'])} | {benchmark(disk)} | {ours(disk)} | {ours(memory)} |")
    return out


def network(source: dict, folder: Path | None) -> list[str]:
    """SETs over a network there, beside a round trip that is added here."""
    far, near = cells_of(folder, NETWORK), cells_of(folder)
    if not far:
        out = ["Not measured here yet: `ONLY=network make campaign` adds a round trip of 124 µs, by a relay of the program where the kernel cannot.", "", "| SET, always, over the network | there |", "|---|--:|"]
        return out + [f"| {test['test']} | {thousands(test['rate'])} |" for test in source["network"]]
    out = [
        "| SET, always | there, over the network | redis-benchmark here, disk: over 124 µs | without | redis-client here, disk: over 124 µs | without |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for test in source["network"]:
        both = [cells.get(("set", "aof-always", "disk", test["payload"], test["clients"])) for cells in (far, near)]
        shown = [of(run) + mark for of, rate_of in ((benchmark, said_rate), (ours, our_rate)) for run, mark in zip(both, (limited(*both, rate_of), ""))]
        out.append("| " + " | ".join([test["test"], thousands(test["rate"]), *shown]) + " |")
    return [*out, "", delayed(list(far.values()))]


def said_rate(run: dict) -> float | None:
    return (run.get("redis_benchmark") or {}).get("ops_per_sec")


def our_rate(run: dict) -> float:
    return statistics.median(rates(run))


def limited(far: dict | None, near: dict | None, rate_of) -> str:
    """A dagger if each command took two round trips more through the relay than without it, by Little's law: then the relay was the limit."""
    found = [rate_of(run) for run in (far, near) if run]
    if len(found) < 2 or not all(found):
        return ""
    callers = int(far["spec"]["axes"]["clients"])
    return "†" if callers / found[0] - callers / found[1] > 2 * ROUND_TRIP else ""


def delayed(runs: list[dict]) -> str:
    """How the round trip was made, and how long it really was."""
    said = [re.fullmatch(r"a PING takes ([0-9.]+)(us|ms)", note) for run in runs for note in run["notes"]]
    pings = [float(found[1]) * (1000 if found[2] == "ms" else 1) for found in said if found]
    by_relay = any(run["spec"]["network"].startswith("relay") for run in runs)
    how = "a relay of the program makes the round trip: it loses nothing, and shares the processors with server and load" if by_relay else "the kernel makes the round trip"
    return f"Here {how}. With what the machine adds, a PING took {min(pings):.0f} to {max(pings):.0f} µs before the turns. †: each command took more than two round trips longer than without the relay (by Little's law), so the relay was the limit: it passes on one packet after the other, and fifty connections send more of them than one."


def slower(all_cells: list[tuple[str, Cells]], near: Cells) -> list[str]:
    """Where ours is below redis-benchmark by the median of the turns, with what is said of all cells of a part. The last cells are those without the relay."""
    out = ["| where redis-benchmark is faster | redis-benchmark | redis-client | ours ÷ it |", "|---|--:|--:|--:|"]
    behind = []
    for about, cells in all_cells:
        for (workload, persistence, place, payload, callers), run in cells.items():
            said = run.get("redis_benchmark")
            turns = said.get("turns_ops_per_sec") if said else None
            # Each turn of ours beside redis-benchmark's run after it; the raw data before 2026-11-28 have its median alone.
            paired = [mine / theirs for mine, theirs in zip(rates(run), turns)] if turns and len(turns) == len(rates(run)) else []
            ratio = statistics.median(paired) if paired else our_rate(run) / said_rate(run) if said else 1
            if ratio < 1:
                behind.append((workload, persistence, place, payload, callers))
                how = "1 caller" if callers == 1 else f"{callers} callers"
                shown = spread(paired) if paired else f"{ratio:.2f}"
                marks = [limited(run, near.get(key(run)), of) for of in (said_rate, our_rate)] if about else ["", ""]
                out.append(f"| {workload}, {persistence}, {place}, {payload} bytes, {how}{about} | {benchmark(run)}{marks[0]} | {ours(run)}{marks[1]} | {shown} |")
    if any(persistence == "aof-always" and payload >= 3000 and callers > 1 for _, persistence, _, payload, callers in behind):
        out += ["", "Large values with `always` are of one connection here. With four connections ours is ahead, by medians whose spreads overlap: see the rule at the top."]
    return out


def seconds_of(run: dict) -> list[float]:
    """Commands in each second of a long run."""
    found = []
    for each in run["iterations"][0]["series"]:
        count = sum(command["service_ns"]["count"] for command in each["commands"].values() if command["service_ns"])
        found.append(count / each["span"])
    return found


def soaks(whole: Path | None) -> dict[str, dict]:
    found = {run["spec"]["axes"]["persistence"]: run for run in runs_of(whole) if is_soak(run)}
    return {persistence: found[persistence] for persistence in SOAKED if persistence in found}


def soak_lines(found: dict[str, dict]) -> list[str]:
    out = ["| here, 50 callers, 3 bytes | slowest second | 5 % of seconds below | median second | 5 % above | fastest second |", "|---|--:|--:|--:|--:|--:|"]
    for persistence, run in found.items():
        rate = sorted(seconds_of(run))
        parts = statistics.quantiles(rate, n=20)
        shown = [rate[0], parts[0], statistics.median(rate), parts[-1], rate[-1]]
        star = "\\*" if is_full(run) else ""
        out.append(f"| {len(rate)} s, {persistence}, disk{star} | " + " | ".join(map(short, shown)) + " |")
    return out


def curves(colours: dict) -> str:
    """Each second of the long runs."""
    found = soaks(newest_soak())
    width, left, right, panel, gap, top = 860, 64, 36, 150, 56, 58
    height = top + len(found) * (panel + gap)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="13" role="img" aria-label="SETs in each second of the long runs">',
        f'<rect width="{width}" height="{height}" fill="{colours["ground"]}"/>',
        f'<text x="{left}" y="24" fill="{colours["ink"]}" font-size="15" font-weight="600">SETs in each second of half an hour, 50 callers, 3 bytes, disk</text>',
    ]
    for number, (persistence, run) in enumerate(found.items()):
        rate = seconds_of(run)
        begin = top + number * (panel + gap)
        step = 10 ** (len(str(int(max(rate)))) - 1) * 2
        scale = step * -(-max(rate) // step)

        def across(second: float) -> float:
            return left + (width - left - right) * second / len(rate)

        def up(value: float) -> float:
            return begin + panel * (1 - value / scale)

        out.append(f'<text x="{left}" y="{begin - 8}" fill="{colours["soft"]}">{persistence}</text>')
        for value in range(0, int(scale) + 1, int(step)):
            out.append(f'<line x1="{left}" x2="{width - right}" y1="{up(value):.1f}" y2="{up(value):.1f}" stroke="{colours["faint"]}"/>')
            out.append(f'<text x="{left - 8}" y="{up(value) + 4:.1f}" text-anchor="end" fill="{colours["soft"]}">{value // 1000}{" k" if value else ""}</text>')
        for minute in range(0, len(rate) // 60 + 1, 5):
            out.append(f'<text x="{across(60 * minute):.1f}" y="{begin + panel + 18}" text-anchor="middle" fill="{colours["soft"]}">{minute} min</text>')
        points = " ".join(f"{across(second):.1f},{up(value):.1f}" for second, value in enumerate(rate))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colours["lines"][0]}" stroke-width="0.7" stroke-linejoin="round"/>')
    return "\n".join(out + ["</svg>", ""])


def block() -> str:
    """The tables, with a dash where a campaign has no such cell."""
    folders = [newest(name) for name in PARTS]
    whole, participant, single, near, one_key, loaded = map(cells_of, folders)
    long = newest_soak()
    source = json.loads(SOURCE.read_text())
    return "\n".join([
        "| part | revision | each cell | fsync on the disk after it: p50, p99 | load average |",
        "|---|---|--:|--:|--:|",
        *(part(folder) for folder in dict.fromkeys([*folders, long]) if folder),
        "",
        "Ours: the median of the turns (the slowest and the fastest). Of redis-benchmark here: the same. The figures of there are of one run each. *: the load's own core was more than 80 % busy in a turn, so that the server could do more.",
        "",
        "### Fifty callers",
        "",
        *tests(source, {**whole, **one_key, **loaded}),
        "",
        not_in_tests(whole),
        "",
        "### SET by a script",
        "",
        "The source has no such figures: it meant to measure this, and sent SCRIPT LOAD.",
        "",
        *scripts(source, whole, participant),
        "",
        "### One caller",
        "",
        *one_client(source, {**whole, **single}),
        "",
        "### Over a network",
        "",
        *network(source, folders[3]),
        "",
        "### For a long time",
        "",
        *soak_lines(soaks(long)),
        "",
        "<picture>",
        '  <source media="(prefers-color-scheme: dark)" srcset="figures/soak-dark.svg">',
        '  <img alt="SETs in each second of the two long runs" src="figures/soak-light.svg">',
        "</picture>",
        "",
        "| there, always, 50 clients | a second |",
        "|---|--:|",
        *(f"| {test['test']} | {thousands(test['rate'])} |" for test in source["long"]),
        "",
        "### Where redis-benchmark is faster",
        "",
        *slower([("", whole), ("", participant), ("", single), ("", near), ("", one_key), ("", loaded), (", over 124 µs", cells_of(folders[3], NETWORK))], near),
    ])

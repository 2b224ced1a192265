"""What a measurement found, as a Markdown table."""

import judge


def markdown(document):
    old, new = document["old"], document["new"]
    settings = document["settings"]
    lines = [
        f"# {named(new)} against {named(old)}",
        "",
        f"- {document['date']}, {settings['pairs']} pairs of each row, {settings['seconds']:g} s each after {settings['warmup']:g} s of warm-up",
        f"- old: `{named(old)}` {old['subject']}",
        f"- new: `{named(new)}` {new['subject']}",
        *(["- both are one and the same program, to the byte: what differs is chance"] if old["program"] == new["program"] else []),
        f"- {document['machine']['processor']}, {document['machine']['cores']} cores, Linux {document['machine']['kernel']};"
        f" {document['compiler']}; {document['server']}",
        "- servers on core 0, client on core 1; both on both for `-N2`. 100 000 keys, values of 512 bytes",
        f"- ratios are new/old, geometric means over the pairs; {100 * judge.CONFIDENCE:.0f} % intervals by Student's t over their logarithms",
        f"- a row fails if the whole interval is below {settings['rate_bound']} of the rate, or above"
        f" {settings['cpu_bound']} of the processor time per command; undecided: the bound lies within it",
        "",
        "| row | rate | 95 % | per second, old → new | processor time | 95 % | µs, old → new | verdict |",
        "|---|--:|---|---|--:|---|---|---|",
    ]
    lines += ["| " + " | ".join(cells(line)) + " |" for line in document["rows"]]
    for line in document["rows"]:
        lines += ["", *(f"- {line['row']}: {problem}" for problem in line["problems"])] if line["problems"] else []
    return "\n".join(lines) + "\n"


def named(side):
    return side["commit"][:12] + (f" with changes {side['changes']}" if side["changes"] else "")


def cells(line):
    what = f"`{line['row']}` {line['what']}"
    if "rate" not in line:
        return [what, "", "", "", "", "", "", line["verdict"]]
    rate, cpu = line["rate"], line["cpu"]
    return [
        what,
        f"{rate['ratio']:.3f}",
        between(rate),
        f"{rate['old']:,.0f} → {rate['new']:,.0f}".replace(",", " "),
        f"{cpu['ratio']:.3f}",
        between(cpu),
        f"{cpu['old'] / 1e3:.2f} → {cpu['new'] / 1e3:.2f}",
        verdict(line),
    ]


def between(figure):
    return "none" if figure["low"] is None else f"{figure['low']:.3f}–{figure['high']:.3f}"


def verdict(line):
    if line["verdict"] in (judge.HOLDS, judge.INVALID):
        return line["verdict"]
    return f"{line['verdict']} (" + ", ".join(f"{name} {line[key]['verdict']}" for key, name in (("rate", "rate"), ("cpu", "processor time"))) + ")"


def console(document):
    """The table for a terminal."""
    head = ["row", "rate", "95 %", "processor time", "95 %", "verdict"]
    table = [head] + [
        [line["row"], *([line["verdict"]] if "rate" not in line else [cells(line)[place] for place in (1, 2, 4, 5, 7)])]
        for line in document["rows"]
    ]
    widths = [max(len(row[place]) for row in table if place < len(row)) for place in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table)

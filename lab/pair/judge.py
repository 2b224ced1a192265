"""What the pairs of a row allow to say.

A pair gives one ratio, new to old. The ratio of a row is the geometric mean over
its pairs; the interval is Student's t, 95 %, over the logarithms of the ratios.
"""

import math

CONFIDENCE = 0.95
# No row may have less of the old rate, nor more of the old processor time.
RATE_BOUND = 0.97
CPU_BOUND = 1.05

HOLDS = "holds"
UNDECIDED = "undecided"
FAILS = "FAILS"
INVALID = "INVALID"


def t_within(t, freedom):
    """How much of Student's distribution lies within -t .. t, for whole degrees of freedom."""
    angle = math.atan(t / math.sqrt(freedom))
    square = math.cos(angle) ** 2
    term, total = (math.cos(angle), 0.0) if freedom % 2 else (1.0, 0.0)
    for k in range(1 if freedom % 2 else 0, freedom - 1, 2):
        total += term
        term *= square * (k + 1) / (k + 2)
    if freedom % 2:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


def t_quantile(freedom, confidence=CONFIDENCE):
    """The t within which so much of the distribution lies."""
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        if t_within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def interval(ratios):
    """(ratio, low, high); low and high are None for fewer than two pairs."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = sum(logs) / len(logs)
    if len(logs) < 2:
        return math.exp(mean), None, None
    variance = sum((one - mean) ** 2 for one in logs) / (len(logs) - 1)
    reach = t_quantile(len(logs) - 1) * math.sqrt(variance / len(logs))
    return math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)


def rate_verdict(low, high):
    if low is None:
        return UNDECIDED
    return FAILS if high < RATE_BOUND else HOLDS if low >= RATE_BOUND else UNDECIDED


def cpu_verdict(low, high):
    if low is None:
        return UNDECIDED
    return FAILS if low > CPU_BOUND else HOLDS if high <= CPU_BOUND else UNDECIDED


def together(verdicts):
    """The worst of them."""
    return next(verdict for verdict in (INVALID, FAILS, UNDECIDED, HOLDS) if verdict in verdicts)


def judged(row, runs):
    """A line of the table, from all runs of its row."""
    problems = sorted({run["problem"] for run in runs if run.get("problem")})
    pairs = {}
    for run in runs:
        if not run.get("problem"):
            pairs.setdefault(run["pair"], {})[run["side"]] = run
    whole = [pair for _, pair in sorted(pairs.items()) if set(pair) == {"old", "new"}]
    line = {"row": row.name, "what": row.what, "pairs": len(whole), "problems": problems}
    if not whole:
        return {**line, "problems": problems or ["there is no pair"], "verdict": INVALID}
    for name, figure in (("rate", rate), ("cpu", cpu)):
        ratio, low, high = interval([figure(pair["new"]) / figure(pair["old"]) for pair in whole])
        line[name] = {
            "ratio": ratio,
            "low": low,
            "high": high,
            "old": median([figure(pair["old"]) for pair in whole]),
            "new": median([figure(pair["new"]) for pair in whole]),
        }
    line["rate"]["verdict"] = rate_verdict(line["rate"]["low"], line["rate"]["high"])
    line["cpu"]["verdict"] = cpu_verdict(line["cpu"]["low"], line["cpu"]["high"])
    line["verdict"] = INVALID if problems else together([line["rate"]["verdict"], line["cpu"]["verdict"]])
    return line


def rate(run):
    """Commands per second."""
    return run["commands"] / run["wall_ns"] * 1e9


def cpu(run):
    """Nanoseconds of the client's processor time per command."""
    return run["cpu_ns"] / run["commands"]


def median(numbers):
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2

#!/usr/bin/env python3
"""Tests what dev/figures.py says of runs, by runs that are made up."""
import unittest
from pathlib import Path

from figures import fewer
from gate_page import fair, pooled
from libraries import LINES, OURS, Key, Report, by_clock, first_cells, headline, is_native, is_other, measured, standing, title_of, waiting
from runs import RESULTS, Run
from services import in_one_sentence, in_services, measured_services, scenarios

LANGUAGES = {OURS: "Haskell", "hedis": "Haskell", "hiredis": "C", "StackExchange.Redis 1": "C#", "StackExchange.Redis 2": "C#", "redigo": "Go"}
USUAL = dict.fromkeys(LANGUAGES, "1")


def report(rates: dict[Key, dict[str, list[float]]], versions: dict[str, str] = USUAL, date: str = "2026-01-01") -> Report:
    """A run in which each row had these rates, one in each turn."""
    rows = [{"row": name, "version": version, "language": LANGUAGES[name]} for name, version in versions.items()]
    samples = [
        {"cell": key._asdict(), "row": row, "iteration": turn, "ops_per_sec": rate, "cpu_ns_per_op": 1000, "problems": []}
        for key, found in rates.items()
        for row, turns in found.items()
        for turn, rate in enumerate(turns)
    ]
    raw = RESULTS / "made-up" / "raw.json"
    return Report(Run("libraries", raw, raw, date, {"clock": "tsc", "time": "12:00"}, "", {"rows": rows, "samples": samples}))


def whole(ours: float, other: float, versions: dict[str, str] = USUAL, date: str = "2026-01-01") -> Report:
    """A run that has all rows of the README, at one rate each."""
    return report({key: {OURS: [ours], "redigo": [other], "hiredis": [1000], "hedis": [10]} for _, key in LINES}, versions, date)


def service_run(name: str, rounds: list[tuple[float, float, float, float]], dotnet: str = "10", layout: str = "Pinned") -> Run:
    """A run of the services with one scenario: in each round our rate and p99.9, and those of one in C#."""
    cells = [
        {
            "cell": {"topology": "Standalone", "layout": layout, "scenario": "post", "connections": 10, "row": row, "iteration": turn},
            "facts": {"warm-up": "12"},
            "outcome": {"problems": [], "requestsPerSecond": rate, "cpuPerRequest": 1, "openLoop": {"p99_9": tail}},
        }
        for turn, (ours, own, theirs, other) in enumerate(rounds)
        for row, rate, tail in (("haskell", ours, own), ("dotnet-1", theirs, other))
    ]
    raw = RESULTS / name / "cells.jsonl"
    return Run("REST", raw, raw, "2026-01-01", {}, "", {"manifest": {"dotnet": dotnet}, "cells": cells})


class Figures(unittest.TestCase):
    def test_a_turn_is_set_beside_the_fastest_of_that_turn(self):
        key = waiting(1)
        run = report({key: {OURS: [90, 90, 90], "redigo": [100, 10, 50], "StackExchange.Redis 1": [10, 100, 45]}})
        self.assertEqual(run.ratios(key, is_other), [0.9, 0.9, 1.8])
        # By medians ours would be ahead: 90 beside 50.
        self.assertEqual(standing([run], key, is_other).ratio, 0.9)

    def test_only_runs_beside_the_same_versions_are_pooled(self):
        old, new = whole(200, 100, USUAL | {"redigo": "0"}), whole(90, 100)
        self.assertEqual(measured([old, new]), [new])
        self.assertEqual(measured([old, whole(80, 100), new])[1:], [new])
        fewer = whole(200, 100, {name: version for name, version in USUAL.items() if name != "StackExchange.Redis 2"})
        self.assertEqual(measured([fewer, new]), [new])

    def test_runs_within_older_programs_are_not_pooled(self):
        old, new = whole(200, 100), whole(90, 100, date="2026-12-01")
        self.assertEqual(measured([old, new]), [new])

    def test_our_own_version_does_not_matter(self):
        old, new = whole(200, 100, USUAL | {OURS: "0"}), whole(90, 100)
        self.assertEqual(measured([old, new]), [old, new])

    def test_a_run_of_other_cells_is_not_the_newest(self):
        usual, other = whole(90, 100), report({waiting(16, key_size=512): {OURS: [1], "redigo": [2]}})
        self.assertEqual(measured([usual, other]), [usual])

    def test_other_keys_and_connections_are_cells_of_their_own(self):
        keys = [waiting(16), waiting(16, key_size=512), waiting(16, connections=4), waiting(16, keys=5), waiting(16, seed=2)]
        run = report({key: {OURS: [100 * place], "hiredis": [100]} for place, key in enumerate(keys)})
        self.assertEqual([run.ratios(key, is_native) for key in keys], [[0], [1], [2], [3], [4]])
        self.assertEqual(len({title_of(key) for key in keys}), len(keys))
        self.assertEqual(title_of(waiting(16, key_size=512, connections=4)), "standalone: GET hit, 512 B, 16 callers, keys of 512 B, 4 connections")

    def test_the_line_on_speed_has_every_row_beside_both(self):
        said = headline([whole(110, 100)])
        self.assertEqual(
            said,
            "11.00 to 11.00 times the rate of hedis 1. Beside the fastest client that is not in C: "
            "1.10 with 1 caller, 1.10 with 16, 1.10 with 256, 1.10 in batches, 1.10 with 256 on five primaries. Beside hiredis, in C: 0.11, 0.11, 0.11, 0.11 and 0.11",
        )

    def test_a_mark_stands_where_half_of_the_turns_were_lost(self):
        key = waiting(1)
        run = report({key: {OURS: [100, 100], "redigo": [90, 110], "hiredis": [90, 90]}})
        self.assertTrue(str(standing([run], key, is_other)).startswith("▼ "))
        self.assertFalse(str(standing([run], key, is_native)).startswith("▼ "))

    def test_the_first_cells_have_each_number_of_connections_and_what_a_cluster_keeps(self):
        rates = {OURS: [100.0], "StackExchange.Redis 1": [50.0], "StackExchange.Redis 2": [80.0], "hiredis": [200.0]}
        half = {row: [rate / 2 for rate in turns] for row, turns in rates.items()}
        run = report({waiting(16, place, key_size=512, connections=count): found for count in (1, 4) for place, found in (("standalone", rates), ("cluster", half))})
        said = "\n".join(first_cells(run))
        self.assertIn("| standalone: GET hit, 512 B, 16 callers, keys of 512 B | 0.1 k/s | StackExchange.Redis 2, 0.1 k/s | 1.25 (1.25–1.25) | hiredis, 0.2 k/s | 0.50 (0.50–0.50) |", said)
        self.assertIn("| GET hit, 512 B, 16 callers, keys of 512 B, 4 connections | 0.50 (0.50–0.50) | 0.50 (0.50–0.50) | 0.50 (0.50–0.50) |", said)

    def test_a_run_says_how_fast_one_caller_of_c_was_by_the_clock(self):
        self.assertEqual(by_clock([whole(90, 100), whole(90, 100)]), "tsc 1.0 to 1.0 k/s (two runs)")

    def test_a_cell_with_fewer_clients_names_them(self):
        rates = {OURS: [100], "redigo": [90], "hedis": [10]}
        run = report({waiting(1): rates | {"StackExchange.Redis 1": [1], "StackExchange.Redis 2": [1]}, waiting(16): rates, waiting(256): {OURS: [100], "redigo": [90]}})
        self.assertEqual(fewer(run, [("one", waiting(1)), ("many", waiting(256))]), "In *many* only of redigo.")

    def test_runs_of_the_gate_count_once_each_and_each_turn_is_beside_the_better_form_of_hiredis(self):
        def gate(ours, loop, others):
            probes = {"Waiting 256": ours, "Hiredis Loop (HiredisWaiting 256)": loop, "Hiredis Async (HiredisWaiting 256)": others}
            series = [{"probe": name, "samples": [{"ops_per_sec": rate, "cpu_ns_per_op": 1} for rate in rates]} for name, rates in probes.items()]
            row = {"what": "GET, 256 threads waiting", "unit": "H", "must": 0.95, "measured": 1, "pairs": [[1, 1]] * 2, "interval": [1, 1], "verdict": "Reached"}
            return {"gate": {"series": series}, "rows": [row]}

        row = fair(gate([100, 100], [200, 50], [50, 200]))[0]
        self.assertEqual((row["pairs"], row["measured"], row["verdict"]), ([(100, 200), (100, 200)], 0.5, "Missed"))
        rows = [fair(gate([rate] * 20, [100] * 20, [1] * 20))[0] for rate in (100, 110, 121)]
        ratio, low, high = pooled(rows)
        self.assertAlmostEqual(ratio, 1.1)
        # Three runs have two degrees of freedom, however many turns they have.
        self.assertTrue(low < 0.9 and high > 1.35)
        self.assertIsNone(pooled(rows[:2]))

    def test_services_are_pooled_by_their_runs(self):
        first, second = service_run("a", [(200, 9, 100, 10), (200, 9, 100, 10)]), service_run("b", [(120, 50, 100, 10), (110, 5, 100, 10)])
        found = scenarios(measured_services([first, second]), "one Redis, a core each")
        self.assertEqual([scenario.rates.ratios for scenario in found], [[2, 1.15]])
        self.assertEqual((found[0].tails.won, found[0].tails.count, found[0].tails.ratios), (3, 4, [0.9, 2.75]))
        self.assertIn("1.57 to 1.57 times the requests", in_one_sentence([first, second]))
        self.assertIn("shorter in 0 of 1", in_one_sentence([first, second]))

    def test_services_beside_another_dotnet_are_not_pooled(self):
        old, new = service_run("a", [(200, 9, 100, 10)], dotnet="9"), service_run("b", [(120, 9, 100, 10)])
        self.assertEqual([run.name for run, _ in measured_services([old, new])], ["b"])

    def test_a_place_that_the_newest_run_lacks_is_shown_from_those_that_have_it(self):
        old, new = service_run("a", [(200, 9, 100, 10)], layout="Free"), service_run("b", [(120, 9, 100, 10)])
        said = "\n".join(in_services([old, new]))
        self.assertIn("**2.00** (2.00–2.00), 1 of 1 rounds", said)
        self.assertIn("**1.20** (1.20–1.20), 1 of 1 rounds", said)
        self.assertIn("of the two runs beside", said)


if __name__ == "__main__":
    unittest.main()

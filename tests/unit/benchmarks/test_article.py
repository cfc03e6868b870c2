"""What article.py compares and concludes, over processes that never ran; and its target, which does run."""

from __future__ import annotations

from pathlib import Path

import article
import pytest

from pindiag import rules
from pindiag.cli import run

HOST = article.Host(threads=2, cpus=4, has_gpu=True)
SIZE = article.Size(samples=10)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What processes were asked; a pinned one takes half as long by any figure that its own way cannot hide."""
    calls: list[list[str]] = []

    def measure(words):
        calls.append(list(words))
        if words[0] == "threads":
            return {"exp_ms": 1.0 if "--look" in words else 3.0, "threads": 1}
        slow = 1.0 if "--pin" in words else 2.0
        return {"shown_ms": 1.0, "whole_ms": 5 * slow, "synchronised_ms": 4.0, "window_ms": 2 * slow}

    monkeypatch.setattr(article, "measure", measure)
    return calls


@pytest.fixture
def four(asked) -> list[article.Round]:
    """Four rounds."""
    return [article.one_round(number, HOST, SIZE) for number in range(4)]


def test_the_articles_clock_misses_what_a_clock_around_all_sees(four):
    found = article.scenario_1(four, HOST)
    assert found["by_the_articles_clock"]["ratio"] == pytest.approx(1)
    assert found["by_a_clock_around_all"]["ratio"] == pytest.approx(2)
    assert sorted(found["share_of_the_time_that_the_articles_clock_sees"]) == pytest.approx([0.1] * 4 + [0.2] * 4)


def test_scenes_compare_cases_of_the_same_rounds(four):
    ways = article.three_way(four, HOST)["pin_memory and non_blocking"]
    assert ways["over_a_window"]["ratio"] == pytest.approx(2)
    assert ways["synchronised"]["ratio"] == pytest.approx(1)
    assert article.scenario_3(four, HOST)["workers"] == 8
    assert article.optimal(four, HOST)["ratio"] == pytest.approx(2)
    assert article.threads(four, HOST)["ratio"] == pytest.approx(3)


def test_each_round_runs_all_cases_and_every_other_the_window_first(four, asked):
    turns = [asked[start : start + 7] for start in range(0, len(asked), 7)]
    assert [sum("threads" in words for words in turn) for turn in turns] == [2] * 4
    first = [{"--window-first" in words for words in turn if words[0] == "ways"} for turn in turns]
    assert first == [{False}, {True}, {False}, {True}]
    assert turns[0] != turns[2]


def test_without_a_gpu_the_articles_rule_pins_nothing():
    assert "--pin" in article.cases(HOST)["optimal"]
    assert "--pin" not in article.cases(article.Host(threads=2, cpus=4, has_gpu=False))["optimal"]


@pytest.mark.parametrize(("until_s", "count"), [(0.0, 3), (49.0, 4), (51.0, 5)])
def test_rounds_go_on_while_another_one_fits(monkeypatch, until_s, count):
    now = iter(range(0, 1000, 5))

    def one_round(number, host, size):
        return {"number": number}

    monkeypatch.setattr(article, "one_round", one_round)
    *_, found = article.rounds(HOST, SIZE, fewest=3, until_s=until_s, clock=lambda: next(now))
    assert [each["number"] for each in found] == list(range(count))


def test_statements_say_what_was_found_of_the_causes_that_cover_them():
    status = {each.name: "ruled_out" for each in rules.catalogue()} | {"cpu_bound": "confirmed"}
    rows = article.judged(status)
    assert rows[0]["found"] == {"cpu_bound": "confirmed", "io_bound": "ruled_out"}
    assert {row["found"] for row in article.judged(None)} == {None}


def test_the_command_line_takes_what_the_sweep_is_told(tmp_path):
    words = article.sweep_words("90s", SIZE, tmp_path)
    with run.command.make_context("run", list(words)) as context:
        asked = context.params
    assert (asked["sweep"], asked["budget"], asked["output"]) == (True, 90.0, tmp_path)
    assert Path(words[0]).is_file()
    assert words[-2:] == ["--samples", "10"]


@pytest.mark.parametrize(
    ("what", "figures"),
    [
        ("ways", {"shown_ms", "whole_ms", "synchronised_ms", "window_ms"}),
        ("threads", {"exp_ms", "threads"}),
    ],
)
def test_the_target_measures(what, figures):
    small = ["--samples", "8", "--floats", "100", "--batch-size", "4", "--workers", "1"]
    found = article.measure([what, *small])
    assert set(found) == figures
    assert all(figure > 0 for figure in found.values())


def test_images_fit_as_float32_but_not_as_float64_first():
    words = [
        "memory",
        "--samples",
        "400",
        "--floats",
        "100000",
        "--batch-size",
        "100",
        "--workers",
        "1",
        "--settle-s",
        "0",
    ]
    found = article.measure(words)
    assert found["doubles_fit"] == 0
    assert found["main_rss_bytes"] > 400 * 100_000 * 4
    assert article.measure([*words, "--room", "3"])["doubles_fit"] == 1

from __future__ import annotations

import linecache
import textwrap

import pytest

from pindiag.probe.callsite import Place
from pindiag.probe.loop import describe

FILE = "/project/train.py"


@pytest.fixture
def read(monkeypatch):
    """What is said of a source, by the lines of the calls in which the loader was made and its batch was asked for."""

    def read(source, looped, made=()):
        text = textwrap.dedent(source).strip("\n")
        functions = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("def ")]
        monkeypatch.setitem(linecache.cache, FILE, (len(text), None, text.splitlines(keepends=True), FILE))

        def places(lines):
            return [Place(FILE, max((at for at in functions if at <= line), default=1), line) for line in lines]

        return describe(places(made), places(looped))

    return read


PLAIN = """
    import time
    from time import perf_counter as now
    for x in loader:
        a = 0
        {0}
        loss.backward()
        {1}
"""


def clocks(read, first, second):
    return [
        (clock["started"], clock["read"], clock["wait_is_timed"])
        for clock in read(PLAIN.format(first, second), [3])["clocks"]
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("start = time.time()", "took = time.time() - start"),
        ("start = time.perf_counter()", "times.append(1000 * (time.perf_counter() - start))"),
        ("start = now()", "took = now() - start"),
        ("self.start = time.monotonic_ns()", "took = time.monotonic_ns() - self.start"),
    ],
)
def test_a_clock_around_a_step(read, first, second):
    assert clocks(read, first, second) == [(5, 7, False)]


def test_a_clock_whose_second_reading_has_a_name(read):
    source = "import time\nfor x in loader:\n    t0 = time.time()\n    o.step()\n    t1 = time.time()\n    s = t1 - t0"
    assert read(source, [2])["clocks"] == [{"started": 3, "read": 5, "wait_is_timed": False}]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("start = count()", "took = count() - start"),  # no clock
        ("pass", "took = time.time() - start"),  # from the end of the pass before: it has all of it
        ("start = time.time()", "took = time.time() - other"),
        ("start = time.time()", "pass"),
    ],
)
def test_what_is_no_clock_around_a_step(read, first, second):
    assert clocks(read, first, second) == []


def test_a_clock_around_something_else_than_the_step(read):
    source = (
        "import time\nfor x in it:\n    t = time.time()\n    x = f(x)\n    s = time.time() - t\n    loss.backward()"
    )
    assert read(source, [2])["clocks"] == []


def test_a_clock_that_has_the_wait_too(read):
    source = "import time\nfor _ in all:\n    t = time.time()\n    x = next(it)\n    o.step()\n    s = time.time() - t"
    assert read(source, [2])["clocks"] == []


def test_the_wait_is_timed_by_another_clock(read):
    source = """
        import time
        end = time.time()
        for x in loader:
            waited.update(time.time() - end)
            start = time.time()
            loss.backward()
            computed.update(time.time() - start)
            end = time.time()
    """
    assert read(source, [3])["clocks"] == [{"started": 5, "read": 7, "wait_is_timed": True}]


IN_ONE_FUNCTION = """
    def main():
        for epoch in epochs:
            loader = make()
            for x in loader:
                step(x)
"""
OVER_FOLDS = """
    def main():
        for fold in folds:
            loader = make()
            for epoch in epochs:
                for x in loader:
                    step(x)
"""
BY_HELPERS = """
    def make():
        return DataLoader(data)
    def train(loader):
        for x in loader:
            step(x)
    def main():
        for epoch in epochs:
            train(make())
"""
FIT = """
    def train(loader):
        for epoch in epochs:
            for x in loader:
                step(x)
    def main():
        for seed in seeds:
            loader = DataLoader(data)
            train(loader)
"""
METHODS = """
    def epoch():
        loader = DataLoader(data)
        for x in loader:
            step(x)
    def fit():
        while True:
            epoch()
"""
IN_PLACE = """
    def main():
        for epoch in epochs:
            for x in DataLoader(data):
                step(x)
"""
ONCE = """
    def main():
        loader = make()
        for epoch in epochs:
            for x in loader:
                step(x)
"""


@pytest.mark.parametrize(
    ("source", "made", "looped", "rebuilt"),
    [
        pytest.param(IN_ONE_FUNCTION, [3], [4], True, id="in one function"),
        pytest.param(BY_HELPERS, [8, 2], [8, 4], True, id="by helpers, on one line"),
        pytest.param(METHODS, [7, 2], [7, 3], True, id="in what the loop calls"),
        pytest.param(IN_PLACE, [3], [3], True, id="in the for itself"),
        pytest.param(OVER_FOLDS, [3], [5], False, id="once a fold"),
        pytest.param(FIT, [7], [8, 3], False, id="once a seed"),
        pytest.param(ONCE, [2], [4], False, id="once"),
        pytest.param(ONCE, [], [4], None, id="not known"),
    ],
)
def test_whether_each_epoch_has_a_new_loader(read, source, made, looped, rebuilt):
    assert read(source, looped, made)["rebuilt"] is rebuilt


def test_it_says_where_the_loop_is(read):
    found = read(IN_ONE_FUNCTION, [4], [3])
    assert (found["location"], found["last_line"]) == (f"{FILE}:4", 5)


@pytest.mark.parametrize("source", ["while True:\n    x = next(it)", "for x in (", ""])
def test_no_loop_of_the_targets_own(read, source):
    assert read(source, [1]) is None


def test_nobody_asked_for_a_batch(read):
    assert read("for x in loader: pass", []) is None

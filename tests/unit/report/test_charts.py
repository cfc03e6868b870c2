import math
import re
from xml.etree import ElementTree

import msgspec
import pytest

from pindiag import model as m
from pindiag.report import names
from pindiag.report.charts import (
    _svg,
    bars,
    ceilings,
    frontier,
    machine,
    pin_thread,
    reached,
    stages,
    strip,
    sweep,
    timeline,
)
from pindiag.report.charts._svg import Row
from pindiag.report.rows import configurations as configuration_rows

from . import example


@pytest.fixture(scope="module")
def report():
    return example.confirmed()


@pytest.fixture(scope="module")
def rows(report):
    return configuration_rows(report, names.labels(report.trials))


@pytest.fixture(scope="module")
def measured(rows):
    return [row for row in rows if row.trial.samples_per_second]


def drawings(svg):
    """Both drawings, parsed: this fails on anything that is not well-formed."""
    both = ElementTree.fromstring(f'<all xmlns:xlink="http://www.w3.org/1999/xlink">{svg}</all>')
    return list(both)


def words(svg):
    return re.findall(r"<text[^>]*>([^<]*)</text>", str(svg))


def steps_of(rows):
    return [stages.Steps(row, {"wait": 8.0, "transfer": 4.0, "script": 2.0}) for row in rows]


def charts(report, rows, measured):
    drawing = example.drawing(report)
    panels, _ = machine.panels(drawing.series)
    return {
        "reached": reached.chart(measured, "T"),
        "sweep": sweep.chart(rows, 1.06, "T"),
        "stages": stages.chart(steps_of(measured), "wait", "T"),
        "breakdown": stages.breakdown(steps_of(measured)[0], "wait", "T"),
        "machine": machine.chart(drawing.series, panels, "T"),
        "frontier": frontier.chart(measured, [example.BEST], "T"),
        "ceilings": ceilings.chart(
            [bars.Bar(row.label, row.trial.samples_per_second, "grey") for row in measured[:4]],
            [bars.Bar("Training as written", measured[4].trial.samples_per_second, "ink")],
            [bars.Bar("x", None, "accent", "no GPU")],
            "T",
        ),
        "workers": pin_thread.chart(
            [
                pin_thread.Line(role, role, {4 * n: row.trial for n, row in enumerate(measured[:3])})
                for role in ("accent", "ink", "grey")
            ],
            "T",
        ),
        "timeline": timeline.chart(drawing.timeline, drawing.timeline_steps_ms, "wait", "T"),
        "strip": strip.chart([3.0, 9.0, 3.0], [1.0, 7.0, 1.0], 1, [2], "T"),
    }


def test_all_charts_keep_to_the_pages_rules(report, rows, measured):
    made = charts(report, rows, measured)
    ids = []
    for name, svg in made.items():
        narrow, wide = drawings(svg)
        assert (narrow.get("class"), wide.get("class")) == ("narrow", "wide")
        for one in (narrow, wide):
            assert one[0].text == "T", name
            assert one[1].text, name
            inner = [element.get("id") for element in one.iter() if element.get("id")]
            ids += inner
            drawn = re.sub(r"<a [^>]*>", "", str(svg))
            used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawn))
            assert used <= set(re.findall(r'id="([^"]+)"', str(svg))), name
        assert ' style="' not in svg, name
        assert "var(--ink)" in svg, name
        assert re.search(r"#0(?P<n>[1-7])0(?P=n)0(?P=n)", str(svg)) is None, name
    assert len(ids) == len(set(ids))


def test_a_drawing_with_links_is_a_group_and_one_without_a_picture(report, rows, measured):
    made = charts(report, rows, measured)
    assert {name for name, svg in made.items() if 'role="img"' in svg} == {"ceilings", "timeline", "strip"}
    for svg in made.values():
        assert all(one.get("role") == ("img" if one.find(".//a") is None else "group") for one in drawings(svg))


def test_words_are_links_for_everybody_and_marks_for_a_pointer_only(measured):
    wide = drawings(reached.chart(measured[:1], "T"))[1]
    links = [(one.find(".//text") is not None, one.attrib) for one in wide.iter("a")]
    to = f"#rec-{measured[0].trial.id}"
    assert links == [
        (False, {"aria-hidden": "true", "tabindex": "-1", "href": to}),
        (True, {"class": "rec", "href": to}),
    ]


def test_drawing_twice_gives_the_same(report, rows, measured):
    assert charts(report, rows, measured) == charts(report, rows, measured)


def test_a_failed_configuration_keeps_its_row_and_says_why(rows):
    said = words(sweep.chart(rows, None, "T"))
    assert "failed: a worker was killed: /dev/shm is full" in said
    assert said.count("as written = 1") == 2


def test_reasons_with_dollars_are_text(rows):
    broken = msgspec.structs.replace(rows[-1].trial, reason="cost $5 and $6 {x}")
    said = words(sweep.chart([*rows[:-1], Row(broken, "x", "other")], None, "T"))
    assert "failed: cost $5 and $6 {x}" in said


@pytest.mark.parametrize(
    ("ratios", "floor"),
    [([1.0], None), ([0.001, 1000.0], 1.02), ([1.0, 1.0], 1.0), ([0.5, 0.999, 1.001, 3.7], 1.5), ([1e-9], None)],
)
def test_sweep_limits_hold_all_points(ratios, floor):
    made = [m.Ratio(ratio=one, ci95=(one / 1e6, one * 1e6), rounds=6) for one in ratios]
    low, high = sweep._limits(made, floor)
    assert low < min([*ratios, 1.0])
    assert high > max([*ratios, 1.0])
    ticks = sweep._ticks((low, high))
    assert 1.0 in ticks
    assert all(low <= tick <= high for tick in ticks)
    assert len(ticks) <= 10


@pytest.mark.parametrize("limit", [1e-9, 0.3, 1.0, 20.4, 5000.0, 7.3e12])
def test_nice_ticks_fill_the_axis(limit):
    ticks = _svg.nice_ticks(limit)
    assert ticks[0] == 0
    assert 3 <= len(ticks) <= 7
    assert limit * 0.6 < ticks[-1] <= limit * (1 + 1e-9)


@pytest.mark.parametrize("limit", [0.0, -1.0, math.inf, math.nan])
def test_nice_ticks_of_nothing(limit):
    assert _svg.nice_ticks(limit) == [0.0]


def test_phones_keep_the_recommended_row_and_the_baseline(measured):
    kept = reached._few(measured)
    assert len(kept) == 6
    assert {"chosen", "baseline"} <= {row.role for row in kept}


def test_long_series_are_binned_and_gaps_stay():
    count = 30_000
    series = m.Series(
        t_s=[float(index) for index in range(count)],
        main_cpu_percent=[None if 10_000 <= index < 20_000 else float(index % 100) for index in range(count)],
        **{
            name: [None] * count
            for name in (
                "workers_cpu_percent",
                "rss_bytes",
                "memory_available_bytes",
                "gpu_utilization",
                "psi_cpu_share",
                "psi_io_share",
                "psi_memory_share",
            )
        },
        bands=[],
    )
    panels, missing = machine.panels(series)
    assert [panel.title for panel in panels] == ["CPU (100 % is one core)"]
    assert len(missing) == 3
    assert machine.binned(series)
    times, values = machine._drawn(series.t_s, series.main_cpu_percent)
    assert len(times) == len(values) <= machine.MOST_POINTS
    seen = [value for value in values if not math.isnan(value)]
    assert (min(seen), max(seen)) == (0.0, 99.0)
    assert any(math.isnan(value) for value in values)
    drawings(machine.chart(series, panels, "T"))


def test_a_series_of_zeros_is_drawn():
    series = example.drawing(example.confirmed()).series
    flat = msgspec.structs.replace(series, gpu_utilization=[0.0] * len(series.t_s), bands=[])
    panels, _ = machine.panels(flat)
    drawings(machine.chart(flat, panels, "T"))


def test_many_workers_leave_room_for_the_other_lanes():
    spans = [m.Span(lane=f"worker {n}", name="fetch", start_ms=0, end_ms=5) for n in range(40)]
    spans.append(m.Span(lane="kernels", name="gemm", start_ms=1, end_ms=2))
    lanes = timeline._lanes(spans)
    assert len(lanes) == 12
    assert lanes[0] == "worker 0"
    assert lanes[2] == "worker 2"
    assert lanes[-1] == "kernels"


def test_one_memory_size_is_drawn(measured):
    same = [row for row in measured if row.trial.id == example.BEST] * 2
    drawings(frontier.chart(same, [example.BEST], "T"))


def test_a_wild_interval_does_not_flatten_the_bars():
    tame, wild = m.Estimate(median=100.0, ci95=(90.0, 110.0)), m.Estimate(median=80.0, ci95=(1.0, 9000.0))
    assert _svg.reach([tame, wild]) == 150.0
    assert _svg.reach([tame]) == 110.0
    assert _svg.reach([m.Estimate(median=7.0, ci95=None)]) == 7.0
    assert _svg.reach([]) == 1.0


def test_a_bar_that_was_not_measured_keeps_its_row_and_says_why():
    rate = m.Estimate(median=100.0, ci95=None)
    rows = [bars.Bar("Step alone", rate, "accent"), bars.Bar("Loader alone", None, "grey", "x" * 80)]
    said = words(ceilings.chart(rows, [bars.Bar("Training as written", rate, "ink")], rows, "T"))
    assert said.count(f"not measured ({'x' * 55}…)") == 2
    assert {"Step alone", "Loader alone", "Training as written", "100"} <= set(said)


def names_drawn(spans, narrow):
    markup = timeline.chart(spans, [0.0, 5.0, 10.0], "wait", "T").partition('class="wide"')[0 if narrow else 2]
    return [name for name in ("fetch", "idle", "hand-off", "wait") if f">{name}<" in markup]


def test_bars_with_room_bear_their_names():
    spans = [
        m.Span(lane="worker 0", name="fetch", start_ms=0, end_ms=6),
        m.Span(lane="worker 0", name="hand-off", start_ms=6, end_ms=9),
        m.Span(lane="main", name="wait", start_ms=0, end_ms=10),
        m.Span(lane="main", name="idle", start_ms=0, end_ms=0.1),
    ]
    assert names_drawn(spans, narrow=False) == ["fetch", "wait"]
    assert names_drawn(spans, narrow=True) == ["fetch", "wait"]

"""Traces as Kineto has written them: cut, with text that is no JSON, or without what they should have."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pindiag.store import read_trace

GOOD = '{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1.5, "dur": 2, "pid": 0, "tid": 7}'


def trace(folder: Path, text: str | bytes, name: str = "t.json") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "name",
    [
        '"a kernel\nof two lines"',
        '"tab\there"',
        '"no \\ud800 character"',
    ],
)
def test_a_name_that_is_no_proper_json_costs_no_event(tmp_path: Path, name: str) -> None:
    odd = GOOD.replace('"gemm"', name)
    events = read_trace(trace(tmp_path, f'{{"traceEvents": [{GOOD}, {odd}]}}'))
    assert len(events) == 2


def test_bytes_that_are_no_text_cost_no_event(tmp_path: Path) -> None:
    content = f'{{"traceEvents": [{GOOD}]}}'.encode().replace(b"gemm", b"g\xffmm")
    assert len(read_trace(trace(tmp_path, content))) == 1


def test_only_complete_events_are_kept(tmp_path: Path) -> None:
    marks = GOOD.replace('"X"', '"i"')
    assert [event.name for event in read_trace(trace(tmp_path, f'{{"traceEvents": [{marks}, {GOOD}]}}'))] == ["gemm"]


@pytest.mark.parametrize(
    "text",
    [
        f'{{"traceEvents": [{GOOD}, ',
        f'{{"traceEvents": [{GOOD.replace("gemm", "C:" + chr(92) + "path")}]}}',
        f'{{"traceEvents": [{GOOD.replace("gemm", "a " + chr(34) + "quoted" + chr(34) + " name")}]}}',
        '{"traceEvents": 3}',
        "",
    ],
)
def test_what_cannot_be_read_is_one_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError):
        read_trace(trace(tmp_path, text))


def test_a_compressed_trace_that_is_cut_says_so(tmp_path: Path) -> None:
    whole = gzip.compress(f'{{"traceEvents": [{GOOD}]}}'.encode())
    assert len(read_trace(trace(tmp_path, whole, "t.json.gz"))) == 1
    for content in (whole[:-9], b"no gzip"):
        with pytest.raises(ValueError, match="the trace is cut"):
            read_trace(trace(tmp_path, content, "t.json.gz"))

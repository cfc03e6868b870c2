"""record.py asks the product for what it was asked for, and packs what a run has left, also when it is cut short."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
import record

PRODUCT = """
import signal, sys, time
from pathlib import Path

run = Path(sys.argv[sys.argv.index("-o") + 1])
(run / "probe").mkdir(parents=True)
(run / "journal").mkdir()
(run / "probe" / "bootstrap.py").touch()

def end(number, frame):
    time.sleep(0.2)
    (run / "report.json").write_text("partial")
    raise SystemExit(130)

signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
(run / "journal" / "parent.jsonl").write_text("{}")
while "--rows" in sys.argv:
    time.sleep(0.05)
"""
"""Stands for a product that goes on until it is interrupted."""


@pytest.fixture
def recorder(tmp_path):
    package = tmp_path / "path" / "pindiag"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(PRODUCT)

    def start(*words: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "path")}
        return subprocess.Popen([sys.executable, record.__file__, *words], cwd=tmp_path, env=environment)

    return start


def asked(*given: str, arguments: tuple[str, ...] = ()) -> list[str]:
    return record.words(record.parser().parse_args(given), Path("out/tabular_rows"), arguments)


def test_a_sample_is_swept_with_its_own_arguments_last():
    line = asked("out", "tabular_rows", "--grid", "num_workers=0,2", arguments=("--rows", "320"))
    assert line[:2] == ["run", str(record.SAMPLES / "tabular_rows.py")]
    assert "--sweep" in line
    assert line[line.index("--grid") + 1] == "num_workers=0,2"
    assert line[-3:] == ["--", "--rows", "320"]


def test_the_script_as_written_is_recorded_without_a_sweep():
    assert "--sweep" not in asked("out", "tabular_rows", "--no-sweep")
    assert "--fresh" in asked("out", "tabular_rows", "--fresh")


def test_every_sample_can_be_named():
    assert (record.SAMPLES / "tabular_rows.py").is_file()


def names(archive: Path) -> set[str]:
    with tarfile.open(archive) as packed:
        return set(packed.getnames())


def test_a_run_that_ends_by_itself_is_packed(recorder, tmp_path):
    assert recorder("out", "tabular_rows").wait(timeout=30) == 0
    packed = names(tmp_path / "out" / "tabular_rows.tar.xz")
    assert packed == {"tabular_rows/journal", "tabular_rows/journal/parent.jsonl"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_its_report_and_is_packed(recorder, tmp_path, number):
    running = recorder("out", "tabular_rows", "--budget", "1m", "--", "--rows", "320")
    journal = tmp_path / "out" / "tabular_rows" / "journal" / "parent.jsonl"
    end = time.monotonic() + 30
    while not journal.exists() and time.monotonic() < end:
        time.sleep(0.02)
    running.send_signal(number)
    assert running.wait(timeout=30) == 130
    assert "tabular_rows/report.json" in names(tmp_path / "out" / "tabular_rows.tar.xz")


def test_a_run_that_wrote_nothing_leaves_no_archive(tmp_path):
    command = [sys.executable, record.__file__, "out", "no_such_sample", "--budget", "nonsense"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()

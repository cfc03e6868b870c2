"""record.py asks the product for what it was asked for, and packs what a run has left, also when it is cut short."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
import record

import pindiag
from tests.toml import read_toml

PRODUCT = """
import json, signal, socket, sys, time
from pathlib import Path

run = Path(sys.argv[sys.argv.index("-o") + 1])
(run / "probe").mkdir(parents=True)
(run / "journal").mkdir()
(run / "probe" / "bootstrap.py").touch()

def end(number, frame):
    time.sleep(0.2)
    (run / "report.json").write_text('{"environment": {"torch": "2.13.0"}}')
    raise SystemExit(130)

signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
(run / "run.json").write_text(json.dumps({
    "started_utc": "2026-12-02T20:00:00+00:00", "usable_cpus": 2, "pindiag_version": "0.1.0",
    "python": sys.executable, "target": sys.argv[2], "host": socket.gethostname(), "run": str(run),
}))
(run / "journal" / "parent.jsonl").write_text("{}")
while "--rows" in sys.argv:
    time.sleep(0.05)
"""
"""Stands for a product that goes on until it is interrupted."""


@pytest.fixture
def recorder(tmp_path):
    package = tmp_path / "path" / "pindiag"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"__path__.append({pindiag.__path__[0]!r})")
    (package / "__main__.py").write_text(PRODUCT)

    def start(*words: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "path")}
        return subprocess.Popen([sys.executable, record.__file__, *words], cwd=tmp_path, env=environment)

    return start


def asked(*given: str) -> list[str]:
    return record.options(record.parser().parse_args(given))


def test_a_sample_is_swept_with_what_is_asked():
    line = asked("out", "tabular_rows", "--grid", "num_workers=0,2")
    assert "--sweep" in line
    assert line[line.index("--grid") + 1] == "num_workers=0,2"


def test_the_script_as_written_is_recorded_without_a_sweep():
    assert "--sweep" not in asked("out", "tabular_rows", "--no-sweep")
    assert "--fresh" in asked("out", "tabular_rows", "--fresh")


def test_every_sample_can_be_named():
    assert (record.SAMPLES / "tabular_rows.py").is_file()


def names(archive: Path) -> set[str]:
    with tarfile.open(archive) as packed:
        return set(packed.getnames())


def test_a_run_that_ends_by_itself_is_packed(recorder, tmp_path):
    assert recorder("out", "tabular_rows", "--name", "rows").wait(timeout=30) == 0
    assert names(tmp_path / "out" / "rows.tar.xz") == {"rows/journal/parent.jsonl", "rows/run.json"}


def test_a_recording_is_packed_without_what_names_the_machine(recorder, tmp_path):
    assert recorder("out", "tabular_rows").wait(timeout=30) == 0
    with tarfile.open(tmp_path / "out" / "tabular_rows.tar.xz") as packed:
        spec = json.load(packed.extractfile("tabular_rows/run.json"))
    assert spec["python"] == "/usr/bin/python3"
    assert spec["target"] == "/project/samples/tabular_rows.py"
    assert spec["host"] == "host"
    assert spec["run"] == "/runs/tabular_rows"


def test_a_line_says_when_where_and_how_and_replaces_the_one_before(recorder, tmp_path):
    index = tmp_path / "out" / record.INDEX
    for budget in ("1m", "2m"):
        assert recorder("out", "tabular_rows", "--budget", budget, "--", "--columns", "2").wait(timeout=30) == 0
    assert recorder("out", "slow_reads", "--no-sweep").wait(timeout=30) == 0
    told = read_toml(index)
    assert set(told) == {"tabular_rows", "slow_reads"}
    assert told["tabular_rows"] == {
        "made": "2026-12-02T20:00:00+00:00",
        "where": "no GPU, 2 CPUs",
        "torch": "unknown",
        "pindiag": "0.1.0",
        "command": "pindiag run samples/tabular_rows.py --budget 2m --rounds 6 --sweep -- --columns 2",
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_its_report_and_is_packed(recorder, tmp_path, number):
    running = recorder("out", "tabular_rows", "--runs", "runs", "--budget", "1m", "--", "--rows", "320")
    journal = tmp_path / "runs" / "tabular_rows" / "run" / "journal" / "parent.jsonl"
    end = time.monotonic() + 30
    while not journal.exists() and time.monotonic() < end:
        time.sleep(0.02)
    running.send_signal(number)
    assert running.wait(timeout=30) == 130
    assert "tabular_rows/report.json" in names(tmp_path / "out" / "tabular_rows.tar.xz")
    assert json.loads((tmp_path / "runs" / "tabular_rows" / "swept.json").read_text())["exit_code"] == 130


def test_a_run_that_wrote_nothing_leaves_no_archive(tmp_path):
    command = [sys.executable, record.__file__, "out", "no_such_sample", "--budget", "nonsense"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()

"""`pindiag doctor` as a user runs it, and with children that misbehave."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pindiag.doctor_model import Doctor
from pindiag.launch import doctor as parent
from pindiag.launch.doctor import Reading, examine

from .product import Product

pytestmark = pytest.mark.integration
NO_TORCH = "the interpreter has no torch"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Product, subprocess.CompletedProcess[str]]:
    product = Product(tmp_path_factory.mktemp("doctor"))
    return product, product("doctor", "--json", timeout_s=100)


def test_json_is_one_object(measured: tuple[Product, subprocess.CompletedProcess[str]]) -> None:
    product, done = measured
    assert done.returncode == 0, done.stderr
    found = msgspec.json.decode(done.stdout, type=Doctor)
    assert set(json.loads(done.stdout)) == set(Doctor.__struct_fields__)
    assert found.torch is not None
    assert found.machine.usable_cpus >= 1
    assert [each.start_method for each in found.hand_off] == ["fork", "spawn", "forkserver"]
    rates = [size.bytes_per_s for each in found.hand_off for size in each.sizes if size.reason is None]
    assert rates
    assert all(rate is not None and 0 < rate.min <= rate.median <= rate.max for rate in rates)
    assert found.seconds < 60
    if found.torch.accelerator is None:
        assert found.copies is None
        assert {each.key: each.reason for each in found.not_measured}["copies"] == "no accelerator"
    product.wait_until_gone(5)
    assert list(product.folder.iterdir()) == []


def test_progress_goes_to_standard_error(measured: tuple[Product, subprocess.CompletedProcess[str]]) -> None:
    _, done = measured
    assert done.stderr.splitlines()[0] == "pindiag: [1/5] torch and its device"


def test_text_under_an_interpreter_without_torch(product: Product) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(product.folder / "bare")], check=True)
    done = product("doctor", "-q", "--python", str(product.folder / "bare" / "bin" / "python"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert f"Not measured: {NO_TORCH}." in done.stdout
    assert f"spawn: {NO_TORCH}." in done.stdout
    assert "usable of" in done.stdout
    titles = ["Limits", "Machine", "torch", "Copies from host to GPU, and pinning"]
    assert [line for line in done.stdout.splitlines() if line in titles] == titles


REFUSED = {
    "interpreter": (["doctor", "--python", "no-such-python"], "There is no interpreter no-such-python."),
    "argument": (["doctor", "train.py"], "train.py"),
    "option": (["doctor", "--sweep"], "--sweep"),
    "json takes no value": (["doctor", "--json=out.json"], "--json"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_sentence(case: str, product: Product) -> None:
    words, sentence = REFUSED[case]
    done = product(*words)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_something_else_than_python(product: Product) -> None:
    done = product("doctor", "--json", "--python", shutil.which("false") or "/bin/false")
    found = msgspec.json.decode(done.stdout, type=Doctor)
    assert found.torch is None
    reasons = {each.key: each.reason for each in found.not_measured}
    assert reasons["torch"] == reasons["copies"] == "its process ended early (exit status 1)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_no_process(number: signal.Signals, product: Product) -> None:
    child = product.start("doctor")
    assert child.stderr is not None
    for line in child.stderr:
        if "started by spawn" in line:
            break
    child.send_signal(number)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert out == ""
    assert err.strip() == "pindiag: Interrupted."
    product.wait_until_gone(5)


def test_killed_it_leaves_no_process(product: Product) -> None:
    product.environment["TMPDIR"] = str(product.folder)
    child = product.start("doctor")
    assert child.stderr is not None
    for line in child.stderr:
        if "started by fork" in line:
            break
    child.kill()
    child.communicate()
    product.wait_until_gone(10)


def test_help_loads_nothing_heavy(product: Product) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pindiag", "doctor", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=product.folder,
    )
    assert "--python" in done.stdout
    assert "  pindiag doctor --json > machine.json\n" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "pindiag.cli.doctor" in loaded
    assert loaded.isdisjoint({"torch", "msgspec", "rich", "psutil", "pindiag.model", "pindiag.report", "pindiag.rules"})


# ------------------------------------------------------------------------------------------ children that misbehave

FAKE = """
import ctypes, json, os, signal, subprocess, sys, time
def tell(**line):
    print(json.dumps(line), flush=True)
def main(parts):
    for part in parts:
        tell(part=part, began=True)
        if part == "segfault":
            print("something odd", file=sys.stderr)
            print("just before the end", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        if part == "exits":
            os._exit(7)
        if part == "hangs":
            time.sleep(600)
        if part == "noisy":
            print("a library prints")
            print("[1, 2]")
            print(json.dumps({"no": "part"}))
        if part == "leaves a child":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        tell(part=part, value={"of": part, "pid": os.getpid()})
        if part == "quits":
            os._exit(0)
"""

Examine = Callable[..., dict[str, Reading]]


@pytest.fixture
def fake(tmp_path: Path, mark: str) -> Examine:
    """`examine` with a probe that does what the names of its parts say."""
    probe = tmp_path / "fake"
    probe.mkdir()
    (probe / "__init__.py").touch()
    (probe / "doctor.py").write_text(FAKE)

    def run(
        *parts: str,
        began: Callable[[str], None] = lambda part: None,
        while_copying: Callable[[], None] = lambda: None,
        **limits: float,
    ) -> dict[str, Reading]:
        return examine(sys.executable, parts=parts, began=began, while_copying=while_copying, probe=probe, **limits)

    return run


def values(readings: dict[str, Reading]) -> list[str]:
    return [reading.value["of"] for reading in readings.values() if reading.value is not None]


def test_one_child_does_everything(fake: Examine) -> None:
    found = fake("one", "noisy", "two")
    assert values(found) == ["one", "noisy", "two"]
    assert len({reading.value["pid"] for reading in found.values()}) == 1


def test_a_crash_costs_one_part(fake: Examine) -> None:
    found = fake("one", "segfault", "exits", "two")
    assert values(found) == ["one", "two"]
    assert found["segfault"].reason == "its process ended early (killed by SIGSEGV): just before the end"
    assert found["exits"].reason == "its process ended early (exit status 7)"


def test_a_hang_costs_one_part(fake: Examine) -> None:
    found = fake("one", "hangs", "two", part_s=3.0)
    assert values(found) == ["one", "two"]
    assert found["hangs"].reason == "it took too long and was ended"


def test_when_the_time_is_over_nothing_more_begins(fake: Examine) -> None:
    began_s = time.monotonic()
    found = fake("one", "hangs", "two", total_s=3.0)
    assert time.monotonic() - began_s < 60
    assert values(found) == ["one"]
    assert found["hangs"].reason == "it took too long and was ended"
    assert found["two"].reason == "the time was over before it began"


def test_a_child_that_leaves_between_parts(fake: Examine) -> None:
    assert values(fake("quits", "one")) == ["quits", "one"]


def test_a_process_that_holds_the_pipe_open_is_ended(fake: Examine) -> None:
    found = fake("leaves a child", "exits", "one", part_s=20.0)
    assert values(found) == ["leaves a child", "one"]
    assert found["exits"].reason == "its process ended early (exit status 7)"


def test_an_interpreter_that_does_not_start(tmp_path: Path) -> None:
    found = examine(str(tmp_path), parts=["one", "two"], began=lambda part: None, while_copying=lambda: None)
    assert "the interpreter does not start: " in (found["one"].reason or "")
    assert found["two"].reason == found["one"].reason


def test_the_link_is_looked_at_only_while_copying(fake: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "COPIES", "hangs")
    heard: list[str] = []
    fake("one", "hangs", began=heard.append, while_copying=lambda: heard.append("look"), part_s=2.0)
    assert heard[:3] == ["one", "hangs", "look"]

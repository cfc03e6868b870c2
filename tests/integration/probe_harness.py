"""Starts the probe's child as the parent would, plays the parent's answers, and decodes what it wrote."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import pindiag.probe
from pindiag.model import AnyRecord, Base, Block, BlockOrder, Configuration, LoaderKey, ProbeSpec, Treatment
from pindiag.store import RunDirectory, read_journal

from .warm_python import Child, warm_python

T = TypeVar("T", bound=Base)

TARGETS = Path(__file__).parents[1] / "targets"
LIMIT_S = 120


@dataclass
class Result:
    """What a launch left behind."""

    run: RunDirectory
    returncode: int
    output: str
    records: list[AnyRecord]
    piped: list[dict[str, Any]]
    ended_ns: int
    """When the child was gone, on the clock of the records."""

    def all(self, kind: type[T]) -> list[T]:
        return [record for record in self.records if isinstance(record, kind)]

    def one(self, kind: type[T]) -> T:
        found = self.all(kind)
        assert len(found) == 1, (kind.__name__, found, self.output)
        return found[0]


def order(**changes: Any) -> BlockOrder:
    """A short block."""
    return BlockOrder(**{"block": 1, "round": 1, "trial": "as-written", "seconds": 0.2, **changes})


def treatment(**changes: Any) -> Treatment:
    """A treatment that makes the given changes."""
    configuration = Configuration(
        num_workers=0,
        pin_memory=False,
        non_blocking=None,
        prefetch_factor=None,
        persistent_workers=False,
        batch_size=None,
    )
    return Treatment(id="changed", kind="configuration", configuration=configuration, changes=changes)


def under(block: int, trial: str, kind: str = "configuration", **changes: Any) -> BlockOrder:
    """A short block of a live launch under a treatment that makes the given changes."""
    ablation = trial.split("-")[0] if kind == "ablation" else None
    tweak = trial.split("+")[1] if kind == "tweak" else None
    made = msgspec.structs.replace(treatment(**changes), id=trial, kind=kind, ablation=ablation, tweak=tweak)
    return order(block=block, trial=trial, seconds=0.05, treatment=made)


ABLATIONS = [
    under(2, "nw1", num_workers=1),
    under(3, "compute_only", "ablation"),
    under(4, "loader_only-nw2-pin0", "ablation", num_workers=2, pin_memory=False),
    under(5, "host_batch-pin0-nb0", "ablation", pin_memory=False, non_blocking=False),
    under(6, "as-written"),
]
"""Treatments of all kinds, of scripts that move no batch to a device."""

FEW = {"steps": 12, "settle_steps": 2, "seconds": 0}
"""Makes a block as long on a fast machine as on a slow one."""


def few(blocks: list[BlockOrder]) -> list[BlockOrder]:
    """The same blocks of as many steps each, however long they take."""
    return [msgspec.structs.replace(block, **FEW) for block in blocks]


def then(*blocks: BlockOrder, what: str = "blocks") -> dict[str, Any]:
    """The parent's answer that orders these blocks, or windows."""
    return {"then": what, what: msgspec.to_builtins(blocks)}


def key(script: Path, line_of: str, ordinal: int = 0) -> LoaderKey:
    """The loader whose construction holds a text."""
    lines = script.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if line_of in text)
    return LoaderKey(location=f"{script}:{line}", ordinal=ordinal)


def launch(
    folder: Path,
    target: Path | str,
    *args: str,
    answers: list[dict[str, Any]] | None = None,
    blocks: list[BlockOrder] | None = None,
    environment: dict[str, str] | None = None,
    cwd: Path | None = None,
    python: str | None = None,
    kill_after: str | None = None,
    **changes: Any,
) -> Result:
    """Run one launch to its end.

    Args:
        answers: what the parent says after each block; "stop" when there are no more.
        environment: changes of it; the process is a fresh one then, and torch is not imported yet.
        python: the interpreter of a fresh process.
        kill_after: SIGKILL once a record of this type was piped.
    """
    run = RunDirectory.create(Path(tempfile.mkdtemp(prefix="run-", dir=folder)))
    probe = run.path / "probe" / "pindiag_probe"
    shutil.copytree(Path(pindiag.probe.__file__).parent, probe, ignore=shutil.ignore_patterns("__pycache__"))
    child_reads, parent_writes = os.pipe()
    parent_reads, child_writes = os.pipe()
    spec = ProbeSpec(
        **{
            "launch": 1,
            "target": str(target),
            "module": False,
            "args": list(args),
            "run_directory": str(run.path),
            "pipe_read_fd": child_reads,
            "pipe_write_fd": child_writes,
            "treatment": None,
            "blocks": [order()] if blocks is None else blocks,
            "profile": False,
            "profile_steps": 3,
            "natural_epochs": False,
            "loader": None,
            "loader_place": None,
            "device": None,
            "keep_cap_bytes": 1 << 20,
            **changes,
        }
    )
    spec_path = run.path / "probe" / "launch-001.json"
    spec_path.write_bytes(msgspec.json.encode(spec))
    words = [str(probe / "bootstrap.py"), str(spec_path)]
    with run.target_log.open("wb") as log, open(os.devnull, "rb") as nothing:
        fds = {
            0: nothing.fileno(),
            1: log.fileno(),
            2: log.fileno(),
            child_reads: child_reads,
            child_writes: child_writes,
        }
        if python is None and environment is None:
            child: Child | subprocess.Popen[bytes] = warm_python().start(words, cwd or folder, fds)
        else:
            child = subprocess.Popen(
                [python or sys.executable, *words],
                cwd=cwd or folder,
                env={**os.environ, **(environment or {})},
                stdin=nothing,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(child_reads, child_writes),
            )
    os.close(child_reads)
    os.close(child_writes)
    guard = threading.Timer(LIMIT_S, os.killpg, (child.pid, signal.SIGKILL))
    guard.start()
    piped = _play(child, parent_reads, parent_writes, list(answers or []), kill_after)
    returncode = child.wait()
    ended_ns = time.monotonic_ns()
    guard.cancel()
    output = run.target_log.read_text(errors="replace")
    return Result(run, returncode, output, decode(run), piped, ended_ns)


def live(
    folder: Path,
    target: Path | str,
    *args: str,
    blocks: list[BlockOrder],
    first: BlockOrder | None = None,
    last: dict[str, Any] | None = None,
    **changes: Any,
) -> Result:
    """Run one live launch: a first block as written unless told otherwise, then the others one by one."""
    answers = [*map(then, blocks), *([last] if last else [])]
    return launch(folder, target, *args, isolation="live", blocks=[first or order()], answers=answers, **changes)


def assert_all_counted(result: Result, blocks: list[BlockOrder]) -> None:
    """The first block and those that followed were measured, and nothing was raised."""
    assert result.returncode == 0, result.output
    assert "Traceback" not in result.output
    assert [(block.block, block.status) for block in result.all(Block)] == [
        (number, "counted") for number in range(1, len(blocks) + 2)
    ], result.output


def _play(
    child: Child | subprocess.Popen[bytes],
    read_fd: int,
    write_fd: int,
    answers: list[dict[str, Any]],
    kill_after: str | None,
) -> list[dict[str, Any]]:
    piped = []
    with open(read_fd, "rb") as lines, open(write_fd, "wb", buffering=0) as replies:
        for line in lines:
            record = json.loads(line)
            piped.append(record)
            if record["type"] == kill_after:
                child.kill()
            if record["type"] == "block" and child.poll() is None:
                answer = answers.pop(0) if answers else {"then": "stop"}
                try:
                    replies.write(json.dumps(answer).encode() + b"\n")
                except BrokenPipeError:
                    continue
    return piped


def decode(run: RunDirectory) -> list[AnyRecord]:
    """All records of the probe's journal; every line must decode."""
    records = []
    for path in sorted(run.journal.glob("launch-*.jsonl")):
        found = list(read_journal(path))
        assert len(found) == len(path.read_bytes().splitlines()), path.read_text()
        records += [record for _, record in found]
    return records

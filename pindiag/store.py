"""The run directory: names, atomic writes, and decoding of everything that stands in it."""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import os
import shutil
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pindiag.errors import DiskFull, NotARun, OutputRefused
from pindiag.model import SCHEMA_VERSION, AnyRecord, Base, Block, Report, RunResumed, RunSpec, WorkerBatch

RING_HEADER = struct.Struct("<8sqqqq")
"""Magic, launch, pid, worker, number of batches written so far."""
RING_MAGIC = b"PDRING02"
RING_ENTRY = struct.Struct("<15q")
"""The fields of `WorkerBatch` in the order of `RING_FIELDS`; -1 where a number is not known."""
RING_FIELDS = (
    *("started_ns", "idle_ns", "fetch_ns", "collate_ns", "cpu_ns", "samples"),
    *("process_cpu_ns", "minor_faults", "major_faults", "run_delay_ns"),
    *("handed_ns", "hand_off_ns", "hand_off_cpu_ns", "blocked_ns", "sent_bytes"),
)
_RING_FORMATS = {
    RING_MAGIC: (RING_ENTRY, RING_FIELDS),
    b"PDRING01": (struct.Struct("<5q"), ("started_ns", "fetch_ns", "collate_ns", "cpu_ns", "samples")),
}
"""What an entry of a ring holds, by the ring's magic."""

_FULL = {
    errno.ENOSPC: "The disk of {} is full",
    errno.EDQUOT: "The disk quota for {} is used up",
    errno.EFBIG: "A file in {} has reached the limit on the size of files (`ulimit -f`)",
}
"""What an error says of a run's disk."""

_record_decoder = msgspec.json.Decoder(AnyRecord)

T = TypeVar("T", RunSpec, Report)
Timed = TypeVar("Timed", bound=Base)


class RunDirectory:
    """Paths of a run and access to what it holds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spec_path = path / "run.json"
        self.journal = path / "journal"
        self.rings = path / "rings"
        self.traces = path / "traces"
        self.kept = path / "kept"
        self.stacks = path / "stacks"
        self.target_log = path / "target.log"
        self.sources = path / "sources.json"
        self.patched = path / "patched"
        """A run of its own, where the patch was verified."""
        self.report_html = path / "report.html"
        self.report_json = path / "report.json"
        self.summary_md = path / "summary.md"

    @classmethod
    def create(cls, path: Path, *, force: bool = False) -> RunDirectory:
        """Make an empty run directory.

        Raises:
            OutputRefused: it exists already and `force` is false, or it cannot be written.
        """
        run = cls(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            if not force:
                raise OutputRefused(f"{path} exists already.", "Choose another -o, or overwrite it with --force.")
            if not run.spec_path.is_file():
                raise OutputRefused(f"{path} holds no pindiag run, so it is not overwritten.", "Choose another -o.")
            run._clear()
        try:
            for folder in (run.journal, run.rings, run.traces, run.kept):
                folder.mkdir(parents=True, exist_ok=True)
            (path / ".gitignore").write_text("*\n")
        except OSError as error:
            raise OutputRefused(f"{path} cannot be written: {error.strerror}.", "Choose another -o.") from error
        return run

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Open an existing run.

        Raises:
            NotARun: there is no run.json in it.
        """
        run = cls(path)
        if not run.spec_path.is_file():
            raise NotARun(f"{path} holds no pindiag run (no run.json).", "Name a folder that `pindiag run` made.")
        return run

    def _clear(self) -> None:
        for entry in self.path.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def write(self, path: Path, content: bytes) -> None:
        """Write a file so that a reader sees the old content or the new one, never a part."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            temporary.write_bytes(content)
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def append(self, path: Path, line: bytes) -> None:
        """Append a line to a journal, all of it or nothing: half a line would spoil the next one too."""
        with path.open("ab") as journal:
            whole = journal.tell()
        try:
            with path.open("ab") as journal:
                journal.write(line + b"\n")
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(path, whole)
            raise

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Around everything that writes into this run.

        Raises:
            DiskFull: in place of the error that says so.
        """
        try:
            yield
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise DiskFull(
                f"{_FULL[error.errno].format(self.path)}; what was measured before is kept.",
                f"Make room and go on with `pindiag run --resume {self.path}`, or choose another disk with -o.",
            ) from error

    def write_spec(self, spec: RunSpec) -> None:
        """Write run.json."""
        self.write(self.spec_path, msgspec.json.format(msgspec.json.encode(spec)))

    def read_spec(self) -> RunSpec:
        """Read run.json.

        Raises:
            NotARun: it is damaged or of another schema version.
        """
        return _decode_versioned(self.spec_path, RunSpec)

    def write_report(self, report: Report) -> None:
        """Write report.json."""
        self.write(self.report_json, msgspec.json.format(msgspec.json.encode(report)) + b"\n")

    def read_report(self) -> Report:
        """Read report.json.

        Raises:
            NotARun: it is missing, damaged or of another schema version.
        """
        return read_report(self.report_json)

    def records(self) -> list[AnyRecord]:
        """All records of all journals in the order of their time."""
        found = [record for path in sorted(self.journal.glob("*.jsonl")) for _, record in read_journal(path)]
        return sorted(_on_one_clock(found), key=lambda record: record.t_ns)

    def places(self) -> dict[int, str]:
        """Block id to the place of its record in the journal: file name and line."""
        return {
            record.block: f"{path.name}:{line}"
            for path in sorted(self.journal.glob("*.jsonl"))
            for line, record in read_journal(path)
            if isinstance(record, Block)
        }

    def worker_batches(self) -> list[WorkerBatch]:
        """All batches that workers wrote into their rings."""
        parent = self.journal / "parent.jsonl"
        restarts = _restarts(record for _, record in read_journal(parent)) if parent.is_file() else []
        batches = [batch for path in sorted(self.rings.glob("*.ring")) for batch in read_ring(path)]
        return [_earlier(batch, _back_ns(batch.launch, restarts)) for batch in batches] if restarts else batches


def read_report(path: Path) -> Report:
    """Read a report.json, wherever it lies.

    Raises:
        NotARun: it is missing, damaged or of another schema version.
    """
    return _decode_versioned(path, Report)


def _decode_versioned(path: Path, kind: type[T]) -> T:
    try:
        content = path.read_bytes()
        version = msgspec.json.decode(content, type=_Versioned).schema_version
        if version != SCHEMA_VERSION:
            raise NotARun(
                f"{path} is of schema version {version}; this pindiag reads {SCHEMA_VERSION}.",
                "Read it with the pindiag that made it.",
            )
        return msgspec.json.decode(content, type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise NotARun(f"{path} cannot be read: {error}.", "Run `pindiag run` again.") from error


class _Versioned(msgspec.Struct, frozen=True):
    schema_version: int


def _on_one_clock(records: list[AnyRecord]) -> list[AnyRecord]:
    """Records in the order in which they stand, those from before a restart of the machine as so much earlier."""
    restarts = _restarts(records)
    if not restarts:
        return records
    placed = []
    to_come = list(restarts)
    for record in records:
        if to_come and record == to_come[0]:
            to_come.pop(0)
        back_ns = _back_ns(record.launch, restarts if record.launch else to_come)
        placed.append(_earlier(record, back_ns))
    return placed


def _restarts(records: Iterable[AnyRecord]) -> list[RunResumed]:
    return [record for record in records if isinstance(record, RunResumed) and record.clock_back_ns]


def _back_ns(launch: int, restarts: Sequence[RunResumed]) -> int:
    return sum(again.clock_back_ns for again in restarts if launch <= again.launches)


_MOMENTS = ("t_ns", "started_ns", "ended_ns", "handed_ns")
"""Fields that hold a time of the clock, and no duration."""


def _earlier(record: Timed, back_ns: int) -> Timed:
    told = {name: getattr(record, name, None) for name in _MOMENTS if back_ns}
    return msgspec.structs.replace(record, **{name: at - back_ns for name, at in told.items() if at is not None})


def read_journal(path: Path) -> Iterator[tuple[int, AnyRecord]]:
    """Line numbers and records of one journal.

    A last line that was cut by a death is left out, and so is a record of a kind that this version does not know.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield number, _record_decoder.decode(line)
            except msgspec.DecodeError:
                continue


def read_ring(path: Path) -> list[WorkerBatch]:
    """Batches of one worker's ring, oldest first; [] where the ring is damaged or empty."""
    with path.open("rb") as ring:
        header = ring.read(RING_HEADER.size)
        if len(header) < RING_HEADER.size:
            return []
        magic, launch, pid, worker, written = RING_HEADER.unpack(header)
        if magic not in _RING_FORMATS:
            return []
        entry, fields = _RING_FORMATS[magic]
        capacity = (os.fstat(ring.fileno()).st_size - RING_HEADER.size) // entry.size
        # Rings are made for thousands of batches, and most hold a few: what was never written is not read.
        content = ring.read(max(0, min(written, capacity)) * entry.size)
    batches = []
    for index in range(max(0, written - capacity), written):
        values = entry.unpack_from(content, index % capacity * entry.size)
        told = {field: value for field, value in zip(fields, values, strict=True) if value != -1}
        batches.append(WorkerBatch(launch=launch, pid=pid, worker=worker, **told))
    return batches


class TraceEvent(msgspec.Struct, frozen=True):
    """The fields of a Kineto event that pindiag reads; times in microseconds."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: float = 0.0
    dur: float = 0.0
    pid: int | str = 0
    tid: int | str = 0
    args: dict[str, Any] = {}


class _Trace(msgspec.Struct, frozen=True, rename={"events": "traceEvents"}):
    events: list[TraceEvent]


def read_trace(path: Path) -> list[TraceEvent]:
    """Complete events of a Kineto trace (.json or .json.gz).

    Raises:
        ValueError: the trace is cut or is not JSON that can be read (Kineto has written such).
    """
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise ValueError(f"the trace is cut: {error}") from error
    try:
        events = msgspec.json.decode(content, type=_Trace).events
    except (msgspec.DecodeError, UnicodeDecodeError):
        loaded = json.loads(content.decode("utf-8", "replace"), strict=False)
        events = msgspec.convert(loaded, _Trace, strict=False).events
    return [event for event in events if event.ph == "X"]

"""Records out of bytes that come in pieces: from a pipe, or from a journal that is still being written."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pindiag.model import AnyRecord

_decoder = msgspec.json.Decoder(AnyRecord)


class Stream:
    """Cuts pieces into records; a line that has not wholly come waits for the rest of it."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[AnyRecord]:
        """The records that are complete with this piece; kinds that this version does not know are left out."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [record for line in lines if (record := _decode(line)) is not None]


class Journals:
    """Follows what the processes of one launch write into their journals.

    Args:
        folder: where the journals stand.
        launch: number of the launch.
    """

    def __init__(self, folder: Path, launch: int) -> None:
        self._folder = folder
        self._pattern = f"launch-{launch:03d}-*.jsonl"
        self._read: dict[Path, tuple[int, Stream]] = {}

    def news(self) -> list[AnyRecord]:
        """What was written since the last time, in the order of time."""
        found: list[AnyRecord] = []
        for path in self._folder.glob(self._pattern):
            position, stream = self._read.get(path, (0, Stream()))
            with path.open("rb") as journal:
                journal.seek(position)
                piece = journal.read()
            self._read[path] = position + len(piece), stream
            found += stream.feed(piece)
        return sorted(found, key=lambda record: record.t_ns)


def _decode(line: bytes) -> AnyRecord | None:
    try:
        return _decoder.decode(line)
    except msgspec.DecodeError:
        return None

from pathlib import Path

import msgspec

from pindiag.launch.stream import Journals, Stream
from pindiag.model import FirstStep


def line(t_ns: int) -> bytes:
    return msgspec.json.encode(FirstStep(launch=1, t_ns=t_ns)) + b"\n"


def step(t_ns: int) -> FirstStep:
    return FirstStep(launch=1, t_ns=t_ns)


def test_a_line_that_comes_in_pieces() -> None:
    stream = Stream()
    whole = line(1) + line(2)
    assert [record for at in range(len(whole)) for record in stream.feed(whole[at : at + 1])] == [step(1), step(2)]


def test_what_is_not_known_is_left_out() -> None:
    assert Stream().feed(b'{"type": "of the future"}\nnot JSON\n\n' + line(1)) == [step(1)]


def test_journals_give_what_is_new(tmp_path: Path) -> None:
    journals = Journals(tmp_path, 1)
    assert journals.news() == []
    first, second, other = (tmp_path / f"launch-00{name}.jsonl" for name in ("1-10", "1-11", "2-12"))
    first.write_bytes(line(5) + line(7)[:9])
    other.write_bytes(line(6))
    assert journals.news() == [step(5)]
    assert journals.news() == []
    first.write_bytes(line(5) + line(7))
    second.write_bytes(line(6))
    assert journals.news() == [step(6), step(7)]

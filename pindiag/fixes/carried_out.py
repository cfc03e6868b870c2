"""A unified diff of `unified_diff`, carried out on the texts that it was made of."""

from __future__ import annotations

import difflib
import re

_FILE = re.compile(r"^--- a/(.*)\n\+\+\+ b/.*\n(?=@@ )", re.MULTILINE)
_HUNK = re.compile(r"@@ -(\d+)(,0)?")


def lines_of(text: str) -> list[str]:
    """As files have them: `splitlines` would take a form feed for the end of a line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def by_file(diff: str) -> dict[str, str]:
    """The hunks of each file, by the name that the diff gives it."""
    pieces = _FILE.split(diff)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def carried_out(hunks: str, before: str) -> str:
    """The text after a file's hunks.

    Raises:
        ValueError: a line that the diff shows is not where it says.
    """
    lines = lines_of(before)
    after: list[str] = []
    at = 0
    for hunk in re.split(r"^(?=@@ )", hunks, flags=re.MULTILINE)[1:]:
        header, *body = _lines(hunk)
        old = [line[1:] for line in body if line[0] in " -"]
        start = _start(header)
        if lines[start : start + len(old)] != old:
            raise ValueError(f"the lines from {start + 1} on are not those of the diff")
        after += [*lines[at:start], *(line[1:] for line in body if line[0] in " +")]
        at = start + len(old)
    return "".join([*after, *lines[at:]])


def moved(before: str, after: str, line: int) -> int:
    """Where a line stands after a change; of lines that it rewrote, the one that is most like it."""
    old, new = lines_of(before), lines_of(after)
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal" and start < line <= end:
            return line - start + new_start
        if start < line <= end:
            like = {
                at: difflib.SequenceMatcher(None, old[line - 1], new[at]).ratio() for at in range(new_start, new_end)
            }
            return 1 + max(like, key=lambda at: like[at], default=new_start)
    return line


def _start(header: str) -> int:
    """Index of the first line that a hunk is about; of an empty range the diff names the line before."""
    found = _HUNK.match(header)
    if found is None:
        raise ValueError(f"{header.strip()} begins no hunk")
    return int(found[1]) - (found[2] is None)


def _lines(hunk: str) -> list[str]:
    lines: list[str] = []
    for line in lines_of(hunk):
        if line.startswith("\\"):
            # "No newline at end of file" speaks of the line above it.
            lines[-1] = lines[-1].removesuffix("\n")
        else:
            lines.append(line)
    return lines

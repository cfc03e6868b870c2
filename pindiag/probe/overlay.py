"""Texts that stand in for files of the target; the files themselves are not touched."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from types import CodeType

_texts: dict[str, str] = {}
_get_code = SourceFileLoader.get_code


def install(sources: Mapping[str, str]) -> None:
    """Let imports take these texts, and whatever shows or reads the target's source too.

    Args:
        sources: texts by absolute path.
    """
    if not sources:
        return
    _texts.update(sources)
    for path, text in sources.items():
        # without a time the cache is never held against the file
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    SourceFileLoader.get_code = _code_of  # type: ignore[assignment, method-assign]


def text_of(path: str) -> str | None:
    """What stands in for a file; None: the file itself."""
    return _texts.get(path)


def _code_of(self: SourceFileLoader, fullname: str) -> CodeType | None:
    """Neither read from nor written into a cache: that is the file's own."""
    path = self.get_filename(fullname)
    text = text_of(path)
    return _get_code(self, fullname) if text is None else compile(text, path, "exec", dont_inherit=True)

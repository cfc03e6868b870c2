"""What can go wrong, each with the exit code that the command line documents."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """Exit codes of `pindiag` (DESIGN.md section 4)."""

    OK = 0
    """The report was written."""
    FAIL_ON = 1
    """`--fail-on LEVEL` was hit."""
    USAGE = 2
    """Usage or configuration: nothing could be measured as asked."""
    TARGET_FAILED = 3
    """The target failed under its own configuration."""
    INTERNAL = 4
    """pindiag itself failed."""
    INTERRUPTED = 130
    """Ctrl-C; a partial report was written."""


class PindiagError(Exception):
    """One sentence that names the cause, and one that says what to do.

    Args:
        cause: what went wrong, a sentence.
        hint: what to do about it, a sentence, or "" where the cause says it all.
    """

    code: str = "PDE400"
    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, cause: str, hint: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.cause} {self.hint}".rstrip()


class UsageError(PindiagError):
    """The command's words cannot be carried out."""

    code = "PDE201"
    exit_code = ExitCode.USAGE


class TargetNotFound(UsageError):
    """TARGET is missing, a directory, or not Python."""

    code = "PDE202"


class NoTorch(UsageError):
    """The chosen interpreter cannot import torch, or not a version that pindiag supports."""

    code = "PDE203"


class NoLoader(UsageError):
    """The target never iterated a DataLoader, or not the one that `--loader` names."""

    code = "PDE204"


class OutputRefused(UsageError):
    """The run directory cannot be written, or exists already."""

    code = "PDE205"


class GridError(UsageError):
    """`--grid` names an unknown argument or an impossible value."""

    code = "PDE206"


class NotARun(UsageError):
    """The directory holds no run, or one of another schema."""

    code = "PDE207"


class UnknownRule(UsageError):
    """`pindiag explain` was given a name that no rule has."""

    code = "PDE208"


class PlatformRefused(UsageError):
    """This platform lacks what a launch needs."""

    code = "PDE209"


class NotComparable(UsageError):
    """Two runs are of unlike machines or targets, or have too little in common for what was asked."""

    code = "PDE210"


class SettingsError(UsageError):
    """`[tool.pindiag]` or a PINDIAG_ variable names no option, or a value that it cannot take."""

    code = "PDE211"


class ResumeRefused(UsageError):
    """The run cannot go on here, or as it was."""

    code = "PDE210"


class RunInUse(UsageError):
    """Another pindiag is running in the directory."""

    code = "PDE211"


class TemplateMissing(PindiagError):
    """A template is neither inside the package nor beside it: a broken installation."""

    code = "PDE401"


class DiskFull(PindiagError):
    """The run directory's disk is full."""

    code = "PDE402"

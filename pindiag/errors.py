"""What can go wrong, each with the exit code that the command line documents.

An error's docstring says the cause, and below it the next step; the documentation's page of errors is made of them.
"""

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
    """pindiag itself failed.

    What was measured is kept: `pindiag report RUN_DIR`. Set `PINDIAG_DEBUG=1` to see where it failed, and report it.

    Each error says one sentence that names the cause, and one that says what to do.

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
    """The command's words cannot be carried out.

    Read what the sentence says of the option, and `pindiag COMMAND --help`; the script's own options go after `--`.
    """

    code = "PDE201"
    exit_code = ExitCode.USAGE


class TargetNotFound(UsageError):
    """TARGET is missing, a directory, or not Python.

    Name the script that trains, or a module with `-m`.
    """

    code = "PDE202"


class NoTorch(UsageError):
    """The chosen interpreter cannot import torch, or not a version that pindiag supports.

    Name the interpreter that trains with `--python PATH`; it needs torch 2.6 or newer.
    """

    code = "PDE203"


class NoLoader(UsageError):
    """The target never iterated a DataLoader, or not the one that `--loader` names.

    Name the line that makes the training loader with `--loader FILE:LINE`; `target.log` in the run directory has what
    the script printed.
    """

    code = "PDE204"


class OutputRefused(UsageError):
    """The run directory cannot be written, or exists already.

    Choose another `-o DIR`, or overwrite an earlier run with `--force`.
    """

    code = "PDE205"


class GridError(UsageError):
    """`--grid` names an unknown argument or an impossible value.

    Write `--grid "num_workers=0,2,4 pin_memory=on,off"`; the sentence says what the argument takes.
    """

    code = "PDE206"


class NotARun(UsageError):
    """The directory holds no run, or one of another schema.

    Name a folder that `pindiag run` made; `pindiag list` shows them. A run of a newer pindiag needs that pindiag.
    """

    code = "PDE207"


class UnknownRule(UsageError):
    """`pindiag explain` was given a name that no rule has.

    `pindiag rules` lists codes and names.
    """

    code = "PDE208"


class PlatformRefused(UsageError):
    """This platform lacks what a launch needs.

    On Windows, run it under WSL 2, which is Linux.
    """

    code = "PDE209"


class NotComparable(UsageError):
    """Two runs are of unlike machines or targets, or have too little in common for what was asked.

    Compare them all the same with `--force`, or measure both again with more rounds.
    """

    code = "PDE210"


class SettingsError(UsageError):
    """`[tool.pindiag]` or a PINDIAG_ variable names no option, or a value that it cannot take.

    Mend the setting that the sentence names; `pindiag run --help` says what each option takes.
    """

    code = "PDE211"


class ResumeRefused(UsageError):
    """The run cannot go on here, or as it was.

    Start anew with the command that the sentence prints; `pindiag report RUN_DIR` shows what was measured.
    """

    code = "PDE212"


class RunInUse(UsageError):
    """Another pindiag is running in the directory.

    Wait for its end, or choose another `-o DIR`.
    """

    code = "PDE213"


class NothingToApply(UsageError):
    """`pindiag apply` found no change to make: none is recommended, or none can be made safely.

    Read what the sentence says; `pindiag report RUN_DIR` shows what was found, and what is left to do by hand.
    """

    code = "PDE214"


class SourceChanged(UsageError):
    """A file that `pindiag apply` was to edit is not what was measured.

    Run it again as it is now, and apply what that run recommends.
    """

    code = "PDE215"


class PlaceOutside(UsageError):
    """A file that `pindiag apply` was to edit lies outside the script's folder.

    Name it with `--also FILE` if it may be edited.
    """

    code = "PDE216"


class SourceNotWritable(UsageError):
    """`pindiag apply` cannot write a file, or the copy that is the way back.

    Make both writable, move a stale `.orig` away, or commit the file to git, which then is the way back.
    """

    code = "PDE217"


class TemplateMissing(PindiagError):
    """A template, or the recording of `pindiag demo`, is not where the package has it: a broken installation.

    Install pindiag again.
    """

    code = "PDE401"


class DiskFull(PindiagError):
    """The run directory's disk is full.

    Make room, or choose a directory on another disk with `-o DIR`; `pindiag report RUN_DIR` shows what was measured.
    """

    code = "PDE402"

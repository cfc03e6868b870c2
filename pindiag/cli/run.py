"""`pindiag run`: measure a script and say why it is slow."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
from click.core import ParameterSource

from pindiag.cli.settings import Configurable
from pindiag.errors import UsageError

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
_WITH_RESUME = {"resume", "open_it", "json_path", "fail_on", "show_paths", "quiet", "verbose"}
_WITH_PATCH = _WITH_RESUME - {"resume"} | {"verify_patch", "budget"}
_UNITS_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Duration(click.ParamType[float]):
    """Seconds, from "90", "90s", "5m" or "1h"."""

    name = "duration"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds; fails on anything else than a positive number with an optional unit."""
        if isinstance(value, int | float):
            return float(value)
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", value.strip())
        if not match or float(match[1]) <= 0:
            self.fail(f"{value!r} is not a duration such as 90s, 5m or 1h.", param, ctx)
        return float(match[1]) * _UNITS_S[match[2] or "s"]


class Size(click.ParamType[int]):
    """Bytes, from "500M", "1GiB" or "1073741824"."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return bytes; units are powers of 1024."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", value.strip().lower())
        if not match:
            self.fail(f"{value!r} is not a size such as 500M or 1GiB.", param, ctx)
        return int(float(match[1]) * _UNITS_BYTES[match[2]])


class BatchSizes(click.ParamType[list[int]]):
    """Sizes, from "32,64,128"; none from "default", which stands for the option alone."""

    name = "sizes"

    def convert(self, value: str | list[int], param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """Return each size once; fails on anything else than whole numbers from 1."""
        if isinstance(value, list):
            return value
        words = [] if value == "default" else [word.strip() for word in value.split(",")]
        if not all(word.isdecimal() and int(word) > 0 for word in words):
            self.fail(f"{value!r} is no list of sizes such as 32,64,128. Alone, it stands behind TARGET.", param, ctx)
        return list(dict.fromkeys(int(word) for word in words))


@click.command("run", short_help="Measure a training script, and say why it is slow.", cls=Configurable)
@click.argument(
    "words",
    metavar="TARGET [-- TARGET ARGUMENTS]",
    nargs=-1,
    type=click.UNPROCESSED,
    shell_complete=click.Path().shell_complete,
)
@click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m MODULE` does, instead of TARGET.")
@click.option("--sweep", is_flag=True, help="Measure other loader configurations too, and recommend the best.")
@click.option(
    "--grid",
    metavar="SPEC",
    help='What to sweep, e.g. "num_workers=0,2,4 pin_memory=on,off non_blocking=on,off prefetch_factor=2,4". '
    "Default: built from the script's own settings and the CPUs it may use.",
)
@click.option(
    "--sweep-batch-size",
    type=BatchSizes(),
    metavar="[SIZE,...]",
    is_flag=False,
    flag_value="default",
    help="Sweep, and measure other batch sizes beside it, in launches of their own: half, twice and four times the "
    "script's, or those named. They change training itself, so they have a table of their own and are never "
    "recommended.",
)
@click.option("--budget", type=Duration(), default="5m", show_default=True, help="Time to measure, start-up apart.")
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Rounds over all treatments; an undecided search has up to 3 times as many.",
)
@click.option("--steps", type=click.IntRange(min=2), help="Counted steps a block. Default: about 1.5 s of them.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the order in the rounds.")
@click.option("--device", metavar="DEVICE", help="The device to watch, e.g. cuda:1. It is never imposed on the script.")
@click.option("--loader", metavar="FILE:LINE", help="The DataLoader that trains, where pindiag chose another.")
@click.option("--wait", type=Duration(), default="10m", show_default=True, help="How long a first batch may take.")
@click.option("--python", metavar="PATH", help="The interpreter that runs the target. Default: pindiag's own.")
@click.option("--no-verify", is_flag=True, help="Do not repeat the recommendation in launches that did not choose it.")
@click.option("--fresh", is_flag=True, help="Measure every treatment in launches of its own: slower.")
@click.option(
    "--exhaustive", is_flag=True, help="Sweep the whole grid: nothing is left out for what is predicted of it."
)
@click.option("--keep-cap", type=Size(), default="1GiB", show_default=True, help="Largest file copied before a change.")
@click.option("-o", "--output", metavar="DIR", type=click.Path(path_type=Path), help="The run directory.")
@click.option("--force", is_flag=True, help="Overwrite an existing run directory.")
@click.option(
    "--resume",
    metavar="RUN_DIR",
    type=click.Path(path_type=Path),
    help="Go on with a run that was killed or interrupted, as it was asked for; of a complete one, make the report "
    "again. No TARGET then.",
)
@click.option(
    "--verify-patch",
    metavar="RUN_DIR",
    type=click.Path(path_type=Path),
    help="Measure the change that a run recommends: its script as it was measured against the same with the patch in "
    "its files, in alternating fresh launches. Your files are not touched; the run's report tells the result. No "
    "TARGET then.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the report in a browser.")
@click.option("--json", "json_path", metavar="PATH|-", help="Also write report.json there; - is standard output.")
@click.option(
    "--fail-on",
    type=click.Choice(["high", "medium", "low"]),
    help="Exit with 1 when a cause of this severity is found.",
)
@click.option("--show-paths", is_flag=True, help="Do not redact home, user and host names and paths.")
@click.option("-q", "--quiet", is_flag=True, help="No progress; print the verdict in one line.")
@click.option("-v", "--verbose", is_flag=True, help="Say what happens in every launch.")
@click.pass_context
def command(
    context: click.Context,
    *,
    words: tuple[str, ...],
    module: str | None,
    sweep: bool,
    grid: str | None,
    sweep_batch_size: list[int] | None,
    budget: float,
    rounds: int,
    steps: int | None,
    seed: int,
    device: str | None,
    loader: str | None,
    wait: float,
    python: str | None,
    no_verify: bool,
    fresh: bool,
    exhaustive: bool,
    keep_cap: int,
    output: Path | None,
    force: bool,
    resume: Path | None,
    verify_patch: Path | None,
    open_it: bool,
    json_path: str | None,
    fail_on: str | None,
    show_paths: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Measure TARGET, a Python script that trains with a DataLoader, as it is.

    Without --sweep it says where the time goes: the script as written beside ceilings (a batch replayed, the loader
    drained). With it, other configurations are measured too, in turns inside one launch and the best one again in
    launches of its own, and the report says which to set, where, and what it brought.

    \b
    pindiag run train.py --sweep
    pindiag run train.py --sweep --budget 2m -- --epochs 3 --lr 0.1
    pindiag run -m package.train --sweep
    pindiag run --resume pindiag-runs/train-20260101T120000Z
    """  # noqa: D301 - click wants the character itself
    from pindiag import api
    from pindiag.cli import browser, ci, console
    from pindiag.errors import ExitCode

    with console.Progress(quiet=quiet, verbose=verbose) as progress:
        if resume is not None:
            _refuse_others(context, "--resume", _WITH_RESUME)
            run_directory, made = api.resume(resume, show_paths=show_paths, progress=progress)
        elif verify_patch is not None:
            _refuse_others(context, "--verify-patch", _WITH_PATCH)
            run_directory, made = api.verify_patch(
                verify_patch, budget_s=budget, show_paths=show_paths, progress=progress
            )
        else:
            target, args = _target(module, words)
            run_directory, made = api.run(
                target,
                module=module is not None,
                args=args,
                sweep=sweep,
                grid=grid,
                batch_sizes=sweep_batch_size,
                budget_s=budget,
                rounds=rounds,
                steps=steps,
                seed=seed,
                device=device,
                loader=loader,
                wait_s=wait,
                python=python,
                verify=not no_verify,
                fresh=fresh,
                exhaustive=exhaustive,
                keep_cap_bytes=keep_cap,
                output=output,
                force=force,
                show_paths=show_paths,
                progress=progress,
            )
    console.verdict(made, run_directory, quiet=quiet, json_path=json_path, of_patch=verify_patch is not None)
    ci.step_summary((run_directory / "summary.md").read_text(encoding="utf-8"))
    if open_it:
        browser.show(run_directory / "report.html")
    code = api.exit_code(made, fail_on=fail_on, of_patch=verify_patch is not None)
    if code == ExitCode.INTERRUPTED and verify_patch is None:
        console.error(
            "The run was interrupted.", f"Go on with `pindiag run --resume {shlex.quote(str(run_directory))}`."
        )
    return code


def _target(module: str | None, words: tuple[str, ...]) -> tuple[str, list[str]]:
    if module is not None:
        return module, list(words)
    if not words:
        raise UsageError("No TARGET was given.", "Name a script: `pindiag run train.py --sweep`.")
    return words[0], list(words[1:])


def _refuse_others(context: click.Context, mode: str, taken: set[str]) -> None:
    """What a run is asked is in its run.json: beside --resume and its like there is only what concerns its report."""
    given = [
        option
        for option in context.command.params
        if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    ]
    others = [option for option in given if option.name not in taken]
    if others:
        name = "TARGET" if isinstance(others[0], click.Argument) else others[0].opts[-1]
        raise UsageError(f"{name} cannot be given with {mode}: it goes by what RUN_DIR was asked for.", "Leave it out.")

"""Defaults of a command's options from `[tool.pindiag]` in pyproject.toml and from PINDIAG_ variables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pindiag.errors import SettingsError

_PREFIX = "PINDIAG_"
_OTHER_VARIABLES = frozenset(("PINDIAG_DEBUG", "PINDIAG_COLOR"))
_NEAR = 0.8
"""Likeness from which a variable that nobody knows is taken for a misspelt one; others may be somebody else's."""
_EPILOG = """
Every option has a default elsewhere, too: the table [tool.pindiag] of the nearest pyproject.toml that has one
(budget = "2m", no-verify = true) and the environment (PINDIAG_BUDGET=2m, PINDIAG_NO_VERIFY=1). The command line wins
over the environment, which wins over the file. What is misspelt there is refused.
"""


class Configurable(click.Command):
    """A command whose options may be set in a file and in the environment."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"epilog": _EPILOG, **options})
        for name, option in _settable(self).items():
            option.envvar = _PREFIX + name.upper().replace("-", "_")

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the settings first, unless it is only asked what there is to be set."""
        own = args[: args.index("--")] if "--" in args else args
        if not extra.get("resilient_parsing") and not {"-h", "--help"} & set(own):
            options = _settable(self)
            refuse_misspelt(os.environ, [str(option.envvar) for option in options.values()])
            extra["default_map"] = from_file(Path.cwd(), options)
        return super().make_context(info_name, args, parent, **extra)


def _settable(command: click.Command) -> dict[str, click.Option]:
    """Options by their long name, without its dashes."""
    options = [one for one in command.params if isinstance(one, click.Option) and one.expose_value]
    return {max(option.opts, key=len).lstrip("-"): option for option in options}


def from_file(folder: Path, options: Mapping[str, click.Option]) -> dict[str, Any]:
    """Settings of the nearest pyproject.toml with a table [tool.pindiag], from a folder upwards; by parameter.

    Raises:
        SettingsError: the file cannot be read, or names something that is no option, or a value that it cannot take.
    """
    for place in (folder, *folder.parents):
        table = _table(place / "pyproject.toml")
        if table is not None:
            return dict(_setting(place / "pyproject.toml", key, value, options) for key, value in table.items())
    return {}


def _table(path: Path) -> Mapping[str, Any] | None:
    if not path.is_file():
        return None
    try:
        content = path.read_text(encoding="utf-8")
        # Reading TOML is slow where most files have no such table.
        table = _parsed(content).get("tool", {}).get("pindiag") if "pindiag" in content else None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}.", "Mend it, or run elsewhere.") from error
    if table is not None and not isinstance(table, Mapping):
        raise SettingsError(f"{path}: tool.pindiag is no table.", 'Write [tool.pindiag] and below it budget = "2m".')
    return table


def _parsed(content: str) -> dict[str, Any]:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    tables: dict[str, Any] = tomllib.loads(content)
    return tables


def _setting(path: Path, key: str, value: object, options: Mapping[str, click.Option]) -> tuple[str, object]:
    option = options.get(key.replace("_", "-"))
    if option is None:
        near = _nearest(key.replace("_", "-"), options, 0.5)
        hint = f"Did you mean {near}?" if near else "`pindiag run --help` lists what there is."
        raise SettingsError(f"{path}: [tool.pindiag] has no setting {key}.", hint)
    if option.is_flag:
        if not isinstance(value, bool):
            raise SettingsError(f"{path}: {key} is on or off.", f"Write {key} = true or {key} = false.")
        return str(option.name), value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise SettingsError(f"{path}: {key} takes a text or a number.", f"Write it as for --{key}, in quotes.")
    try:
        option.type.convert(str(value), option, None)
    except click.BadParameter as error:
        raise SettingsError(f"{path}: {key}: {error.message}", "`pindiag run --help` says what it takes.") from error
    return str(option.name), str(value)


def refuse_misspelt(environment: Iterable[str], known: Sequence[str]) -> None:
    """Refuse PINDIAG_ variables that set nothing and look like one that does.

    Raises:
        SettingsError: there is one.
    """
    others = {name for name in environment if name.startswith(_PREFIX)} - _OTHER_VARIABLES - set(known)
    for name in sorted(others):
        near = _nearest(name, known, _NEAR)
        if near is not None:
            raise SettingsError(f"The environment variable {name} sets nothing.", f"Did you mean {near}?")


def _nearest(name: str, known: Iterable[str], cutoff: float) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)

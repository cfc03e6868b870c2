"""Pure text -> text: take names, addresses, secrets and absolute paths out of what a report shows."""

from __future__ import annotations

import dataclasses
import functools
import getpass
import json
import os
import re
import socket
import urllib.parse
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypedDict

MASK = "<redacted>"

_MOST_PASSES = 8
_SHORTEST_SECRET = 6
"""Of what is taken out wherever it stands: a shorter one is part of words that have nothing to do with it."""

_SECRET_WORD = (
    r"(?:token|key|secret|passw(?:or)?d|passphrase|credential"
    r"|(?<![a-z0-9])(?:auth|pass|pwd|cookie|dsn|webhook)(?![a-z0-9]))"
)
_NAME = rf"[\w-]*{_SECRET_WORD}[\w-]*"
_DOTTED = rf"(?i)(?:--?)?(?:[\w-]+\.)*{_NAME}"
_OPTION = re.compile(
    # After the name a sign, a space, or what stands between two arguments in a printed list.
    rf"(?i)(?<![\w-])(--?{_NAME})(=|\s+|[\"'],\s*(?=[\"']))(\"[^\"]*\"|'[^']*'|[^\s\"',;)\]]+)"
)
_QUOTED = re.compile(rf"(?i)(?<![\w-])({_NAME}[\"']?\s*[=:]\s*)([\"'])(?!\2)(.*?)\2")
_ENVIRONMENT = re.compile(
    r"(?<![\w-])([A-Z0-9_]*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)[A-Z0-9_]*=)([^\s\"',;)\]]+)"
)
_ASSIGNED = re.compile(
    # Code such as `token=tokenizer(x)`, `max_tokens=512` or `sorted(x, key=len)` is not a secret.
    r"(?i)(?<![\w.-])(\w*(?:token|secret|passw(?:or)?d|passphrase|credential|api_?key|[a-z0-9]_key)\w*=)"
    r"(?!(?:\d{1,5}|true|false|none)\b)([^\s\"',;()\]<]+)(?![\w(\[.])"
)
_LOGGED = re.compile(
    # "api key: 9f3c..." in a log; an annotation such as `token: str` holds no digit, a count nothing else.
    r"(?i)(?<![\w.-])(\w*(?:token|secret|passw(?:or)?d|passphrase|credential|api[_ ]?key)\w*\s*:\s*)"
    r"(?=[^\s\"',;()\[\]<]*\d)(?![\d.,\u202f]+(?!\w))([^\s\"',;()\[\]<]{6,})"
)
_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bhf_[A-Za-z0-9]{20,}|\bsk-[A-Za-z0-9_-]{16,}|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bAIza[0-9A-Za-z_-]{30,}"
    r"|\b[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{16,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*",
    re.DOTALL,
)
_BEARER = re.compile(r"(?i)\b(bearer\s+|basic\s+)(?=[\w+/=.~-]*[\d+/=])[\w+/=.~-]{8,}")
_URL_LOGIN = re.compile(r"(?<!\w)(\w{1,20}://)[^\s/@]+@")
_URL_QUERY = re.compile(rf"(?i)([?&](?:sig|signature|x-\w+-signature|{_NAME})=)[^\s&\"'<>]+")
_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = re.compile(
    rf"(?<![\w.])(?!127\.|0\.0\.0\.0)(?:{_BYTE}\.){{3}}{_BYTE}(?![\w]|\.\d)"
    # Names of machines in clouds are addresses.
    rf"|(?<![\w-])ip-{_BYTE}(?:-{_BYTE}){{3}}(?:\.[\w-]+)*"
)
_MAC = re.compile(r"(?i)(?<![\w:-])[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}(?![\w:-])")
_IPV6 = re.compile(
    # Only what starts like an address in use: `c10::add` in C++ is hexadecimal, too.
    r"(?i)(?<![\w:.])(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89ab][0-9a-f])(?::[0-9a-f]{0,4}){2,7}(?![\w:])"
)
_MAIL = re.compile(
    # Only what ends like mail does: `x@w.mT` multiplies matrices.
    r"(?i)(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,6}(?:com|org|net|edu|gov|io|dev|ai|eu|uk|de|fr|ch|cn|jp)\b"
)
_FOREIGN_HOME = re.compile(r"(?<![\w.~…])(?:/home|/Users|[A-Za-z]:[\\/]Users)[\\/][^\\/\s\"':,;)\]]+")
_QUOTED_PATH = re.compile(r"(?<=([\"']))/(?:[^/\"'<>\n]+/)+[^/\"'<>\n]*(?=\1)")
"""A path between quotes, in which there may be spaces."""
_PATH = re.compile(r"(?<!\w)\w{1,20}://\S+|(?<![\w.~…<>/\\-])/(?:[^\s/\"'<>:,;()\[\]]+/)+[^\s/\"'<>:,;()\[\]]*")
_SYSTEM = ("/usr/", "/lib/", "/lib64/", "/proc/", "/sys/", "/dev/", "/etc/")
"""Folders that tell nothing about who ran it."""
_PACKAGES = ("/site-packages/", "/dist-packages/")
_COMMON_NAMES = frozenset(
    ["root", "user", "users", "admin", "localhost", "python", "train", "torch", "pindiag", "cuda", "gpu", "data"]
)
"""Names that identify nobody and are words of every report."""

_FOLDERS_OF_SHELLS = ("PWD", "OLDPWD")
"""Every shell sets them: folders, no passwords; what lies below the working directory is told by its relative path."""


@dataclasses.dataclass(frozen=True)
class Redactor:
    """Takes out what tells who ran something, and where.

    Applying it twice gives the same as once.

    Args:
        home: home directory; becomes `~`.
        user: login name; becomes `<user>`.
        host: host name, with or without domain; becomes `<host>`.
        cwd: paths below it become relative to it.
        secrets: values that must not appear, wherever they stand.
        paths: False leaves names, addresses and paths alone and takes out secrets only.
    """

    home: str = ""
    user: str = ""
    host: str = ""
    cwd: str = ""
    secrets: tuple[str, ...] = ()
    paths: bool = True
    ours: bool = False
    """The text is a sentence of pindiag's: a name that is a plain word goes only where it stands as a name."""

    @classmethod
    def here(cls, cwd: str, args: Sequence[str] = (), *, paths: bool = True) -> Redactor:
        """A redactor for this machine, user and environment, and for the target's working directory and arguments."""
        environment = [f"{name}={value}" for name, value in os.environ.items() if name not in _FOLDERS_OF_SHELLS]
        secrets = {*secret_values(args), *secret_values(environment)}
        return cls(**whoami(), cwd=cwd, secrets=_longest_first(secrets), paths=paths)

    def __call__(self, text: str) -> str:
        """The text without secrets, names, addresses and absolute paths."""
        for _ in range(_MOST_PASSES):
            # What one replacement leaves beside it can be what the next one looks for.
            shown = self._once(text)
            if shown == text:
                break
            text = shown
        return text

    def _once(self, text: str) -> str:
        text = self._without_secrets(text)
        return self._without_places(text) if self.paths else text

    def _without_secrets(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        text = _SHAPES.sub(MASK, text)
        text = _BEARER.sub(rf"\g<1>{MASK}", text)
        text = _URL_LOGIN.sub(rf"\g<1>{MASK}@", text)
        text = _URL_QUERY.sub(rf"\g<1>{MASK}", text)
        text = _OPTION.sub(rf"\g<1>\g<2>{MASK}", text)
        text = _QUOTED.sub(rf"\g<1>\g<2>{MASK}\g<2>", text)
        text = _ENVIRONMENT.sub(rf"\g<1>{MASK}", text)
        text = _LOGGED.sub(rf"\g<1>{MASK}", text)
        return _ASSIGNED.sub(rf"\g<1>{MASK}", text)

    def _without_places(self, text: str) -> str:
        for folder, pattern, below, alone in self._folders:
            if folder in text:
                text = pattern.sub(_replacing(below, alone), text)
        text = _FOREIGN_HOME.sub("~", text)
        text = _QUOTED_PATH.sub(_shortened, text)
        text = _PATH.sub(_shortened, text)
        text = _MAIL.sub("<address>", text)
        for pattern, mask in self._names:
            text = pattern.sub(mask, text)
        text = _MAC.sub("<address>", text)
        text = _IPV6.sub("<address>", text)
        return _IPV4.sub("<address>", text)

    @functools.cached_property
    def _folders(self) -> list[tuple[str, re.Pattern[str], str, str]]:
        """Longest first, so that a working directory below home becomes relative."""
        found = [(self.cwd.rstrip("/\\"), "", "."), (self.home.rstrip("/\\"), "~/", "~")]
        return [
            (
                folder,
                re.compile(rf"(?<![\w.~…/-]){re.escape(folder)}(?:([/\\])(?=[^\s\"'])|(?![\w-]|\.\w))"),
                below,
                alone,
            )
            for folder, below, alone in sorted(found, key=lambda one: -len(one[0]))
            if folder
        ]

    @functools.cached_property
    def _names(self) -> list[tuple[re.Pattern[str], str]]:
        short = self.host.partition(".")[0]
        named = [(self.host, "<host>"), (short, "<host>"), (self.user, "<user>")]
        return [
            (_as_a_name(name) if self.ours and name.isalpha() else _anywhere(name), mask)
            for name, mask in named
            if len(name) > 1 and name.lower() not in _COMMON_NAMES
        ]


def _anywhere(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9<]){re.escape(name)}(?![A-Za-z0-9>])")


def _as_a_name(name: str) -> re.Pattern[str]:
    """Beside an @, before a port or a domain, behind a slash, as a value: there a plain word is a name."""
    word = re.escape(name)
    return re.compile(
        rf"(?<=[@/\\=~]){word}(?![A-Za-z0-9>])|(?<![A-Za-z0-9<]){word}(?=@|:\d|\.[A-Za-z0-9-]+\.[A-Za-z]|\.local\b)"
    )


def _replacing(below: str, alone: str) -> Callable[[re.Match[str]], str]:
    return lambda match: below if match[1] else alone


class Person(TypedDict):
    """Home directory, login name and host name of somebody; "" where one is not known."""

    home: str
    user: str
    host: str


def whoami() -> Person:
    """Whoever runs this."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = ""
    home = os.path.expanduser("~")
    return {"home": home if home != "~" else "", "user": user, "host": socket.gethostname()}


def secret_values(args: Sequence[str]) -> tuple[str, ...]:
    """Values of arguments whose option or name speaks of a token, key, secret or password, as they may be written."""
    long = {args[index][start:] for index, start in _secrets_in(args) if len(args[index]) - start >= _SHORTEST_SECRET}
    return _longest_first({spelling for value in long for spelling in _spellings(value)})


def hide_arguments(args: Sequence[str]) -> list[str]:
    """Arguments without the values of such options, however short these are."""
    hidden = list(args)
    for index, start in _secrets_in(args):
        hidden[index] = args[index][:start] + MASK
    return hidden


def _secrets_in(args: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Which arguments hold a secret, and where in them it begins."""
    for index, arg in enumerate(args):
        name, equals, _ = arg.partition("=")
        if not re.fullmatch(_DOTTED, name):
            continue
        if equals:
            yield index, len(name) + 1
        elif name.startswith("-") and index + 1 < len(args) and not args[index + 1].startswith("--"):
            yield index + 1, 0


def _spellings(secret: str) -> set[str]:
    """A secret as it is, as Python and JSON print it, and as it stands in an address."""
    return {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], urllib.parse.quote(secret, safe="")}


def _longest_first(secrets: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(secrets, key=lambda secret: (-len(secret), secret)))


def _shortened(match: re.Match[str]) -> str:
    path = match[0]
    if "://" in path or path.startswith(_SYSTEM):
        return path
    for packages in _PACKAGES:
        if packages in path:
            return "…" + path[path.index(packages) :]
    return "…/" + path.rstrip("/").rpartition("/")[2]

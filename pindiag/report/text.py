"""Text of others (names, messages, tracebacks) made fit for a page, and figures made into links."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

from pindiag import figures
from pindiag.model import Report, Scalar
from pindiag.report import about, names

LONGEST_BYTES = 4096
_HEAD_BYTES = 1024
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: "␡"}
_DIRECTIONS = {
    code: f"⟨U+{code:04X}⟩" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x61C)
}
_OTHERS = {code: f"⟨U+{code:04X}⟩" for code in (*range(0x80, 0xA0), 0x2028, 0x2029, 0xFEFF, *range(0xFFF9, 0xFFFC))}
_VISIBLE = {**_PICTURES, **_DIRECTIONS, **_OTHERS}
_CODE = re.compile(r"(`[^`\n]+`)")
_ACRONYM = re.compile(r"\b(?:cpus?|gpus?|cuda|nvml|numa|pcie)\b")
_FIGURE = r"\d[\d\u202f]*\.\d\d ×(?: faster)?|\d[\d\u202f]*(?:\.\d+)?(?= samples/s|[;,.]|$| )"
_INTERVAL = re.compile(r"\d[\d\u202f]*\.\d\d–\d[\d\u202f]*\.\d\d")
_PLACE = re.compile(r"[\w./~…-]+\.py:\d+")
_BLOCKS = r"\b(?:blocks?|against) \d+(?:, \d+)*"
_SHORT_CODE = 30
_MOST_BLOCKS = 4
"""Blocks of one trial that are named; above it their number leads to them."""


def clean(value: object) -> object:
    """What a template may print: control characters visible, at most 4 kB."""
    if isinstance(value, Markup) or not isinstance(value, str) or _is_plain(value):
        return value
    raw = value.encode("utf-8", "replace")
    if len(raw) > LONGEST_BYTES:
        head = raw[:_HEAD_BYTES].decode("utf-8", "ignore")
        tail = raw[len(raw) - (LONGEST_BYTES - _HEAD_BYTES) :].decode("utf-8", "ignore")
        value = f"{head}\n… cut, {len(raw) - LONGEST_BYTES} bytes …\n{tail}"
    return value.translate(_VISIBLE).encode("utf-8", "replace").decode()


def _is_plain(text: str) -> bool:
    """Nearly all texts of a page are, and there are tens of thousands."""
    return len(text) <= LONGEST_BYTES and text.isascii() and text.isprintable()


def record(text: str, trial: str, blocks: str = "") -> Markup:
    """A figure as a link to the blocks that it comes from."""
    title = f' title="{escape(blocks)}"' if blocks else ""
    return Markup(f'<a class="rec" href="#rec-{escape(trial)}"{title}>{escape(text)}</a>')


class Linker:
    """Knows which trial a figure in a sentence belongs to."""

    def __init__(self, report: Report) -> None:
        self._trials = {trial.id: trial for trial in report.trials}
        self._trial_of = {block.id: block.trial for block in report.blocks}
        self._by_text = dict(self._texts(report))
        ids = sorted(self._trials, key=len, reverse=True)
        named = "|".join(rf"(?<![\w-]){re.escape(one)}(?![\w-])" for one in ids)
        self._in_sentence = re.compile("|".join(filter(None, (named, _PLACE.pattern, _INTERVAL.pattern, _FIGURE))))
        self._labels = names.labels(report.trials)
        self._named = re.compile(named or r"(?!)")
        self._in_source = re.compile(f"{_BLOCKS}|{named}" if named else _BLOCKS)

    @staticmethod
    def _texts(report: Report) -> list[tuple[str, str]]:
        """Rates and ratios as they are written; what comes first and the script as written win over others."""
        chosen, verified = report.recommendation.trial if report.recommendation else None, about.verified(report)
        last = {report.baseline: 1, chosen: 2, about.leading(report): 3}
        found = _of_perfect_copies(report)
        for trial in sorted(report.trials, key=lambda one: last.get(one.id, 0)):
            if trial.samples_per_second is not None:
                found.append((figures.significant(trial.samples_per_second.median), trial.id))
            if trial.versus_baseline is not None and trial.id != report.baseline:
                found.append((figures.ratio(trial.versus_baseline.ratio), trial.id))
        if report.verification is not None and verified is not None:
            found.append((figures.ratio(report.verification.ratio), verified))
        return found

    def blocks(self, trial: str) -> str:
        """The blocks behind a trial's figures, for a link's title."""
        numbers = self._trials[trial].blocks if trial in self._trials else []
        return f"blocks {', '.join(map(str, numbers))}" if numbers else ""

    def label(self, trial: str) -> str:
        """A trial as a sentence names it: its words, told apart from the sentence around it."""
        return f"“{self._labels[trial]}”"

    def named(self, text: str) -> str:
        """A text in which trials are named by their words."""
        return self._named.sub(lambda match: self.label(match[0]), text)

    def sentence(self, text: str) -> Markup:
        """A sentence with code in backticks set as code, gains in the accent, and figures linked to their records."""
        parts = _CODE.split(str(clean(text)))
        return Markup("").join(
            _code(part[1:-1]) if index % 2 else self._figures(part) for index, part in enumerate(parts)
        )

    def source(self, text: str) -> Markup:
        """A source with its trials and blocks linked."""
        linked, at = Markup(""), 0
        text = str(clean(text))
        for match in self._in_source.finditer(text):
            linked += escape(text[at : match.start()]) + self._place(match[0])
            at = match.end()
        return linked + escape(text[at:])

    def _figures(self, text: str) -> Markup:
        linked, at = Markup(""), 0
        for match in self._in_sentence.finditer(text):
            linked += escape(text[at : match.start()]) + self._figure(match)
            at = match.end()
        return linked + escape(text[at:])

    def _figure(self, match: re.Match[str]) -> Markup:
        written = match[0]
        if written in self._trials:
            return record(self.label(written), written, self.blocks(written))
        if _PLACE.fullmatch(written):
            return Markup("<code>{}</code>").format(written)
        if _INTERVAL.fullmatch(written):
            return Markup('<span class="nowrap">{}</span>').format(written)
        trial = self._by_text.get(written.removesuffix(" faster"))
        linked = escape(written) if trial is None else record(written, trial, self.blocks(trial))
        return Markup("<strong>{}</strong>").format(linked) if written.endswith("faster") else linked

    def _place(self, written: str) -> Markup:
        if written in self._trials:
            return record(written, written, self.blocks(written))
        word, _, numbers = written.partition(" ")
        listed = numbers.split(", ")
        trials = {self._trial_of.get(int(number)) for number in listed}
        trial = trials.pop() if len(trials) == 1 else None
        if trial is not None and len(listed) > _MOST_BLOCKS:
            many = record(f"{len(listed)} blocks", trial, f"blocks {numbers}")
            return Markup("against {}").format(many) if word == "against" else many
        return Markup("{} {}").format(word, Markup(", ").join(self._block(number) for number in listed))

    def _block(self, number: str) -> Markup:
        if int(number) not in self._trial_of:
            return escape(number)
        return Markup('<a class="rec" href="#block-{0}">{0}</a>').format(number)


def _code(text: str) -> Markup:
    """Code in a sentence; a short word of it stays on its line, which a hyphen would else end."""
    keep = Markup(' class="nowrap"') if " " not in text and len(text) <= _SHORT_CODE else ""
    return Markup("<code{}>{}</code>").format(keep, text)


def _of_perfect_copies(report: Report) -> list[tuple[str, str]]:
    """What the step alone is of a replayed host batch, by way of the script as written: they share no round."""
    gains = {trial.id: trial.versus_baseline.ratio for trial in report.trials if trial.versus_baseline}
    alone = report.ceilings.compute_only
    if alone not in gains:
        return []
    return [(figures.ratio(gains[alone] / gains[copy]), alone) for copy in report.ceilings.host_batch if copy in gains]


_BY_UNIT = {
    "samples/s": figures.rate,
    "ms": lambda value: f"{figures.milliseconds(value)} ms",
    "B": figures.byte_size,
    "bytes": figures.byte_size,
    "1": figures.share,
    "share": figures.share,
    "×": figures.ratio,
    "ratio": figures.ratio,
    "B/s": lambda value: f"{figures.byte_size(value)}/s",
    "1/s": lambda value: f"{figures.significant(value)}/s",
    "s": figures.duration,
    "p": figures.p_value,
    "": figures.significant,
}


def quantity(value: Scalar, unit: str | None) -> str:
    """A value with its unit, as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, str):
        return "" if value is None else value
    if unit in _BY_UNIT:
        return _BY_UNIT[unit](value)
    number = figures.count(value) if isinstance(value, int) else figures.significant(value)
    return number if unit is None else f"{number} {unit}"


_UNITS = {"_bytes": "B", "_share": "1", "_quota": "CPUs"}


def environment(values: Mapping[str, Scalar]) -> list[tuple[str, str | None, str]]:
    """The environment as a table: words, value (None: not measured), key."""
    rows = []
    for key, value in values.items():
        unit = next((unit for ending, unit in _UNITS.items() if key.endswith(ending)), None)
        plain = re.sub("^shm", "/dev/shm", key.removesuffix("_bytes").removesuffix("_share")).replace("_", " ")
        words = _ACRONYM.sub(lambda match: match[0].upper(), plain)
        words = (
            words.replace("CPUS", "CPUs").replace("GPUS", "GPUs").replace("PCIE", "PCIe").replace("python", "Python")
        )
        rows.append((words, None if value is None else quantity(value, unit), key))
    return rows

"""From a matplotlib figure to SVG that a page's policy and its dark mode can live with."""

from __future__ import annotations

import dataclasses
import io
import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol

import matplotlib
from markupsafe import Markup, escape
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pindiag.model import Estimate, Trial

# matplotlib draws in these stand-in colours; CSS variables take their place, so that dark mode is CSS alone.
INK, MUTED, LINE, ACCENT, BAR, SOFT, BG = (f"#0{index}0{index}0{index}" for index in range(1, 8))
_VARIABLES = {INK: "ink", MUTED: "muted", LINE: "line", ACCENT: "accent", BAR: "bar", SOFT: "soft", BG: "bg"}
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pindiag",
    "text.parse_math": False,
    "axes.formatter.use_mathtext": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "text.color": INK,
    "font.family": ["DejaVu Sans"],
    "font.size": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.edgecolor": BAR,
    "axes.axisbelow": True,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 11,
    "grid.color": LINE,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "xtick.major.pad": 6,
    "ytick.major.pad": 6,
}
_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_CLUTTER = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_IDS = re.compile(r'(\bid="|href="#|url\(#)')
_PATH = re.compile(r'(?<= d=")[^"]+')
_FINER = re.compile(r"(?<=\.\d\d)\d+")
"""Digits of a coordinate below a hundredth of a pixel: nobody sees them, and they are half of a file."""
_FONT = re.compile(r"(?:(?P<weight>bold|[1-9]00) )?(?P<size>[\d.]+)px\b")
_TO = "to:"
_LINK = re.compile(rf'<a xlink:href="{_TO}([^"]*)"[^>]*>(.*?)</a>', re.DOTALL)
WIDE_WIDTH, NARROW_WIDTH = 1060, 340
AXIS_HEIGHT = 26
GAP = 0.5
WILD = 1.5
"""An interval that ends above the highest median by more than this ratio is cut there."""


class Labelled(Protocol):
    """What stands in a row of a chart."""

    @property
    def label(self) -> str:
        """Its words."""

    @property
    def colour(self) -> str:
        """Of its words and marks."""

    @property
    def weight(self) -> str:
        """Of its words."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A trial as charts and tables show it."""

    trial: Trial
    label: str
    role: Literal["chosen", "baseline", "other"]
    ratios: tuple[float, ...] = ()
    """Throughput over the baseline's, round by round."""
    at_most: float | None = None
    """What it could have brought over the baseline, where it was not run."""

    @property
    def colour(self) -> str:
        """Accent for what the verdict speaks of, ink for all else."""
        return ACCENT if self.role == "chosen" else INK

    @property
    def weight(self) -> str:
        """The accent never stands alone: what has it is bold as well."""
        return "bold" if self.role == "chosen" else "normal"


@dataclasses.dataclass(frozen=True)
class Chart:
    """A drawn chart: SVG, the conclusion it shows, and a word on how to read it."""

    svg: Markup
    title: str
    caption: str = ""


def draw(slug: str, title: str, description: str, drawing: Callable[[bool], Figure]) -> Markup:
    """Both drawings of a chart, the narrow one first; CSS shows one of them.

    Args:
        slug: prefix of all ids.
        title: the conclusion.
        description: the numbers, or where they stand.
        drawing: makes the figure; its argument says whether the narrow one is wanted.
    """
    with matplotlib.rc_context(_STYLE):
        drawn = [
            _inline(drawing(narrow), slug, "narrow" if narrow else "wide", title, description)
            for narrow in (True, False)
        ]
    return Markup("\n").join(drawn)


def canvas(width: float, height: float) -> Figure:
    """A figure in CSS pixels."""
    return Figure(figsize=(width / 72, height / 72))


def rows_axes(
    rows: Sequence[Labelled], *, width: float, row: float, left: float, right: float, gap_before: int | None = None
) -> tuple[Figure, Axes, list[float]]:
    """Axes with a row for each trial: its label beside it where `left` leaves room, above it otherwise (phones).

    Args:
        rows: from the top.
        width: of the drawing, as `row` (the height of one), `left` and `right` (margins) in CSS pixels.
        row: see `width`.
        left: see `width`.
        right: see `width`.
        gap_before: the row that half a row's distance sets apart from those above it.

    Returns:
        The figure, its axes, and where each row's mark stands on its y axis.
    """
    apart = len(rows) if gap_before is None else gap_before
    middles = [-index - (GAP if index >= apart else 0.0) for index in range(len(rows))]
    height = (1 - middles[-1]) * row + AXIS_HEIGHT
    figure = canvas(width, height)
    ax = figure.add_axes((left / width, AXIS_HEIGHT / height, 1 - (left + right) / width, 1 - AXIS_HEIGHT / height))
    ax.set(ylim=(middles[-1] - 0.5, 0.5), yticks=[])
    at, align = ((-10.0, 0.0), "right") if left else ((0.0, 0.26 * row), "left")
    for middle, one in zip(middles, rows, strict=True):
        ax.annotate(
            one.label,
            (0, middle),
            xycoords=("axes fraction", "data"),
            xytext=at,
            textcoords="offset pixels",
            ha=align,
            va="center_baseline",
            size=13 if left else 12,
            color=one.colour,
            weight=one.weight,
        )
    return figure, ax, [middle if left else middle - 0.18 for middle in middles]


def label_width(rows: Sequence[Labelled]) -> float:
    """Room for the longest label beside its row, bold and in a wide font."""
    return 18 + max(len(row.label) * (7.7 if row.weight == "bold" else 7.0) for row in rows)


def finish_x(ax: Axes, limits: tuple[float, float], ticks: Sequence[float], texts: Sequence[str]) -> None:
    """Set the x axis of a chart of rows: ticks, texts, hairlines, no frame."""
    ax.set(xlim=limits)
    ax.set_xticks(list(ticks), list(texts))
    ax.minorticks_off()
    ax.grid(axis="x")
    ax.spines["bottom"].set_visible(False)


def interval_line(ax: Axes, bounds: tuple[float, float], y: float, colour: str = INK) -> None:
    """A thin line with a halo: the 95 % interval over the end of a bar."""
    for shade, thickness in ((BG, 4.0), (colour, 1.5)):
        ax.plot(bounds, (y, y), color=shade, linewidth=thickness, solid_capstyle="butt")


def leads(artists: Artist | Iterable[Artist], anchor: str) -> None:
    """Make marks or words of a drawing a link to a place in the page; "" leaves them as they are."""
    for artist in [artists] if isinstance(artists, Artist) else artists:
        artist.set_url(address(anchor) if anchor else None)


def address(anchor: str) -> str:
    """A place in the page as matplotlib may hold it."""
    return f"{_TO}{anchor}"


def record_of(trial: str) -> str:
    """The place in the page where the blocks of a trial stand."""
    return f"rec-{trial}" if trial else ""


def reach(rates: Sequence[Estimate]) -> float:
    """How far an axis of samples/s goes: over all medians, and over intervals unless they would flatten the rest."""
    highest = max((rate.median for rate in rates), default=0.0)
    ends = [rate.ci95[1] for rate in rates if rate.ci95]
    return max(highest, min(max(ends, default=0.0), WILD * highest)) or 1.0


def nice_ticks(limit: float, count: int = 4, *, start: float = 0.0) -> list[float]:
    """Round numbers from `start` to at most `limit`, about `count` of them."""
    if not (math.isfinite(limit) and limit > start):
        return [start]
    rough = (limit - start) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.8)
    first = math.ceil(start / step - 1e-9)
    return [index * step for index in range(first, int(limit / step + 1e-9) + 1)]


def _inline(figure: Figure, slug: str, kind: str, title: str, description: str) -> Markup:
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # The browser has other fonts than matplotlib: a glyph that is missing here is no fault.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(buffer, format="svg", metadata=_METADATA)
    name = f"{slug}-{kind}"
    text = _IDS.sub(rf"\g<1>{name}-", _CLUTTER.sub("", buffer.getvalue()))
    text = _PATH.sub(lambda path: _FINER.sub("", path[0]), text)
    text, links = _LINK.subn(_link, text)
    text = re.sub(r'style="([^"]*)"', _attributes, text)
    found = re.search(r'<svg[^>]*viewBox="([^"]+)"[^>]*>(.*)</svg>', text, re.DOTALL)
    if found is None:
        raise ValueError("matplotlib wrote SVG of an unknown form")
    box, body = found.groups()
    body = re.sub(r"\s*\n\s*", "\n", body)
    # What a picture holds cannot be reached, so a drawing with links is a group.
    role = "group" if links else "img"
    return Markup(
        f'<svg class="{kind}" viewBox="{box}" role="{role}" aria-labelledby="{name}-t" aria-describedby="{name}-d">'
        f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>{body}</svg>'
    )


def _link(match: re.Match[str]) -> str:
    """Words are links for everybody; marks beside them lead to the same place and only for a pointer."""
    anchor, inside = match.groups()
    kind = 'class="rec"' if "<text" in inside else 'aria-hidden="true" tabindex="-1"'
    return f'<a {kind} href="#{anchor}">{inside}</a>'


def _attributes(match: re.Match[str]) -> str:
    """A style attribute as presentation attributes: the page's policy allows no inline style."""
    written = []
    for part in match[1].split(";"):
        key, colon, value = (piece.strip() for piece in part.partition(":"))
        if not colon or key == "font-family":
            continue
        if key == "font":
            found = _FONT.search(value)
            written += [f'font-{name}="{text}"' for name, text in (found.groupdict() if found else {}).items() if text]
            continue
        written.append(f'{key}="{f"var(--{_VARIABLES[value]})" if value in _VARIABLES else value}"')
    return " ".join(written)

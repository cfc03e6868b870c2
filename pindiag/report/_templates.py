"""Where templates are, and how they are filled in."""

from __future__ import annotations

import functools
from pathlib import Path

import jinja2

import pindiag
from pindiag.errors import TemplateMissing
from pindiag.report import text


def template_root() -> Path:
    """The folder of templates: inside the package (wheel) or beside it (checkout), nowhere else.

    Raises:
        TemplateMissing: there is none.
    """
    package = Path(pindiag.__file__).resolve().parent
    for folder in (package / "templates", package.parent / "templates"):
        if (folder / "report.html.j2").is_file():
            return folder
    raise TemplateMissing(
        f"The report's templates are neither in {package} nor beside it.", "Install pindiag again: pip install pindiag."
    )


@functools.cache
def environment(root: Path) -> jinja2.Environment:
    """Everything printed is cleaned first, then escaped; an undefined name is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(root),
        autoescape=lambda name: name is None or not name.endswith(".md.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=text.clean,
    )


def template(name: str) -> jinja2.Template:
    """A template by its file name.

    Raises:
        TemplateMissing: it is not where templates are.
    """
    root = template_root()
    try:
        return environment(root).get_template(name)
    except jinja2.TemplateNotFound as error:
        raise TemplateMissing(
            f"The template {error.name} is missing in {root}.", "Install pindiag again: pip install pindiag."
        ) from error


def asset(name: str) -> str:
    """A file beside the templates, as it is.

    Raises:
        TemplateMissing: it is not there.
    """
    path = template_root() / name
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TemplateMissing(f"{path} is missing.", "Install pindiag again: pip install pindiag.") from error

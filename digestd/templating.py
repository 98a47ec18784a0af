"""The template environment: where templates are found and what they may do. Floor 3; entry: ``build_environment``."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import jinja2

from digestd.errors import RenderError
from digestd.render.links import safe_url

TEXT_WIDTH = 72


class TranslatingTemplate(jinja2.Template):
    """A template whose errors are RenderErrors that name it."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        """Return the rendered text; RenderError if the template cannot use what it was given."""
        try:
            return super().render(*args, **kwargs)
        except jinja2.TemplateError as error:
            raise RenderError(error.message or type(error).__name__, template=self.name or "?") from error


class TranslatingEnvironment(jinja2.Environment):
    """An environment whose errors of loading and rendering are RenderErrors."""

    template_class = TranslatingTemplate

    def get_template(self, name: Any, *args: Any, **kwargs: Any) -> jinja2.Template:
        """Return a template; RenderError if there is none of this name or it cannot be compiled."""
        try:
            return super().get_template(name, *args, **kwargs)
        except jinja2.TemplateSyntaxError as error:
            where = f"line {error.lineno}: {error.message}"
            raise RenderError(where, template=error.name or str(name)) from error
        except jinja2.TemplateNotFound as error:
            raise RenderError("not found", template=str(error.name or name)) from error


def templates_folder() -> Path:
    """Return the folder of our own templates: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    candidates = (package / "templates", package.parent / "templates")
    for folder in candidates:
        if folder.is_dir():
            return folder
    tried = " and ".join(str(folder) for folder in candidates)
    raise RenderError(f"no folder of templates, looked at {tried}", template="templates/")


def build_environment(override: Path | None = None) -> jinja2.Environment:
    """Return the environment that all rendering uses.

    HTML and XML templates escape everything that is not marked safe; text templates nothing. A name that is not there
    is an error, never an empty string.

    Args:
        override: a folder whose templates go before ours; None for none.
    """
    folders = [templates_folder()] if override is None else [override, templates_folder()]
    environment = TranslatingEnvironment(
        loader=jinja2.ChoiceLoader([jinja2.FileSystemLoader(folder) for folder in folders]),
        autoescape=escapes,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters["safe_url"] = safe_url
    environment.filters["wrap"] = wrap
    return environment


def escapes(name: str | None) -> bool:
    """Return whether a template of this name escapes: all but ``*.txt.j2``, strings without a name too.

    jinja2's own select_autoescape looks at the last suffix and would find ``.j2`` everywhere.
    """
    return name is None or not name.removesuffix(".j2").endswith(".txt")


def wrap(text: object, indent: str = "", first: str | None = None) -> str:
    """Return text in lines of 72 columns; words and links are never broken.

    Args:
        text: white space is folded first.
        indent: before each line.
        first: before the first line, if other than ``indent``.
    """
    return textwrap.fill(
        str(text),
        TEXT_WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )

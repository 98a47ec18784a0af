"""config/digestd.toml is the settings' documentation: what it says of a key is what the code does."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from digestd.config import Settings, load_settings

CONFIG = Path(__file__).resolve().parents[2] / "config"
EXAMPLE = CONFIG / "digestd.toml"
UNITS = {
    "_s": "seconds",
    "_days": "days",
    "_bytes": "bytes",
    "_chars": "characters",
    "_papers": "papers",
    "_pages": "pages",
}


def model_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the section that a field holds, None for a plain value."""
    kinds = [field.annotation, *get_args(field.annotation)]
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def walk(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every key of a section and of those in it, dotted."""
    for name, field in model.model_fields.items():
        inner = model_of(field)
        if inner is None:
            yield prefix + name, field
        else:
            yield from walk(inner, f"{prefix}{name}.")


def read_example() -> dict[str, tuple[bool, str, str]]:
    """Return for each key of the file: whether it is in force, its value as written, the sentence above it."""
    found: dict[str, tuple[bool, str, str]] = {}
    section, sentence = "", ""
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"#?\[+([a-z.]+)\]+", line):
            section = match[1]
        elif match := re.fullmatch(r"(#?)([a-z_]+) = (.+)", line):
            found[f"{section}.{match[2]}"] = (not match[1], match[3], sentence)
        sentence = line.removeprefix("# ") if line.startswith("# ") else ""
    return found


def test_config_example_has_every_key() -> None:
    """Every key that can be set stands in the example, and no other."""
    assert sorted(key for key, _ in walk(Settings)) == sorted(read_example())


@pytest.mark.parametrize(
    ("key", "field"), list(walk(Settings)), ids=lambda value: value if isinstance(value, str) else ""
)
def test_config_example_says_what_a_key_does(key: str, field: FieldInfo) -> None:
    """The sentence above a key is its description, and the value in force is its default."""
    active, written, sentence = read_example()[key]
    value: Any = tomllib.loads(f"value = {written}")["value"]
    assert field.description == sentence
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    has_none = default in (None, PydanticUndefined, "", [])
    assert default == value or (has_none and not active)


@pytest.mark.parametrize(
    ("key", "field"), list(walk(Settings)), ids=lambda value: value if isinstance(value, str) else ""
)
def test_config_description_has_unit(key: str, field: FieldInfo) -> None:
    """A key whose name carries a unit names it in its sentence; every sentence ends as one."""
    description = field.description or ""
    assert description.endswith(".")
    for suffix, unit in UNITS.items():
        if key.endswith(suffix):
            assert unit in description.lower()


def test_config_example_loads_as_defaults() -> None:
    """The example as it comes changes nothing."""
    assert Settings() == load_settings(EXAMPLE)


def test_config_example_loads_with_all_keys(tmp_path: Path) -> None:
    """The example is valid with every key of it in force, one kind of source at a time."""
    text = re.sub(r"(?m)^#(?=[a-z\[])", "", EXAMPLE.read_text(encoding="utf-8"))
    file = tmp_path / "all.toml"
    file.write_text(re.sub(r'(?m)^path = "incoming"$', "", text), encoding="utf-8")
    settings = load_settings(file)
    assert [settings.topics[0].name] == [settings.sources[0].topic]
    assert settings.topics[0].match is not None


def test_config_minimal_loads() -> None:
    """The minimal configuration is valid, and its folder lies beside it."""
    settings = load_settings(CONFIG / "minimal.toml")
    assert [CONFIG / "incoming"] == [source.path for source in settings.sources]

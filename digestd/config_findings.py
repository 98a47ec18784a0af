"""What is wrong with settings, in lines for the operator. Floor 5.

Entry point: :func:`finding_lines`. No line ever holds the value of a secret, or of an unknown key, which may be one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails

Layer = tuple[str, Mapping[str, Any]]  #: (where it came from, nested values), in the order in which they are laid

_USERINFO = re.compile(r"(?<=//)[^/@\s]+(?=@)")

#: pydantic's error type -> what is expected, where its own sentence says it badly
_EXPECTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text in quotes",
    "tuple_type": "a list",
    "model_type": "a table",
    "path_type": "a path",
    "ip_any_network": "a network like '10.1.0.0/16'",
}


def finding_lines(error: ValidationError, root: type[BaseModel], layers: Sequence[Layer]) -> list[str]:
    """Return one line for each thing wrong: ``file: key: expected ..., found ...``.

    Args:
        error: what validation found.
        root: the model that was validated.
        layers: where values came from, a later one winning; by them a line names the file.
    """
    details = error.errors(include_url=False, include_context=False)
    return list(dict.fromkeys(_finding_line(detail, root, layers) for detail in details))


def _finding_line(detail: ErrorDetails, root: type[BaseModel], layers: Sequence[Layer]) -> str:
    """Return one finding as ``file: key: expected ..., found ...``."""
    loc = detail["loc"]
    model, secret = _model_at(loc, root)
    where = next(
        (name for n in range(len(loc), 0, -1) for name, values in reversed(layers) if _holds(values, loc[:n])), ""
    )
    key = "".join(f" no. {part + 1}" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")
    place = f"{where}: {key}" if where else key
    if detail["type"] == "extra_forbidden":
        return f"{place}: unknown key{nearest_key(str(loc[-1]), model.model_fields)}"
    if detail["type"] == "missing":
        return f"{place}: expected a value, found none"
    expected = _EXPECTED.get(detail["type"]) or detail["msg"].removeprefix("Value error, ").removeprefix(
        "Input should be "
    )
    line = f"{place}: expected {expected[:1].lower()}{expected[1:]}"
    if secret or not isinstance(detail["input"], (str, int, float)):
        return line
    return f"{line}, found {shown_value(detail['input'])}"


def _model_at(loc: Sequence[int | str], root: type[BaseModel]) -> tuple[type[BaseModel], bool]:
    """Return the model that holds the last key of a place, and whether its value is a secret."""
    model: type[BaseModel] = root
    secret = False
    for part in loc:
        if isinstance(part, str) and part in model.model_fields:
            kinds = tuple(_classes(model.model_fields[part].annotation))
            secret = SecretStr in kinds
            model = next((kind for kind in kinds if issubclass(kind, BaseModel)), model)
    return model, secret


def _classes(annotation: Any) -> Iterator[type]:
    """Yield the classes that an annotation is made of."""
    if isinstance(annotation, type):
        yield annotation
    for part in get_args(annotation):
        yield from _classes(part)


def _holds(values: Any, loc: Sequence[int | str]) -> bool:
    """Return whether nested values have something at a place."""
    for part in loc:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def nearest_key(word: str, known: Iterable[str]) -> str:
    """Return what to say of an unknown key: the nearest known one, or all."""
    names = list(known)
    near = difflib.get_close_matches(word.lower(), names, n=1)
    return f", nearest known: {near[0]}" if near else f", known: {', '.join(names)}"


def shown_value(value: object) -> str:
    """Return a value as an error shows it: short, and without the password of an address."""
    text = _USERINFO.sub("***", repr(value))
    return text if len(text) <= 80 else f"{text[:77]}..."

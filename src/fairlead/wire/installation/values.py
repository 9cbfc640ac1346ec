"""Values of an installation as an operator writes them: YAML, and `--set KEY=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec
import yaml
from msgspec.structs import fields

from fairlead.errors import UserError
from fairlead.model.installation import Installation, Parts
from fairlead.wire.files.bounded import load_yaml
from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.files.strict_yaml import load_strict_yaml, yaml_trouble

Values = dict[str, Any]

RENAMED: Final[Mapping[str, str]] = {}
"""Keys of earlier versions and their names now; no key has been renamed yet."""
_PAGE: Final = "docs/reference/installation-values.md lists all keys"


def read_values(text: str | bytes, source: str) -> Values:
    """The mapping of a file, not yet checked. `source`: its name, for messages.

    Raises UserError for text that is no YAML mapping, or that repeats a key.
    """
    try:
        found = load_strict_yaml(text)
    except yaml.YAMLError as error:
        raise UserError(f"values `{source}` are not YAML: {yaml_trouble(error)}", _PAGE) from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        what = f"values `{source}` are a {type(found).__name__} and not a mapping"
        raise UserError(what, "write lines like `image: registry.example.com/fairlead:0.1.0`")
    return found


def with_settings(values: Values, settings: Iterable[str]) -> Values:
    """The values with `KEY=VALUE` of each setting on top; a dot leads into a mapping.

    >>> with_settings({"parts": {"quota": False}}, ["parts.console=false", "replicas=3"])
    {'parts': {'quota': False, 'console': False}, 'replicas': 3}
    """
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not all(key.split(".")):
            raise UserError(f"--set `{setting}` is not KEY=VALUE", "write --set parts.quota=false")
        values = _with_value(values, key.split("."), _scalar(setting, text))
    return values


def parse_values(values: Values, renamed: Mapping[str, str] = RENAMED) -> Installation:
    """Raises UserError for unknown and renamed keys and for values of a wrong type."""
    _check_keys(values, renamed)
    try:
        chosen = msgspec.convert(values, Installation)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$.")
        key = path.rstrip("`")
        expected = what[:1].lower() + what[1:]
        raise UserError(f"value `{key}` is `{_at(values, key)}`: {expected}", _PAGE) from error
    _check_namespaces(chosen)
    _check_pull_secrets(chosen)
    _check_console(chosen)
    return chosen


def render_values(chosen: Installation) -> str:
    """The values that differ from the defaults, as YAML; "" if none does.

    >>> render_values(Installation(replicas=3))
    'replicas: 3\\n'
    """
    found = _differing(msgspec.to_builtins(chosen), msgspec.to_builtins(Installation()))
    return render_manifests([found]) if found else ""


def _check_namespaces(chosen: Installation) -> None:
    """Raises UserError for namespaces that an installation must not have to itself."""
    for key, name in (("namespace", chosen.namespace), ("nodeNamespace", chosen.node_namespace)):
        if name == "default" or name.startswith("kube-"):
            what = f"value `{key}` is `{name}`, a namespace of Kubernetes"
            raise UserError(
                what, "an installation labels its namespaces and deletes them at the end"
            )
    if chosen.namespace == chosen.node_namespace:
        what = f"values `namespace` and `nodeNamespace` are both `{chosen.namespace}`"
        raise UserError(what, "pods that use their node need a namespace of their own")


def _check_pull_secrets(chosen: Installation) -> None:
    """Raises UserError for a Secret that is named twice: the API server refuses such pods."""
    for each in chosen.pull_secrets:
        if chosen.pull_secrets.count(each) > 1:
            raise UserError(f"value `pullSecrets` names `{each}` twice", "name each Secret once")


def _check_console(chosen: Installation) -> None:
    """Raises UserError for values of the console that have no effect together."""
    if not chosen.sign_in.enabled and chosen.ingress.host:
        raise UserError(
            f"value `ingress.host` is `{chosen.ingress.host}`, and `signIn.enabled` is false",
            "without sign-in the console is not offered outside its pod: leave one of them out",
        )
    if chosen.store.url and chosen.store.size:
        raise UserError(
            "values `store.url` and `store.size` exclude each other",
            "the volume is for a SQLite file; leave one of them out",
        )


def part_key(part: str) -> str:
    """The key of a value that turns a part on, by the field of `Parts`.

    >>> part_key("node_agent")
    'parts.nodeAgent'
    """
    names = {each.name: each.encode_name for each in fields(Parts)}
    return f"parts.{names[part]}"


def merged(values: Values, more: Mapping[str, Any]) -> Values:
    """The values with others in their place, key by key.

    >>> merged({"store": {"url": "", "size": "1Gi"}}, {"store": {"size": ""}})
    {'store': {'url': '', 'size': ''}}
    """
    found = dict(values)
    for key, value in more.items():
        inner = found.get(key)
        if isinstance(inner, dict) and isinstance(value, Mapping):
            found[key] = merged(inner, value)
        else:
            found[key] = value
    return found


def _differing(values: Values, defaults: Values) -> Values:
    found = {}
    for key, value in values.items():
        if value != defaults[key]:
            nested = isinstance(value, dict)
            found[key] = _differing(value, defaults[key]) if nested else value
    return found


def _scalar(setting: str, text: str) -> Any:
    try:
        return load_yaml(text)
    except yaml.YAMLError as error:
        raise UserError(f"--set `{setting}`: {yaml_trouble(error)}", "quote the value") from error


def _with_value(values: Values, path: list[str], value: Any) -> Values:
    first, *rest = path
    if not rest:
        return {**values, first: value}
    inner = values.get(first, {})
    if not isinstance(inner, dict):
        raise UserError(f"value `{first}` is `{inner}` and has no key `{'.'.join(rest)}`", _PAGE)
    return {**values, first: _with_value(inner, rest, value)}


def _check_keys(values: Values, renamed: Mapping[str, str]) -> None:
    known = list(_keys(Installation))
    for key in _written(values, known):
        if key in renamed:
            raise UserError(f"value `{key}` has a new name", f"write `{renamed[key]}`")
        if key not in known:
            near = get_close_matches(key, known, 1)
            hint = f"did you mean `{near[0]}`? {_PAGE}" if near else _PAGE
            raise UserError(f"there is no value `{key}`", hint)


def _written(values: Values, known: Sequence[str], prefix: str = "") -> Iterator[str]:
    """The keys of the values; of a mapping of keys also the keys in it."""
    for name, value in values.items():
        key = f"{prefix}{name}"
        yield key
        if isinstance(value, dict) and any(each.startswith(f"{key}.") for each in known):
            yield from _written(value, known, f"{key}.")


def _keys(type_: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """
    >>> [each for each in _keys(Installation) if each.startswith("store")]
    ['store', 'store.url', 'store.size', 'store.storageClass']
    """
    for each in msgspec.structs.fields(type_):
        yield f"{prefix}{each.encode_name}"
        if isinstance(each.type, type) and issubclass(each.type, msgspec.Struct):
            yield from _keys(each.type, f"{prefix}{each.encode_name}.")


def _at(values: Any, key: str) -> Any:
    """The value of a key such as `parts.quota` or `pullSecrets[0]`."""
    for word in re.findall(r"[^.\[\]]+", key):
        if isinstance(values, list):
            values = values[int(word)]
        else:
            values = values.get(word) if isinstance(values, dict) else None
    return values

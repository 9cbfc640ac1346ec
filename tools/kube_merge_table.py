"""Writes `fairlead_sim/ownership/merge_table.py`: how lists and maps of built-in kinds merge.

Two sources in the module cache: the merge schema that `client-go` carries (which lists have keys,
which maps are atomic), and the Go types (which fields an empty object has). Run it after a change
of the pinned version: `.venv/bin/python tools/kube_merge_table.py`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import yaml

from kube_fields import Package, described_messages, module_folder, pinned_version, type_code
from toolchains import find_go

TARGET = (
    Path(__file__).resolve().parents[1] / "src" / "fairlead_sim" / "ownership" / "merge_table.py"
)
SCHEMA: Final = "k8s.io/client-go/applyconfigurations/internal"
EXTENSIONS: Final = {
    "apiextensions.CustomResourceDefinitionStatus": ['conditions=type:""'],
    "apiextensions.JSONSchemaProps": ['x-kubernetes-validations=rule:""'],
}
"""The lists with keys of the one package that the schema of `client-go` does not have."""
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
HEADER: Final = '''\
"""How fields of built-in kinds merge; written by tools/kube_merge_table.py from {version}.

`field_types.py` reads it. A line is a message and what is not usual of its fields; usual are atomic
lists, and maps and objects whose fields have owners of their own. `!` alone: the object is atomic.
`FIELD=KEY,KEY:DEFAULT`: a list whose items have these keys. `FIELD=*`: a set. `FIELD=!`: an atomic
map. `FIELD=granular`: not atomic, though its message is. `+FIELD`: an object that is never absent.
`+FIELD:VALUE`: a value of a field that is not set.
"""

from typing import Final

MERGE_RULES: Final = """\\
{lines}
"""
'''
_VALUES: Final = {"t": "null", "T": "null", "q": '"0"', "o": "0", "r": "null"}
"""What Go writes for a struct that is no message, whether it is to be omitted or not."""
_ZEROS: Final = {"s": '""', "i": "0", "l": "0", "d": "0", "b": "false"}


def main() -> None:
    TARGET.write_text(render(), encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes")


def render() -> str:
    """The whole file."""
    types = _merge_types()
    packages, messages = described_messages()
    lines = []
    for message, (group, name) in sorted(messages.items()):
        words = list(EXTENSIONS.get(message, ()))
        words += _merge_words(types.get(_type_name(group, name)), types)
        words += _zero_words(packages, packages[group], name)
        if words:
            lines.append(f"{message} {' '.join(words)}")
    return HEADER.format(version=pinned_version(), lines="\n".join(lines))


def _merge_types() -> dict[str, Any]:
    source = module_folder(str(find_go().program), SCHEMA) / "internal.go"
    found = re.search(r"YAMLObject\(`(.*?)`\)", source.read_text(encoding="utf-8"), re.S)
    assert found, f"{source} has no schema"
    return {each["name"]: each for each in yaml.load(found.group(1), yaml.CSafeLoader)["types"]}


def _type_name(group: str, name: str) -> str:
    """`core/v1` `Pod` → `io.k8s.api.core.v1.Pod`."""
    path, _, version = group.partition("/")
    if path == "meta":
        return f"{META}{name}"
    return f"io.k8s.api.{path.partition('.')[0]}.{version}.{name}"


def _merge_words(found: dict[str, Any] | None, types: dict[str, Any]) -> list[str]:
    shape = (found or {}).get("map") or {}
    words = ["!"] if shape.get("elementRelationship") == "atomic" else []
    for field in shape.get("fields") or ():
        kind, name = field["type"], field["name"]
        if "list" in kind and kind["list"]["elementRelationship"] == "associative":
            keys = kind["list"].get("keys")
            items = types.get(kind["list"]["elementType"].get("namedType", ""))
            words.append(f"{name}={_keys(keys, items) if keys else '*'}")
        elif "map" in kind and kind["map"].get("elementRelationship") == "atomic":
            words.append(f"{name}=!")
        elif kind.get("elementRelationship") == "separable":
            words.append(f"{name}=granular")
    return words


def _keys(keys: list[str], items: dict[str, Any] | None) -> str:
    """The keys, each with the default of its field, if it has one, as JSON."""
    fields = {each["name"]: each for each in ((items or {}).get("map") or {}).get("fields") or ()}
    return ",".join(
        f"{key}:{json.dumps(fields[key]['default'])}" if "default" in fields.get(key, ()) else key
        for key in keys
    )


def _zero_words(packages: dict[str, Package], package: Package, name: str) -> list[str]:
    """The fields that Go writes even if they are not set."""
    words = []
    for declaration, tag in package.structs[name]:
        json_tag = re.search(r'json:"([^"]*)"', tag)
        go_type = declaration.split(None, 1)[1].strip() if " " in declaration else declaration
        if not json_tag or 'protobuf:"' not in tag:
            continue
        field, _, options = json_tag.group(1).partition(",")
        if not field or "omitzero" in options:
            continue
        code, mentioned = type_code(packages, package, go_type.lstrip("*"))
        is_struct = bool(mentioned) and code[0] not in "*%" and not go_type.startswith("*")
        if is_struct:
            words.append(f"+{field}")
        elif code in _VALUES and not go_type.startswith("*"):
            words.append(f"+{field}:{_VALUES[code]}")
        elif "omitempty" not in options:
            words.append(f"+{field}:{'null' if go_type[0] in '*[m' else _ZEROS.get(code, 'null')}")
    return words


if __name__ == "__main__":
    main()

"""The chart and `fairlead install` have the same objects, for values drawn at random.

Helm renders all of them at once: each is a chart of its own within one that has nothing else.
"""

from __future__ import annotations

import json
import random
import re
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import Struct, inspect
from tests.kube.helm import HELMS, Helm, packed_chart
from tests.turns import in_turn

from fairlead import __version__
from fairlead.model.actions import object_ref
from fairlead.model.installed.chart_values import ChartValues
from fairlead.wire.installation.chart_parts import KEPT, chart_objects
from fairlead.wire.installation.components import installed_objects
from fairlead.wire.installation.release import release_ref

SYSTEM = "fairlead-system"
SPACES = (SYSTEM, "gpu-2", "123")
"""Namespaces of releases. Helm renders for one at a time."""
COUNT = 100
"""Values for each of them."""
LETTERS = "aZ09-_./:@%\\\"'`{}[]()<>&|#*!?$,;=~^+é中\u00a0🙂"
BLANKS = " \t\n"
SOURCE = re.compile(r"^---\n# Source: (\S+)\n", re.MULTILINE)
HOOKS = ("fairlead-doctor", "fairlead-upgrade", "fairlead-uninstall", "admin")
ONLY_HELMS = ("fairlead-release", *HOOKS)
"""Names of what a release has and an installation has not: its record and its hooks. The other way
round, Helm makes the release's namespace.
"""
RARE = {
    r"^/([-A-Za-z0-9._~]+/)*$": ("/", "/gpu/", "/a.b/~1/"),
    r"^([1-9][0-9]{0,5}(Mi|Gi|Ti))?$": ("", "1Gi", "999999Mi"),
    r"^(oci://[A-Za-z0-9][-A-Za-z0-9.]*(:[0-9]{1,5})?(/[-a-z0-9._]+)*)?$": (
        *("", "oci://r", "oci://R.example:5000/a-b/c._"),
    ),
}
"""Texts of patterns that letters drawn at random hardly ever make."""
Object = dict[str, Any]
Key = tuple[str, str, str, str]


def drawn(type_: type[Struct], chance: random.Random) -> dict[str, Any]:
    """Values of the type by its own constraints; texts with all that is hard to quote."""
    info = inspect.type_info(type_)
    assert isinstance(info, inspect.StructType)
    return {each.encode_name: _drawn(each.type, chance) for each in info.fields}


def _drawn(kind: inspect.Type, chance: random.Random) -> Any:
    match kind:
        case inspect.StructType():
            return drawn(kind.cls, chance)
        case inspect.BoolType():
            return chance.random() < 0.5
        case inspect.LiteralType():
            return chance.choice(sorted(kind.values))
        case inspect.IntType():
            assert kind.ge is not None and kind.le is not None
            return chance.randint(kind.ge, kind.le)
        case inspect.StrType():
            return _text(kind, chance)
        case inspect.VarTupleType():
            return sorted({_drawn(kind.item_type, chance) for _ in range(chance.randint(0, 3))})
    raise AssertionError(f"no values are drawn for {kind}")


def _text(kind: inspect.StrType, chance: random.Random) -> str:
    """A text that the pattern admits: of harder characters first, then of simpler ones."""
    if kind.pattern in RARE:
        text = chance.choice(RARE[kind.pattern])
        assert re.fullmatch(kind.pattern, text)
        return text
    for letters in (LETTERS + BLANKS, LETTERS, *["abc019-"] * 50, "abc"):
        text = "".join(chance.choices(letters, k=chance.randint(kind.min_length or 0, 12)))
        if kind.pattern is None or re.fullmatch(kind.pattern, text):
            return text
    raise AssertionError(f"no text is drawn for {kind.pattern}")


def key_of(obj: Object) -> Key:
    return object_ref(obj).identity


@cache
def _parsed(text: str) -> str:
    """A document as JSON; "" without an object. Most of them occur many times."""
    found = yaml.load(text, yaml.CSafeLoader)
    return json.dumps(found) if found else ""


def rendered(text: str) -> dict[str, list[Object]]:
    """The objects that Helm printed, by their chart's name."""
    found: dict[str, list[Object]] = {}
    words = SOURCE.split(text)
    for source, document in zip(words[1::2], words[2::2], strict=True):
        if parsed := _parsed(document):
            name = source.split("/charts/")[-1].partition("/")[0]
            found.setdefault(name, []).append(json.loads(parsed))
    return found


def by_key(objects: list[Object]) -> dict[Key, Object]:
    found = {key_of(each): each for each in objects}
    assert len(found) == len(objects), "an object occurs twice"
    return found


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Any]]]:
    """For each namespace a chart of charts, and the values of each by its name. They are new in
    every run.
    """
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    found = {}
    for space in SPACES:
        folder = tmp_path_factory.mktemp("many")
        values = {f"v{number}": _of_a_release(space, chance) for number in range(COUNT)}
        values["v0"] = {}
        _write_charts(folder, values)
        found[space] = (folder, values)
    return found


def _of_a_release(space: str, chance: random.Random) -> dict[str, Any]:
    """Drawn values, without the namespace, which is the release's."""
    while True:
        values = drawn(ChartValues, chance)
        del values["namespace"]
        nodes = values["nodeNamespace"]
        if nodes not in (space, "default") and not nodes.startswith("kube-"):
            return values


def _write_charts(folder: Path, values: dict[str, Any]) -> None:
    (folder / "charts").mkdir()
    packed_chart(folder / "charts")
    of_one = {"name": "fairlead", "version": __version__, "repository": ""}
    chart = {
        "apiVersion": "v2",
        "name": "many",
        "version": "0.1.0",
        "dependencies": [{**of_one, "alias": name} for name in values],
    }
    (folder / "Chart.yaml").write_text(json.dumps(chart), encoding="utf-8")
    text = json.dumps(values, ensure_ascii=False)
    (folder / "values.yaml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("name", "space"), in_turn([*product(HELMS, SPACES)], 6))
def test_the_chart_has_the_objects_of_the_installation(
    name: str, space: str, many: dict[str, tuple[Path, dict[str, Any]]], tmp_path: Path
) -> None:
    folder, written = many[space]
    found = rendered(Helm(name, tmp_path).run("template", "x", str(folder), "-n", space))
    assert found.keys() == written.keys()
    for alias, values in written.items():
        chosen = msgspec.convert({**values, "namespace": space}, ChartValues)
        objects = by_key(found[alias])
        record = objects.pop(release_ref(space).identity)
        assert objects == by_key(chart_objects(chosen)), chosen
        data = record["data"]
        assert (data["release"], data["version"]) == ("x", __version__)
        assert data["definitions"] == json.dumps(chosen.crds.enabled)
        kept = msgspec.json.decode(msgspec.json.encode(chosen))
        for key in ("crds", "usersNamespace", "uninstall"):
            kept.pop(key)
        assert json.loads(data["values"]) == kept
        _compare_with_installation(objects, chosen)


def _compare_with_installation(objects: dict[Key, Object], values: ChartValues) -> None:
    """The written list of what differs, and nothing else."""
    installed = by_key(installed_objects(values))
    del installed["", "Namespace", "", values.namespace]
    for key, each in list(objects.items()):
        if key[3] in ONLY_HELMS:
            del objects[key]
        elif each["metadata"].get("annotations", {}).get(KEPT[0]):
            assert each["kind"] == "PersistentVolumeClaim" or (
                each["kind"] in ("CustomResourceDefinition", "Namespace") and values.crds.keep
            )
            del each["metadata"]["annotations"][KEPT[0]]
            if not each["metadata"]["annotations"]:
                del each["metadata"]["annotations"]
    if not values.crds.enabled:
        installed = {
            key: each
            for key, each in installed.items()
            if each["kind"] != "CustomResourceDefinition"
        }
    if not values.users_namespace.create:
        installed.pop(("", "Namespace", "", "kube-ai"), None)
    assert objects == installed


def test_values_that_do_not_exist_or_do_not_fit_are_refused(tmp_path: Path) -> None:
    chart = packed_chart(tmp_path)
    rows = {
        "part.quota=false": "additional properties 'part' not allowed",
        "parts.quotas=false": "additional properties 'quotas' not allowed",
        "replicas=11": "maximum",
        "admission=policy": "must be one of",
        "parts.quota=perhaps": "got string, want boolean",
        "image=null": "image",
        "pullSecrets={a,B}": "does not match pattern",
        "pullSecrets={a,a}": "items at 0 and 1 are equal",
        "namespace=gpu": "additional properties 'namespace' not allowed",
        "nodeNamespace=kube-gpu": "nodeNamespace is a namespace of Kubernetes",
        f"nodeNamespace={SYSTEM}": "--namespace and nodeNamespace are the same",
    }
    for name in HELMS:
        helm = Helm(name, tmp_path)
        for setting, words in rows.items():
            answer = helm.refusal("template", "x", str(chart), "-n", SYSTEM, "--set", setting)
            assert words in answer, answer
        answer = helm.refusal("template", "x", str(chart))
        assert "--namespace is a namespace of Kubernetes: use --namespace fairlead-system" in answer
        answer = helm.refusal("template", "x", str(chart), "-n", SYSTEM, "--kube-version=1.35.2")
        assert "these values need Kubernetes 1.36 or later: --set admission=webhooks" in answer
        older = ("-n", SYSTEM, "--kube-version=1.31.9", "--set", "admission=webhooks")
        answer = helm.refusal("template", "x", str(chart), *older)
        assert "these values need Kubernetes 1.32 or later: --set parts.nodeAgent=false" in answer
        assert helm.run("template", "x", str(chart), *older, "--set", "parts.nodeAgent=false")
        answer = helm.refusal("template", "x", str(chart), "-n", SYSTEM, "--kube-version=1.29.9")
        assert "requires kubeVersion: >=1.30.0-0" in answer

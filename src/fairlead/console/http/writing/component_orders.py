"""What the page Components asks for, read from its orders: what is wrong with their fields, and the
command that does the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import yaml

from fairlead.console.http.writing.wanted_component import ComponentSource
from fairlead.console.pages.data.components import ComponentOrder
from fairlead.console.pages.envelope import FieldFault
from fairlead.errors import UserError
from fairlead.model.operations.component import (
    Backend,
    Component,
    ComponentGroup,
    ComponentValue,
)
from fairlead.model.operations.operation import OperationKind
from fairlead.rules.components.catalogue import COMPONENTS
from fairlead.rules.components.values import nested, value_faults
from fairlead.rules.components.versions import is_version
from fairlead.wire.components.manifests import parse_manifests
from fairlead.wire.files.strict_yaml import load_strict_yaml, yaml_trouble
from fairlead.wire.installation.values import merged, read_values

_KINDS: Final = (OperationKind.DEPLOY, OperationKind.UPGRADE, OperationKind.REMOVE)
_ADDRESSES: Final = ("oci://", "https://")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PLAIN: Final = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


def asked_source(
    order: ComponentOrder,
) -> tuple[OperationKind, ComponentSource, list[FieldFault]]:
    """The order as it is written, and what is wrong with its fields.

    >>> _, _, faults = asked_source(ComponentOrder("fluid", "burn", "/etc", "x", namespace="A b"))
    >>> [each.path for each in faults]
    ['do', 'chart', 'version', 'namespace']
    """
    faults: list[FieldFault] = []

    def fault(path: str, error: str) -> None:
        faults.append(FieldFault(path, path, error))

    do = next((each for each in _KINDS if each == order.do), None)
    if do is None:
        fault("do", f"`{order.do[:60]}` is not done with components: {', '.join(_KINDS)}")
    if order.chart and not order.chart.startswith(_ADDRESSES):
        what = f"the chart is `{order.chart[:100]}`; the console reads charts at oci:// or https://"
        fault("chart", what)
    if order.version and not is_version(order.version):
        fault("version", f"`{order.version[:60]}` is no version; write one like 1.0.8")
    if order.namespace and not _NAMESPACE.fullmatch(order.namespace):
        fault("namespace", f"`{order.namespace[:100]}` is no name of a namespace")
    values: dict[str, Any] = {}
    manifests = None
    try:
        values = read_values(order.values, "values")
    except UserError as error:
        fault("values", error.what)
    for name, why in _setting_faults(order):
        fault(f"settings.{name}", why)
    if not faults:
        values = merged(values, settings_of(order))
    try:
        if order.manifests.strip():
            manifests = tuple(parse_manifests(order.manifests, "manifests"))
    except UserError as error:
        fault("manifests", error.what)
    source = ComponentSource(
        chart=order.chart,
        version=order.version,
        place=order.namespace,
        values=values,
        manifests=manifests,
        deletes_definitions=order.delete_definitions,
    )
    return do or OperationKind.DEPLOY, source, faults


def settings_of(order: ComponentOrder) -> dict[str, Any]:
    """The settings as values of the chart. Raises UserError for the first that is no such value.

    >>> settings_of(ComponentOrder("fluid", settings={"csi.enabled": "false"}))
    {'csi': {'enabled': False}}
    """
    values: dict[str, Any] = {}
    for each in _known_values(order):
        text = order.settings.get(each.name, "").strip()
        if text:
            values = merged(values, nested(each.name, _parsed(each, text)))
    return values


def _setting_faults(order: ComponentOrder) -> Iterator[tuple[str, str]]:
    known = {each.name: each for each in _known_values(order)}
    for name, text in order.settings.items():
        if name not in known:
            yield name[:100], f"`{order.component[:60]}` has no value `{name[:100]}`"
        elif text.strip():
            try:
                _parsed(known[name], text.strip())
            except UserError as error:
                yield name, error.what


def _known_values(order: ComponentOrder) -> tuple[ComponentValue, ...]:
    found = COMPONENTS.get(order.component)
    return found.values if found is not None else ()


def _parsed(value: ComponentValue, text: str) -> Any:
    """Raises UserError for a text of another type."""
    if value.type == "text":
        return text
    try:
        found = load_strict_yaml(text)
    except yaml.YAMLError as error:
        raise UserError(f"it is not YAML: {yaml_trouble(error)}") from error
    component = Component(
        id="",
        group=ComponentGroup.WORKFLOW,
        title="",
        title_zh="",
        backend=Backend.HELM,
        values=(value,),
    )
    for fault, mend in value_faults(component, nested(value.name, found)):
        raise UserError(f"{fault}: {mend}")
    return found


def component_line(order: ComponentOrder) -> str:
    """The command that does the same. Values and manifests are files there.

    >>> component_line(ComponentOrder("fluid", chart="oci://h/fluid", values="a: 1"))
    'fairlead component deploy fluid --chart oci://h/fluid --values values.yaml'
    """
    words = ["fairlead", "component", order.do, order.component]
    if order.do == OperationKind.REMOVE:
        return " ".join([*words, *(["--delete-definitions"] if order.delete_definitions else [])])
    for flag, value in _flags(order, ""):
        words += [flag, value]
    return " ".join(map(_quoted, words))


def together_line(orders: Sequence[ComponentOrder]) -> str:
    """The command that deploys all of them.

    >>> together_line([ComponentOrder("fluid", chart="oci://h/fluid"), ComponentOrder("quota")])
    'fairlead component deploy fluid quota --chart fluid=oci://h/fluid'
    """
    if len(orders) == 1:
        return component_line(orders[0])
    words = ["fairlead", "component", "deploy", *(each.component for each in orders)]
    for each in orders:
        for flag, value in _flags(each, f"{each.component}-"):
            words += [flag, f"{each.component}={value}"]
    return " ".join(map(_quoted, words))


def _flags(order: ComponentOrder, prefix: str) -> list[tuple[str, str]]:
    """`prefix`: of the names of files."""
    flags = {
        "--chart": order.chart,
        "--version": order.version,
        "--manifests": f"{prefix}manifests.yaml" if order.manifests.strip() else "",
        "--in": order.namespace,
        "--values": f"{prefix}values.yaml" if order.values.strip() else "",
    }
    found = [(flag, value) for flag, value in flags.items() if value]
    for each in _known_values(order):
        text = order.settings.get(each.name, "").strip()
        if text:
            shown = text if each.type == "text" else json.dumps(_parsed(each, text))
            found.append(("--set", f"{each.name}={shown}"))
    return found


def _quoted(word: str) -> str:
    """One word for a shell."""
    return word if _PLAIN.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'"

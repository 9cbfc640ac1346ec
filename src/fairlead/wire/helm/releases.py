"""Helm's JSON about releases, and the marks by which Fairlead knows its own revisions.

The trap: Helm writes the description of a revision only when the revision has ended; until then,
and for a rollback of Helm 3, only the label of the revision names the operation.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct, structs

from fairlead.errors import OutsideError
from fairlead.model.actions import Manifest
from fairlead.model.operations.operation import HelmRelease
from fairlead.wire.files.bounded import load_yaml_documents
from fairlead.wire.names import ANNOTATION_OPERATION

SYSTEM: Final = "helm"
OPERATION_LABEL: Final = ANNOTATION_OPERATION
"""The label of a revision of Fairlead, with the id of its operation."""
LABEL_TEMPLATE: Final = f'{{{{ index .Release.Labels "{OPERATION_LABEL}" }}}}'
"""For `helm get all --template`: Helm 3 prints labels in no other way."""
_DESCRIPTION: Final = re.compile(r"fairlead operation ([a-z0-9]{1,63})")
_ROLLBACK: Final = re.compile(r"Rollback to (\d{1,9})")
_CHART: Final = re.compile(r"(.+?)-(v?\d+\.\d+\.\d+(?:[-+].*)?)", re.DOTALL)
_WAS_DEPLOYED: Final = ("deployed", "superseded")


class _Revision(Struct):
    """A row of `helm history`."""

    revision: int
    status: str
    chart: str = ""
    app_version: str = ""
    description: str = ""


class _Row(Struct):
    """A row of `helm list`, which has the revision as text."""

    name: str
    namespace: str
    revision: str
    status: str
    chart: str = ""
    app_version: str = ""


def description(operation: str) -> str:
    """The description of a revision that an operation makes.

    >>> operation_of(description("ab12")), operation_of("Upgrade complete")
    ('ab12', '')
    """
    return f"fairlead operation {operation}"


def operation_of(text: str) -> str:
    """The id in a description; "" if it is another program's."""
    found = _DESCRIPTION.fullmatch(text)
    return found[1] if found else ""


def parse_history(name: str, namespace: str, answer: bytes) -> HelmRelease | None:
    """The release, from `helm history -o json`; None without a revision.

    `deployed`: the revision that is deployed, else the newest one that was. Raises OutsideError for
    an answer of another form.
    """
    revisions = sorted(_decoded(answer, list[_Revision], "history"), key=lambda each: each.revision)
    if not revisions:
        return None
    newest = revisions[-1]
    chart, version = split_chart(newest.chart)
    rollback = _ROLLBACK.fullmatch(newest.description)
    return HelmRelease(
        name,
        namespace,
        newest.status,
        newest.revision,
        chart,
        version,
        newest.app_version,
        operation_of(newest.description),
        _newest_deployed(revisions),
        any(operation_of(each.description) for each in revisions),
        int(rollback[1]) if rollback else 0,
    )


def parse_list(answer: bytes) -> tuple[HelmRelease, ...]:
    """The releases of `helm list -o json`, without operations and earlier revisions, which it does
    not print. Raises OutsideError for an answer of another form.
    """
    rows = _decoded(answer, list[_Row], "list")
    return tuple(
        HelmRelease(
            each.name,
            each.namespace,
            each.status,
            int(each.revision) if each.revision.isdecimal() else 0,
            *split_chart(each.chart),
            each.app_version,
            deployed=int(each.revision) if each.status == "deployed" else 0,
        )
        for each in rows
    )


def with_label(release: HelmRelease, label: str) -> HelmRelease:
    """The release, with what the label of its newest revision adds. A rollback has the label of the
    revision that it repeats.
    """
    operation = "" if release.rolled_back_to else label.strip()
    return structs.replace(
        release,
        operation=release.operation or operation,
        is_own=release.is_own or bool(label.strip()),
    )


def parse_rendered(answer: bytes) -> tuple[Manifest, ...]:
    """The objects of `helm template`. Raises OutsideError for text that is not YAML."""
    try:
        documents = load_yaml_documents(answer)
    except yaml.YAMLError as error:
        raise OutsideError(SYSTEM, f"the chart makes text that is not YAML: {error}") from error
    return tuple(
        item
        for each in documents
        if isinstance(each, dict)
        for item in _listed(each)
        if "kind" in item
    )


def split_chart(text: str) -> tuple[str, str]:
    """Name and version of a chart as Helm prints both together.

    >>> split_chart("kube-prometheus-stack-61.3.2"), split_chart("small")
    (('kube-prometheus-stack', '61.3.2'), ('small', ''))
    """
    found = _CHART.fullmatch(text)
    return (found[1], found[2]) if found else (text, "")


def _listed(document: Manifest) -> list[Manifest]:
    return document["items"] if document.get("kind") == "List" else [document]


def _newest_deployed(revisions: list[_Revision]) -> int:
    for status in _WAS_DEPLOYED:
        found = [each.revision for each in revisions if each.status == status]
        if found:
            return max(found)
    return 0


def _decoded(answer: bytes, type_: Any, word: str) -> Any:
    try:
        return msgspec.json.decode(answer or b"[]", type=type_)
    except msgspec.DecodeError as error:
        what = f"the answer of `helm {word}` cannot be read: {error}"
        raise OutsideError(SYSTEM, what, "use a current Helm 3, or Helm 4") from error

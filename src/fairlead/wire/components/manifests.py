"""Manifests of a component as an administrator brings them: YAML with several documents."""

from __future__ import annotations

from typing import Any

import yaml

from fairlead.errors import UserError
from fairlead.model.actions import Manifest, object_ref
from fairlead.wire.files.bounded import load_yaml_documents
from fairlead.wire.files.strict_yaml import yaml_trouble

_HINT = "write objects as for `kubectl apply -f`, each with apiVersion, kind and metadata.name"


def parse_manifests(text: str | bytes, source: str) -> list[Manifest]:
    """The objects, those of a List one by one. `source`: the file's name, for messages.

    Raises UserError for text that is not YAML, for what is no object, and for one that is there
    twice.
    """
    try:
        documents = load_yaml_documents(text)
    except yaml.YAMLError as error:
        raise UserError(
            f"manifests `{source}` are not YAML: {yaml_trouble(error)}", _HINT
        ) from error
    found: list[Manifest] = []
    for number, each in enumerate(documents, 1):
        if each is not None:
            found += _objects(each, f"document {number} of `{source}`")
    seen = set()
    for one in found:
        identity = object_ref(one).identity
        if identity in seen:
            raise UserError(f"`{source}` has {object_ref(one).title} twice", "keep one of the two")
        seen.add(identity)
    return found


def _objects(document: Any, place: str) -> list[Manifest]:
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        items = document.get("items")
        if isinstance(items, list):
            return [found for each in items for found in _objects(each, place)]
    if not _is_object(document):
        raise UserError(f"{place} is no object of Kubernetes", _HINT)
    return [document]


def _is_object(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    meta = document.get("metadata")
    names = (document.get("apiVersion"), document.get("kind"))
    if not all(isinstance(each, str) and each for each in names) or not isinstance(meta, dict):
        return False
    spec = document.get("spec", {})
    return bool(isinstance(meta.get("name"), str) and meta["name"]) and isinstance(
        spec, dict | type(None)
    )

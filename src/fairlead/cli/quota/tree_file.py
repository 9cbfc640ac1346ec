"""The quota tree of a file: one ElasticQuotaTree in YAML or JSON, alone or beside other objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cli.frame.context import Machine
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.quota.tree import QuotaTree

_HINT = "name a file with one ElasticQuotaTree, or `-` for stdin"


def read_tree(filename: str, machine: Machine) -> QuotaTree:
    """Its faults are in the tree.

    Raises UserError when the file holds no tree, or more than one.
    """
    return parse_tree(read_tree_object(filename, machine), filename)


def read_tree_object(filename: str, machine: Machine) -> dict[str, Any]:
    """The object as it is written. Raises UserError as `read_tree` does."""
    import yaml

    from fairlead.cli.frame.input_files import read_input
    from fairlead.wire.files.bounded import load_yaml_documents
    from fairlead.wire.quota.tree_size import LEVELS_MAX

    text = read_input(machine, filename, "tree", _HINT)
    try:
        documents = load_yaml_documents(text, levels=2 * LEVELS_MAX + 10)
    except yaml.YAMLError as error:
        raise UserError(f"tree `{filename}` is not YAML: {error}", _HINT) from error
    trees = [
        each
        for each in documents
        if isinstance(each, dict) and each.get("kind") == "ElasticQuotaTree"
    ]
    if len(trees) != 1:
        raise UserError(
            f"file `{filename}` holds {len(trees) or 'no'} objects of kind ElasticQuotaTree",
            _HINT,
        )
    return trees[0]


def parse_tree(tree: dict[str, Any], filename: str) -> QuotaTree:
    """Raises UserError for an object of another form."""
    import msgspec

    from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree

    try:
        return parse_quota_tree(msgspec.convert(tree, WireQuotaTree, strict=False))
    except msgspec.ValidationError as error:
        raise UserError(
            f"the ElasticQuotaTree of `{filename}` cannot be read: {error}", _HINT
        ) from error

"""Limits for the size of a quota tree, checked before the tree is parsed.

A node's path contains every name above it, and a violation names its node. Without a limit, a few
hundred kilobytes of JSON could become gigabytes of text.
"""

from __future__ import annotations

from typing import Any, Final

LEVELS_MAX: Final = 250
"""The number of levels of a tree.

JSON readers and writers recurse twice per level, and have a limit.
"""
NODES_MAX: Final = 25_000
"""The number of nodes; plans are measured with a thousand leaves (docs/project/performance.md).
"""
ENTRIES_MAX: Final = 250_000
"""Limit of fields, namespaces, attributes, and resources of min and max, of all nodes together."""
TEXT_MAX: Final = 1024
"""Characters of a name, as in the CustomResourceDefinition, and of a key or namespace."""
PATHS_MAX: Final = 16_000_000
"""The number of characters of all nodes' paths together."""


def too_large(root: dict[str, Any]) -> str:
    """What is too large in the tree; "" = nothing. Malformed nodes are left to the parser.

    >>> too_large({"name": "root", "children": [{"name": "x" * 2000}]})
    'a name has 2000 characters, and 1024 are allowed'
    """
    nodes = entries = paths = 0
    ahead: list[tuple[dict[str, Any], int, int]] = [(root, 1, 0)]
    while ahead:
        node, level, above = ahead.pop()
        if level > LEVELS_MAX:
            continue  # the parser reports each such node as too deep, and does not descend
        name = node.get("name")
        path = above + 1 + (len(name) if isinstance(name, str) else len("children[]"))
        nodes, paths = nodes + 1, paths + path
        texts = _texts(node)
        entries += len(texts)
        if (longest := max(map(len, texts), default=0)) > TEXT_MAX:
            return f"a name has {longest} characters, and {TEXT_MAX} are allowed"
        children = node.get("children")
        found = children if isinstance(children, list) else []
        if nodes + len(ahead) + len(found) > NODES_MAX:
            return f"the tree has more than {NODES_MAX} nodes"
        if entries > ENTRIES_MAX:
            return f"the tree has more than {ENTRIES_MAX} namespaces, attributes and amounts"
        if paths > PATHS_MAX:
            return (
                f"the paths of the nodes have more than {PATHS_MAX} characters together: shorten "
                "the names of inner nodes"
            )
        ahead += [(child, level + 1, path) for child in found if isinstance(child, dict)]
    return ""


def _texts(node: dict[str, Any]) -> list[str]:
    """Every key of the node itself, and its texts."""
    lists = [node.get("min"), node.get("max"), node.get("attributes"), node.get("namespaces")]
    found = [node, [node.get("name")], *(each for each in lists if isinstance(each, dict | list))]
    return [text for each in found for text in each if isinstance(text, str)]

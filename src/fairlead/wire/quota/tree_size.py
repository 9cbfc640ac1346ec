"""How large a quota tree may be, counted before any of it is read.

A path holds every name above it, and a fault names its node. A few hundred kilobytes of JSON can therefore
become gigabytes of text when nobody counts first.
"""

from __future__ import annotations

from typing import Any, Final

LEVELS_MAX: Final = 250
"""A tree may have so many levels; what reads and writes JSON goes down twice as many, and has a limit."""
NODES_MAX: Final = 25_000
"""Far more than the thousand leaves that the plan is measured with (docs/project/performance.md)."""
ENTRIES_MAX: Final = 250_000
"""Of all nodes together: fields, namespaces, attributes, and resources of min and max."""
TEXT_MAX: Final = 1024
"""Characters of a name, as the CustomResourceDefinition has it, and of any key or namespace."""
PATHS_MAX: Final = 16_000_000
"""Characters of the paths of all nodes together."""


def too_large(root: dict[str, Any]) -> str:
    """What of the tree is too large, "" when nothing is. Shapes that are no tree are left to the reader.

    >>> too_large({"name": "root", "children": [{"name": "x" * 2000}]})
    'a name has 2000 characters, and 1024 are allowed'
    """
    nodes = entries = paths = 0
    ahead: list[tuple[dict[str, Any], int, int]] = [(root, 1, 0)]
    while ahead:
        node, level, above = ahead.pop()
        if level > LEVELS_MAX:
            continue  # the reader says of each such node that it lies too deep, and goes no further down
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
            return f"the paths of the nodes have more than {PATHS_MAX} characters together: shorten the names of inner nodes"
        ahead += [(child, level + 1, path) for child in found if isinstance(child, dict)]
    return ""


def _texts(node: dict[str, Any]) -> list[str]:
    """Every key and name of the node itself."""
    lists = [node.get("min"), node.get("max"), node.get("attributes"), node.get("namespaces")]
    found = [node, [node.get("name")], *(each for each in lists if isinstance(each, dict | list))]
    return [text for each in found for text in each if isinstance(text, str)]

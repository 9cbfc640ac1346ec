"""Compares what kubectl prints with what a document prints, in the document's columns. Ages,
addresses, node ports and generated endings are not compared.
"""

from __future__ import annotations

import re

Row = dict[str, str]

_ALIKE = (
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b"), "<ip>"),
    (re.compile(r":(3\d{4})/(TCP|UDP)"), r":<port>/\2"),
    (re.compile(r"-[a-f0-9]{8,10}-[a-z0-9]{5}\b"), "-<hash>-<end>"),
    (re.compile(r"-[a-f0-9]{8,10}$"), "-<hash>"),
)
_NODE_NAME = re.compile(r"cn-\w+\.\d")


def rows_of(table: str) -> list[Row]:
    """The cells of a table by the names of its columns; a cell begins under the first letter of its
    column's name.
    """
    head, *lines = [line for line in table.splitlines() if line.strip()]
    names = [(found.start(), found[0]) for found in re.finditer(r"\S+(?: \S+)*", head)]
    ends = [start for start, _ in names[1:]] + [None]
    return [
        {name: line[start:end].strip() for (start, name), end in zip(names, ends, strict=True)}
        for line in lines
    ]


def alike(cell: str, column: str = "") -> str:
    """A cell without what differs from cluster to cluster and from moment to moment.

    >>> alike("tf-notebook-gpu-695cb6cf89-dsjmv")
    'tf-notebook-gpu-<hash>-<end>'
    >>> alike("5 (23s ago)", "RESTARTS"), alike("80:32285/TCP")
    ('5', '80:<port>/TCP')
    """
    if column == "AGE":
        return "<age>" if re.fullmatch(r"(\d+[ydhms])+", cell) else cell
    if column == "RESTARTS":
        return re.sub(r" \(\S+ ago\)$", "", cell)
    if _NODE_NAME.match(cell):
        return cell
    for pattern, word in _ALIKE:
        cell = pattern.sub(word, cell)
    return cell


def is_table(text: str) -> bool:
    return bool(re.match(r"\s*[A-Z()-]+( [A-Z()-]+)?( {2,}[A-Z()_-]+)+", text))


def compared(
    printed: str, actual: str, ignored: list[str] | None = None
) -> tuple[list[Row], list[Row]]:
    """Both tables in the document's columns, sorted: names with generated endings have no order."""
    theirs, own = rows_of(printed), rows_of(actual)
    columns = [column for column in theirs[0] if column not in (ignored or ())]
    missing = [column for column in columns if own and column not in own[0]]
    assert not missing, f"no column {missing}"
    return _sorted(theirs, columns), _sorted(own, columns)


def _sorted(rows: list[Row], columns: list[str]) -> list[Row]:
    return sorted(
        ({column: alike(row[column], column) for column in columns} for row in rows),
        key=lambda row: list(row.values()),
    )


def words(text: str) -> str:
    """Lines with one space between words, and without what differs."""
    return "\n".join(
        " ".join(alike(word) for word in line.split()) for line in text.strip().splitlines()
    )


def same_endings(text: str) -> str:
    """The lines as they are, but for generated endings (each letter an `x`) and blanks at the ends.

    >>> same_endings("tf-notebook-gpu-695cb6cf89-dsjmv  default   \\n")
    'tf-notebook-gpu-xxxxxxxxxx-xxxxx  default\\n'
    """
    masked = re.sub(
        r"-([a-f0-9]{8,10})-([a-z0-9]{5})\b",
        lambda found: f"-{'x' * len(found[1])}-{'x' * len(found[2])}",
        text,
    )
    return "".join(line.rstrip() + "\n" for line in masked.splitlines())

"""What all checks share: the form of unread facts, of versions and of long lists; what mends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.model.installed.facts import InventoryFact, Unread
from fairlead.model.installed.finding import Finding, State

NO_PROGRAM: Final = "containers of a simulated cluster run no program"
_SHOWN: Final = 3
_ASK: Final = "use an account with this right; `kubectl auth can-i --list` shows yours"


def unread(check: str, fact: Unread) -> Finding:
    """The finding for a fact that could not be read: neither right nor wrong."""
    return Finding(check, State.UNKNOWN, fact.why, _ASK)


def again(found: InventoryFact) -> str:
    """The command that writes the objects of an installation again."""
    return written_again(found.release)


def written_again(release: str) -> str:
    """The same by the name of the Helm release; "" = `fairlead install` wrote the objects."""
    if release:
        return f"`helm upgrade {release}` with the same values writes it again"
    return "`fairlead upgrade` writes it again; --dry-run prints the difference"


def some(names: Sequence[str], separator: str = ", ", most: int = _SHOWN) -> str:
    """The first three, or `most`, and how many more there are.

    >>> some(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def lines(faults: Sequence[str], most: int = 10) -> str:
    """The first ten, each on a line, and how many more there are.

    >>> lines(["a", "b"], most=1)
    'a\\nand 1 more'
    """
    more = f"\nand {len(faults) - most} more" if len(faults) > most else ""
    return "\n".join(faults[:most]) + more


def dotted(numbers: tuple[int, int]) -> str:
    """
    >>> dotted((1, 36))
    '1.36'
    """
    return ".".join(map(str, numbers))


def counted(number: int, word: str) -> str:
    """
    >>> counted(1, "node"), counted(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{number} {word}" if number == 1 else f"{number} {word}s"

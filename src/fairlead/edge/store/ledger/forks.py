"""Which records are valid at a time, as a question that every engine's index can answer.

A relational interval tree (Kriegel, Pötke and Seidl, VLDB 2000): a record is stored with its fork,
the topmost node of a virtual binary tree over time that lies within the record. Of the records that
are valid at a time, the forks lie on the path from the root to that time: 28 of them at most. Nodes
are units of 65,536 ms, from 1 on; the exact times are compared as well.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, Table, and_, false, or_

from fairlead.model.usage.ledger import OPEN

OPEN_FORK: Final = 0
"""Of records that have not ended."""
NARROW: Final = 8 * 86_400_000
"""Milliseconds of a time for which the index is better than a look at all records."""
_SHIFT: Final = 16
_LEVELS: Final = 27
_LAST: Final = 1 << _LEVELS


def fork_of(started_at: int, ended_at: int) -> int:
    """The node in which a record is stored.

    >>> fork_of(5 << 16, 7 << 16), fork_of(5 << 16, OPEN)
    (6, 0)
    """
    if ended_at >= OPEN:
        return OPEN_FORK
    first = _unit(started_at)
    last = _unit(ended_at - 1) if ended_at > started_at else first
    shift = ((first - 1) ^ last).bit_length() - 1
    return last >> shift << shift


def valid_at(table: Table, at: int) -> ColumnElement[bool]:
    """The condition of records that are valid at the time."""
    forks = [OPEN_FORK, *_path(_unit(at))]
    columns = table.c
    return and_(columns.fork.in_(forks), columns.started_at <= at, columns.ended_at > at)


def touching(table: Table, start: int, end: int) -> list[ColumnElement[bool]]:
    """Conditions of which each record that is valid at some time from `start` to `end`, excluded,
    fulfils exactly one, and no other record any.

    Several for a narrow time, so that each uses the index.
    """
    columns, is_within = table.c, within(table, start, end)
    if end <= start or end - start > NARROW:
        return [is_within]
    first, last = _unit(start), _unit(end - 1)
    paths = {OPEN_FORK, *_path(first), *_path(last)}
    outside = sorted(fork for fork in paths if not first <= fork <= last)
    return [
        and_(columns.fork.in_(outside), is_within),
        and_(columns.fork.between(first, last), is_within),
    ]


def within(table: Table, start: int, end: int) -> ColumnElement[bool]:
    """The same as one condition, without the index."""
    if end <= start:
        return false()
    columns = table.c
    is_some_time = columns.started_at < columns.ended_at
    return and_(columns.started_at < end, columns.ended_at > start, is_some_time)


def ended_after(table: Table, time: int) -> ColumnElement[bool]:
    """The condition of records that have ended, and not before the time."""
    columns, unit = table.c, _unit(time)
    is_near = or_(columns.fork.in_(_path(unit)), columns.fork > unit)
    return and_(is_near, columns.ended_at > time, columns.ended_at < OPEN)


def ended_before(table: Table, time: int) -> ColumnElement[bool]:
    """The condition of records that ended before the time; open ones never did."""
    columns = table.c
    return and_(columns.fork.between(OPEN_FORK + 1, _unit(time)), columns.ended_at < time)


def _unit(time: int) -> int:
    """The unit of a time. It never falls as time grows, which is all that the tree needs.

    >>> _unit(-5), _unit(65_536), _unit(OPEN) == _LAST
    (1, 2, True)
    """
    unit = (time >> _SHIFT) + 1
    return unit if 1 <= unit <= _LAST else min(max(unit, 1), _LAST)


def _path(unit: int) -> list[int]:
    """The nodes from the unit up to the root: those with the unit in their part of the tree.

    >>> _path(5)[:3]
    [5, 6, 4]
    """
    lowest = (unit & -unit).bit_length() - 1
    return [
        (unit >> (level + 1) << (level + 1)) | (1 << level) for level in range(lowest, _LEVELS + 1)
    ]

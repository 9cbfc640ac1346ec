"""Charts for researchers: the server adds the own namespaces and quota nodes to every query."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct, structs

from fairlead.console.charts.charts import Lines
from fairlead.console.charts.queries import HOLDER, ChartQuery
from fairlead.console.charts.request import ChartRequest

OF_ALL_TEAMS: Final = ("cluster-jobs",)
"""Charts of sums over the jobs of all teams."""
_NAMESPACE: Final = "namespace"
_PATH: Final = "path"


class ChartReach(Struct, frozen=True):
    """`paths`: of the own leaves and the nodes above them."""

    namespaces: frozenset[str]
    paths: frozenset[str]

    def sees(self, labels: Mapping[str, str]) -> bool:
        """Whether a line is of an own namespace or node, or of no tenant."""
        return (_NAMESPACE not in labels or labels[_NAMESPACE] in self.namespaces) and (
            _PATH not in labels or labels[_PATH] in self.paths
        )

    def restrict(
        self, query: ChartQuery, asked: ChartRequest
    ) -> tuple[ChartQuery, ChartRequest] | None:
        """The query and request for what may be seen; None if that is nothing.

        Spellings that do not name the namespace are left out: they cannot be restricted.
        """
        for label, own in ((_NAMESPACE, self.namespaces), (_PATH, self.paths)):
            if not any(label in spelling.labels.values() for spelling in query.spellings):
                continue
            chosen = _chosen(own, asked.filters.get(label, ()))
            filters = {**asked.filters, label: chosen}
            if HOLDER in filters:
                holders = tuple(
                    each for each in filters[HOLDER] if each.partition("/")[0].lower() in own
                )
                filters[HOLDER] = holders
                if not holders:
                    return None
            if not chosen:
                return None
            named = tuple(each for each in query.spellings if label in each.labels.values())
            query = structs.replace(query, spellings=named)
            asked = structs.replace(asked, filters=filters)
        return query, asked

    def seen(self, lines: Lines) -> Lines:
        """The lines that may be seen. Filters compare in any case of letters, names do not."""
        shown = [line for line in lines.lines if self.sees(line.labels)]
        left_out = len(lines.lines) - len(shown)
        return structs.replace(lines, lines=shown, total=lines.total - left_out)


def _chosen(own: Collection[str], asked: Collection[str]) -> tuple[str, ...]:
    wanted = {each.lower() for each in asked}
    return tuple(sorted(each for each in own if not asked or each.lower() in wanted))

"""A board as Grafana's JSON model, schema version 39.

Grafana 10.4 reads it as it is, newer ones migrate it.

The shape of everything here hangs on the version. Nothing of a Grafana server (ids, versions,
users) is written, so that the same board is the same bytes.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator
from typing import Any

from boards.shape import (
    CLUSTER,
    EVERYTHING,
    Board,
    Kind,
    Link,
    Panel,
    Query,
    Row,
    Threshold,
    Variable,
    of_cluster,
)

SCHEMA_VERSION = 39
TAG = "fairlead"
REFRESH = "30s"
COLUMNS = 24
Json = dict[str, Any]
_DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
_ENDLESS = ("Infinity", "+Inf")
"""An endless number, as Grafana and Prometheus call it.

Ranges without end do not match in all versions.
"""
_CALC: Json = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: dict[Kind, Json] = {
    Kind.CHART: {
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    Kind.NUMBER: {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": _CALC,
        "textMode": "auto",
    },
    Kind.GAUGE: {
        "orientation": "auto",
        "reduceOptions": _CALC,
        "showThresholdLabels": False,
        "showThresholdMarkers": True,
    },
    Kind.BARS: {
        "displayMode": "basic",
        "orientation": "horizontal",
        "reduceOptions": _CALC,
        "showUnfilled": True,
        "valueMode": "color",
    },
    Kind.TABLE: {"cellHeight": "sm", "footer": {"show": False}, "showHeader": True},
}


def board_text(board: Board) -> str:
    """The file of a board."""
    return json.dumps(board_model(board), indent=2, ensure_ascii=False) + "\n"


def board_model(board: Board) -> Json:
    return {
        "uid": board.uid,
        "title": f"Fairlead / {board.title}",
        "description": board.description,
        "tags": [TAG],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": REFRESH,
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [_board_links()],
        "templating": {
            "list": [
                _datasource_variable(),
                _cluster_variable(board),
                *(_variable(each) for each in board.variables),
            ]
        },
        "panels": list(_panels(board.rows)),
    }


def _board_links() -> Json:
    """One link for each of these boards, found by its tag; time and choices go along."""
    return {
        "type": "dashboards",
        "title": "Fairlead",
        "tags": [TAG],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


def _datasource_variable() -> Json:
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Prometheus",
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "hide": 0,
    }


def _cluster_variable(board: Board) -> Json:
    """One cluster, never several together: their nodes may have equal names."""
    metric = board.variables[0].metric if board.variables else "fairlead_cluster_gpu_nodes"
    query = f"label_values({metric}, {CLUSTER})"
    return {
        "type": "query",
        "name": CLUSTER,
        "label": CLUSTER,
        "datasource": _DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"variable-{CLUSTER}", "qryType": 1},
        "refresh": 2,
        "sort": 1,
        "multi": False,
        "includeAll": False,
        "current": {},
        "options": [],
        "hide": 0,
        "regex": "",
    }


def _variable(variable: Variable) -> Json:
    return {
        "type": "query",
        "name": variable.name,
        "label": variable.name,
        "datasource": _DATASOURCE,
        "definition": variable.query,
        "query": {"query": variable.query, "refId": f"variable-{variable.name}", "qryType": 1},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": EVERYTHING,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "options": [],
        "hide": 0,
        "regex": "",
    }


def _panels(rows: tuple[Row, ...]) -> Iterator[Json]:
    """Ids count up in reading order."""
    number, top = 1, 0
    for row in rows:
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": top},
        }
        number, top, left, line = number + 1, top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                left, top, line = 0, top + line, 0
            yield _panel(panel, number, {"h": panel.height, "w": panel.width, "x": left, "y": top})
            number, left, line = number + 1, left + panel.width, max(line, panel.height)
        top += line


def _panel(panel: Panel, number: int, place: Json) -> Json:
    is_table = panel.kind == Kind.TABLE
    return {
        "id": number,
        "type": panel.kind.value,
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "gridPos": place,
        "targets": [
            _target(panel, query, letter)
            for query, letter in zip(panel.queries, string.ascii_uppercase, strict=False)
        ],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": [*_overrides(panel)]},
        "options": _options(panel),
        **({"transformations": _transformations(panel)} if is_table else {}),
    }


def _options(panel: Panel) -> Json:
    """Tables begin sorted by their first column."""
    options = _OPTIONS[panel.kind]
    if panel.kind != Kind.TABLE:
        return options
    first = panel.order[0] if panel.order else panel.labels[0][1]
    return {**options, "sortBy": [{"displayName": first, "desc": False}]}


def _target(panel: Panel, query: Query, letter: str) -> Json:
    """A chart asks for a range; whatever shows one value asks for one."""
    is_range = panel.kind == Kind.CHART
    return {
        "refId": letter,
        "datasource": _DATASOURCE,
        "expr": of_cluster(query.expression),
        "legendFormat": query.legend or "__auto",
        "editorMode": "code",
        "range": is_range,
        "instant": not is_range,
        "format": "table" if panel.kind == Kind.TABLE else "time_series",
    }


def _defaults(panel: Panel) -> Json:
    made: Json = {
        "unit": panel.unit,
        "noValue": panel.empty,
        "thresholds": _thresholds(panel.thresholds),
        "mappings": [],
    }
    if not panel.words_of:
        made["mappings"] = _mappings(panel)
    if panel.kind == Kind.CHART:
        made["custom"] = {
            "drawStyle": "line",
            "fillOpacity": 25 if panel.is_stacked else 0,
            "lineWidth": 1,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.is_stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if panel.thresholds else "off"},
        }
        made["color"] = {"mode": "palette-classic"}
        if panel.most is not None:
            made["custom"]["axisSoftMax"] = panel.most
    elif panel.kind == Kind.TABLE:
        made["custom"] = {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True}
        made["color"] = {"mode": "thresholds"}
    else:
        made["color"] = {"mode": "thresholds"}
    most = None if panel.kind == Kind.CHART else panel.most
    for name, value in (("min", panel.least), ("max", most), ("decimals", panel.decimals)):
        if value is not None:
            made[name] = value
    return made


def _thresholds(steps: tuple[Threshold, ...]) -> Json:
    return {
        "mode": "absolute",
        "steps": [
            {"color": "green", "value": None},
            *({"color": each.colour, "value": each.value} for each in steps),
        ],
    }


def _mappings(panel: Panel) -> list[Json]:
    found: list[Json] = []
    if panel.words:
        found.append(
            {
                "type": "value",
                "options": {
                    str(value): {"text": text, "index": at}
                    for at, (value, text) in enumerate(panel.words)
                },
            }
        )
    if panel.no_limit:
        shown = {"text": panel.no_limit, "index": len(panel.words)}
        found.append({"type": "value", "options": dict.fromkeys(_ENDLESS, shown)})
    return found


def _overrides(panel: Panel) -> Iterator[Json]:
    """By the visible heading. An empty cell is less clear than an empty table."""
    if panel.kind == Kind.TABLE:
        yield {
            "matcher": {"id": "byRegexp", "options": "/.*/"},
            "properties": [{"id": "noValue", "value": "–"}],
        }
    for query in panel.queries if panel.kind == Kind.TABLE else ():
        settings: list[Json] = [{"id": "unit", "value": query.unit}] if query.unit else []
        if panel.words_of and query.legend == panel.words_of:
            settings.append({"id": "mappings", "value": _mappings(panel)})
        if settings:
            yield _override(query.legend, settings)
    for heading, link in panel.links:
        yield _override(
            heading, [{"id": "links", "value": [{"title": f"Open {heading}", "url": _url(link)}]}]
        )
    for legend in panel.draws_over:
        yield _override(
            legend,
            [
                {"id": "custom.stacking", "value": {"mode": "none"}},
                {"id": "custom.fillOpacity", "value": 0},
            ],
        )


def _override(heading: str, settings: list[Json]) -> Json:
    return {"matcher": {"id": "byName", "options": heading}, "properties": settings}


def _url(link: Link) -> str:
    kept = f"var-datasource=${{datasource}}&var-{CLUSTER}=${{{CLUSTER}}}"
    return f"/d/{link.board}?{kept}&var-{link.variable}=${{__value.raw}}&${{__url_time_range}}"


def _transformations(panel: Panel) -> list[Json]:
    """Merge rows of equal labels, give columns headings and an order, and drop all others.

    Grafana calls the values of the only query of a table `Value`, those of one among several `Value
    #A`.
    """
    values = (
        ["Value"]
        if len(panel.queries) == 1
        else [
            f"Value #{letter}"
            for letter, _ in zip(string.ascii_uppercase, panel.queries, strict=False)
        ]
    )
    shown = {
        name: query.legend
        for name, query in zip(values, panel.queries, strict=True)
        if query.legend
    }
    names = {**dict(panel.labels), **shown}
    if panel.order:
        names = dict(sorted(names.items(), key=lambda item: panel.order.index(item[1])))
    return [
        {"id": "merge", "options": {}},
        {"id": "filterFieldsByName", "options": {"include": {"names": [*names]}}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {},
                "indexByName": {name: at for at, name in enumerate(names)},
                "renameByName": names,
            },
        },
    ]

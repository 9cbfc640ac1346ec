"""How is a scenario read, and what is said when it is wrong?

Every refusal names the file, the line and the key: `tomllib` forgets lines, so `locate_keys` reads them from the text.
Checks that need more than one key (an unknown namespace, a card that does not exist) stand in `_contradictions`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from fairlead.errors import UserError
from fairlead.sim.cards import CARD_MODELS
from fairlead.sim.cluster import FIRST_NAMESPACES
from fairlead.sim.pod_counts import MOST_PODS
from fairlead.sim.scenario import COUNTED, Duration, Scenario, Service, Stream, expanded, pool_nodes
from fairlead.wire.quantity import parse_amounts, parse_quantity
from fairlead.wire.time_span import parse_span

KeyPath = tuple[str | int, ...]
"""The way to a value: ("streams", 2, "runs")."""

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_.-]+)\s*=""")
_KNOWN_CARDS = ", ".join(f"`{name}`" for name in CARD_MODELS)
_NODE_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def known_scenarios() -> list[str]:
    """Names of the scenarios that come with Fairlead."""
    folder = files("fairlead.sim") / "scenarios"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_scenario(name: str) -> Scenario:
    """A scenario by its name, or by the path of a file (anything with a slash or ending in `.toml`)."""
    return parse_scenario(*read_scenario(name))


def read_scenario(name: str) -> tuple[str, str]:
    """The text of a scenario, and what to call it in messages."""
    if "/" not in name and not name.endswith(".toml"):
        return _built_in(name), f"{name}.toml"
    try:
        return Path(name).read_text(encoding="utf-8"), name
    except OSError as error:
        raise UserError(f"scenario file `{name}` cannot be read: {error.strerror or error}", "give the path of a TOML file") from error
    except UnicodeDecodeError as error:
        raise UserError(f"scenario file `{name}` is not UTF-8 text (byte {error.start})", "save it as UTF-8") from error


def parse_scenario(text: str, source: str) -> Scenario:
    """The scenario of a TOML text; `source` names it in messages. Raises UserError with line and key."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"scenario `{source}` is not valid TOML: {error}", "see docs/scenarios.md for an example") from error
    try:
        scenario = msgspec.convert(raw, Scenario, dec_hook=_decode)
    except msgspec.ValidationError as error:
        what, path = _told_by_msgspec(str(error))
        raise _refusal(text, source, path, what) from error
    for path, what in _bad_counts(scenario):
        raise _refusal(text, source, path, what)
    whole = expanded(scenario)
    for path, what in _contradictions(whole):
        raise _refusal(text, source, _written(scenario, path), what)
    return whole


def _bad_counts(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    for section in COUNTED:
        for index, item in enumerate(getattr(scenario, section)):
            if not 1 <= item.count <= 5000:
                yield (section, index, "count"), f"{item.count} is not between 1 and 5000"


def _written(scenario: Scenario, path: KeyPath) -> KeyPath:
    """Where the text has what stands at `path` of the expanded scenario."""
    if path[0] not in COUNTED:
        return path
    origins = [index for index, item in enumerate(getattr(scenario, str(path[0]))) for _ in range(item.count)]
    return (path[0], origins[int(path[1])], *path[2:])


def locate_keys(text: str) -> dict[KeyPath, int]:
    """Line (from 1) of every table and key that stands at the beginning of a line. Good enough for messages, not a parser.

    >>> locate_keys('a = 1\\n[[b]]\\nc = 2')
    {('a',): 1, ('b', 0): 2, ('b', 0, 'c'): 3}
    """
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _table_path(header[1] == "[[", _split_key(header[2]), counts)
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_split_key(key[1])), number)
    return lines


def _table_path(is_array: bool, keys: KeyPath, counts: dict[KeyPath, int]) -> KeyPath:
    path: KeyPath = ()
    for depth, key in enumerate(keys):
        path = (*path, key)
        if is_array and depth == len(keys) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _split_key(text: str) -> KeyPath:
    if text[0] in "\"'":
        return (text[1:-1],)
    return tuple(part.strip().strip("\"'") for part in text.split("."))


def _built_in(name: str) -> str:
    known = known_scenarios()
    if name not in known:
        raise UserError(f"there is no scenario `{name}`", f"choose one of: {', '.join(known)}; or give the path of a TOML file")
    return (files("fairlead.sim") / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")


def _decode(kind: type, value: Any) -> Any:
    if kind is Duration:
        if not isinstance(value, str):
            raise ValueError(f'`{value}` is not a length of time in quotes, such as `"20m"`')
        return Duration(parse_span(value))
    raise NotImplementedError(kind)


def _told_by_msgspec(message: str) -> tuple[str, KeyPath]:
    """Its sentence and the path it names; an unknown or missing field belongs to the path."""
    what, _, where = message.partition(" - at `$")
    path: KeyPath = tuple(int(index) if index else key for key, index in re.findall(r"\.(\w+)|\[(\d+)\]", where))
    field = re.search(r"(?:unknown|missing required) field `([^`]+)`", what)
    return what, (*path, field[1]) if field else path


def _refusal(text: str, source: str, path: KeyPath, what: str) -> UserError:
    lines = locate_keys(text)
    line = next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), 1)
    return UserError(f"scenario `{source}` line {line}, key `{_spell(path)}`: {what}", "see docs/scenarios.md for every key and an example")


def _spell(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "(the whole file)"


# --- what one key alone cannot tell ---------------------------------------------------------------------------------------------


def _contradictions(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    yield from _bad_names(scenario)
    yield from _bad_pools(scenario)
    yield from _bad_work(scenario)
    yield from _bad_quota(scenario)
    yield from _bad_faults(scenario)


def _bad_names(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    named: dict[str, Sequence[tuple[str, str]]] = {
        "node_pools": [("", pool.name or next(iter(pool.names), "")) for pool in scenario.node_pools],
        "teams": [("", team.name) for team in scenario.teams],
        "services": [(service.namespace, service.name) for service in scenario.services],
        "streams": [(stream.namespace, stream.name) for stream in scenario.streams],
    }
    for section, keys in named.items():
        seen: set[tuple[str, str]] = set()
        for index, (namespace, name) in enumerate(keys):
            if not (_NODE_NAME if section == "node_pools" else _NAME).fullmatch(name):
                yield (section, index, "name"), f"`{name}` is not a Kubernetes name (lower-case letters, digits and `-`)"
            if (namespace, name) in seen:
                yield (section, index, "name"), f"`{name}` is there twice"
            seen.add((namespace, name))


def _bad_pools(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    for index, pool in enumerate(scenario.node_pools):
        here: KeyPath = ("node_pools", index)
        if pool.addresses and len(pool.addresses) != len(pool.names):
            yield (*here, "addresses"), f"there are {len(pool.addresses)} addresses for {len(pool.names)} names"
        if not 1 <= pool.count <= 5000:
            yield (*here, "count"), f"{pool.count} is not between 1 and 5000"
        if not 0 <= pool.gpus <= 16:
            yield (*here, "gpus"), f"{pool.gpus} is not between 0 and 16"
        if pool.gpus and pool.gpu_model not in CARD_MODELS:
            yield (
                (*here, "gpu_model"),
                f"`{pool.gpu_model}` is not a known card; known are {_KNOWN_CARDS}",
            )
        if pool.shared and not pool.gpus:
            yield (*here, "shared"), "a node without GPUs cannot share them"
        if problem := _bad_quantity(pool.memory):
            yield (*here, "memory"), problem


def _bad_work(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    known = set(scenario.namespaces)
    classes = {item.name for item in scenario.priority_classes}
    work: dict[str, Sequence[Service | Stream]] = {"services": scenario.services, "streams": scenario.streams}
    for section, parts in work.items():
        for index, part in enumerate(parts):
            here: KeyPath = (section, index)
            if part.namespace not in known:
                yield (*here, "namespace"), f"no team has namespace `{part.namespace}`; known are {', '.join(sorted(known)) or 'none'}"
            if part.priority_class and part.priority_class not in classes:
                yield (*here, "priority_class"), f"`{part.priority_class}` is not among `priority_classes`"
            if part.gpus and part.gpu_memory:
                yield (*here, "gpu_memory"), "a container asks for whole GPUs (`gpus`) or for a part of one (`gpu_memory`), not both"
            for field in ("cpu", "memory"):
                if problem := _bad_quantity(getattr(part, field)):
                    yield (*here, field), problem
    for index, service in enumerate(scenario.services):
        if not 0 <= service.replicas <= MOST_PODS:
            yield ("services", index, "replicas"), f"must be 0 to {MOST_PODS}"
    for index, pod in enumerate(scenario.pods):
        if pod.namespace not in {*known, *FIRST_NAMESPACES}:
            yield ("pods", index, "namespace"), f"no team has namespace `{pod.namespace}`"
        if not 1 <= pod.containers <= 20:
            yield ("pods", index, "containers"), f"{pod.containers} is not between 1 and 20"
    for index, stream in enumerate(scenario.streams):
        if stream.runs[0].seconds > stream.runs[1].seconds:
            yield ("streams", index, "runs"), "the shortest is longer than the longest"
        if stream.every.seconds < 1:
            yield ("streams", index, "every"), "must be at least `1s`"
        if not stream.workers or not 1 <= min(stream.workers) <= max(stream.workers) <= MOST_PODS:
            yield ("streams", index, "workers"), f"name at least one number of workers, each 1 to {MOST_PODS}"
        if not 0 <= stream.parameter_servers <= MOST_PODS:
            yield ("streams", index, "parameter_servers"), f"must be 0 to {MOST_PODS}"
        if stream.failing + stream.crashing > 1:
            yield ("streams", index, "failing"), "`failing` and `crashing` together are more than 1"


def _bad_quota(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    paths = {node.path for node in scenario.quota}
    known = set(scenario.namespaces)
    holders: dict[str, str] = {}
    for index, node in enumerate(scenario.quota):
        here: KeyPath = ("quota", index)
        parent = node.path.rpartition(".")[0]
        if index == 0 and parent:
            yield (*here, "path"), f"the first node is the root and has no parent, but `{node.path}` has a dot"
        if index and parent not in paths:
            yield (*here, "path"), f"`{node.path}` has no parent `{parent}` in the tree"
        for namespace in node.namespaces:
            if namespace not in known:
                yield (*here, "namespaces"), f"no team has namespace `{namespace}`"
            if namespace in holders:
                yield (*here, "namespaces"), f"`{namespace}` is already on `{holders[namespace]}`"
            holders[namespace] = node.path
        for field in ("min", "max"):
            if problem := _bad_amounts(getattr(node, field)):
                yield (*here, field), problem


def _bad_faults(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    gpus = {node: pool.gpus for pool in scenario.node_pools for node in pool_nodes(pool)}
    for index, xid in enumerate(scenario.xids):
        if xid.node not in gpus:
            yield ("xids", index, "node"), f"there is no node `{xid.node}`"
        elif not 0 <= xid.gpu < gpus[xid.node]:
            yield ("xids", index, "gpu"), f"node `{xid.node}` has {gpus[xid.node]} GPUs, there is no index {xid.gpu}"

    for index, outage in enumerate(scenario.outages):
        if outage.node not in gpus:
            yield ("outages", index, "node"), f"there is no node `{outage.node}`"
        if outage.until is not None and outage.until.seconds <= outage.at.seconds:
            yield ("outages", index, "until"), "is not after `at`"


def _bad_quantity(text: str) -> str:
    try:
        parse_quantity(text)
    except ValueError as error:
        return str(error)
    return ""


def _bad_amounts(amounts: Mapping[str, str | int]) -> str:
    try:
        parse_amounts(amounts)
    except ValueError as error:
        return str(error)
    return ""

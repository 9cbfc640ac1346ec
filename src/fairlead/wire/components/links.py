"""Addresses of the pages of a component, as its Ingresses name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

_RELEASE: Final = "meta.helm.sh/release-name"
_HOST: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PATH: Final = re.compile(r"/[-\w.~/]{0,200}", re.ASCII)


def page_links(ingresses: Iterable[Any], names: Iterable[str], release: str) -> list[str]:
    """Of the Ingresses with these names, and of those of the Helm release; "" = no release.

    A host with a wildcard, and a path that is an expression, make no link.

    >>> rule = {"host": "grafana.example", "http": {"paths": [{"path": "/g"}, {"path": "/(.*)"}]}}
    >>> page_links([{"metadata": {"name": "a"}, "spec": {"rules": [rule]}}], ["a"], "")
    ['http://grafana.example/g']
    """
    own = set(names)
    found = (
        link
        for each in ingresses
        if each["metadata"]["name"] in own
        or (release and (each["metadata"].get("annotations") or {}).get(_RELEASE) == release)
        for link in _links(each.get("spec") or {})
    )
    return list(dict.fromkeys(found))


def _links(spec: Any) -> Iterator[str]:
    encrypted = {host for each in spec.get("tls") or () for host in each.get("hosts") or ()}
    for rule in spec.get("rules") or ():
        host = str(rule.get("host") or "")
        if not _HOST.fullmatch(host):
            continue
        scheme = "https" if host in encrypted else "http"
        for each in (rule.get("http") or {}).get("paths") or ({"path": "/"},):
            path = str(each.get("path") or "/")
            if _PATH.fullmatch(path):
                yield f"{scheme}://{host}{path}"

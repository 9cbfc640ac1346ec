"""The DNS settings, users and groups of a pod that the API server refuses."""

from __future__ import annotations

import ipaddress
from typing import Any

from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.names import search_domain_faults
from fairlead_sim.schema.status import FieldError, required, wrong_value
from fairlead_sim.validation.field_rules import between, fields, object_of, objects_of

_ID = between(0, 2**31 - 1)
_MOST_SERVERS = 3
_MOST_DOMAINS = 32
_MOST_DOMAIN_CHARACTERS = 2048


def _each_id(field: str, ids: Any) -> list[FieldError]:
    return [
        error
        for index, number in enumerate(ids if isinstance(ids, list) else ())
        for error in _ID(f"{field}[{index}]", number)
    ]


user_errors = fields(
    {"fsGroup": _ID, "runAsUser": _ID, "runAsGroup": _ID, "supplementalGroups": _each_id}
)
"""The faults of a security context, a pod's or a container's."""


def dns_errors(field: str, spec: Object) -> list[FieldError]:
    """The faults of `dnsConfig`, which a pod without the cluster's DNS needs."""
    config, here = object_of(spec, "dnsConfig"), f"{field}.dnsConfig"
    servers, domains = (_texts(config.get(key)) for key in ("nameservers", "searches"))
    if spec.get("dnsPolicy") == "None" and spec.get("dnsConfig") is None:
        return [required(here, "must provide `dnsConfig` when `dnsPolicy` is None")]
    if spec.get("dnsPolicy") == "None" and not servers:
        return [
            required(
                f"{here}.nameservers",
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            )
        ]
    errors = []
    if len(servers) > _MOST_SERVERS:
        errors.append(
            wrong_value(
                f"{here}.nameservers",
                servers,
                f"must not have more than {_MOST_SERVERS} nameservers",
            )
        )
    why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    strangers = [(index, server) for index, server in enumerate(servers) if not is_address(server)]
    errors += [
        wrong_value(f"{here}.nameservers[{index}]", server, why) for index, server in strangers
    ]
    if len(domains) > _MOST_DOMAINS:
        errors.append(
            wrong_value(
                f"{here}.searches",
                domains,
                f"must not have more than {_MOST_DOMAINS} search paths",
            )
        )
    if len(" ".join(domains)) > _MOST_DOMAIN_CHARACTERS:
        why = (
            f"must not have more than {_MOST_DOMAIN_CHARACTERS} characters (including spaces) in "
            "the search list"
        )
        errors.append(wrong_value(f"{here}.searches", domains, why))
    for index, domain in enumerate(domains):
        bare = domain.removesuffix(".")
        errors += [
            wrong_value(f"{here}.searches[{index}]", bare, why)
            for why in (search_domain_faults(bare) if domain != "." else ())
        ]
    nameless = [
        index
        for index, option in enumerate(objects_of(config, "options"))
        if not option.get("name")
    ]
    return errors + [
        required(f"{here}.options[{index}]", "must not be empty") for index in nameless
    ]


def _texts(held: Any) -> list[str]:
    return [item for item in held if isinstance(item, str)] if isinstance(held, list) else []


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

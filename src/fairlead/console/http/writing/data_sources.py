"""A data set over an object store, a claim or another source, as an operation.

Specification: docs/spec/console.md#writing-data-sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from starlette.requests import Request

from fairlead.console.http.subjects import require
from fairlead.console.http.writing.datasets import (
    DataPlans,
    acceleration_line,
    asked_acceleration,
    asked_cache,
    cache_flags,
    command_line,
)
from fairlead.console.http.writing.frame import PlannedWrite, invalid
from fairlead.console.pages.data.datasets import AccelerationOrder, DataSetOrder
from fairlead.console.pages.envelope import FieldFault
from fairlead.model.jobs.acceleration import Acceleration, CachedSource, Medium
from fairlead.model.jobs.datasets import SecretOption
from fairlead.model.people.permission import ConsoleResource, ConsoleVerb, Right
from fairlead.rules.data.acceleration import check_acceleration, chosen_acceleration
from fairlead.rules.data.mounts import CLAIM_SCHEME
from fairlead.rules.data.sources import (
    DEFAULT_KEYS,
    ENDPOINT_OPTIONS,
    KEY_OPTIONS,
    SECRET_KEY,
    SECRET_NAME,
    UNKNOWN_MEMORY,
    check_source,
    scheme_of,
    uri_fault,
)

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_ENDPOINT: Final = re.compile(r"[^\s@?#]{1,253}", re.ASCII)
_CREATE: Final = Right(ConsoleVerb.CREATE, ConsoleResource.DATASETS)


async def plan_data_set(plans: DataPlans, request: Request, order: DataSetOrder) -> PlannedWrite:
    """Raises Refused: 422 for a field that cannot be read."""
    require(request, _CREATE, order.namespace)
    if order.mount.startswith(CLAIM_SCHEME):
        return await _over_claim(plans, request, order)
    quota, faults = asked_cache(order)
    faults = [*_place_faults(order), *source_faults(order), *faults]
    if faults:
        raise invalid(faults)
    if not quota and order.medium == "MEM":
        quota = UNKNOWN_MEMORY
    source = asked_source(order)
    medium: Medium = "SSD" if order.medium == "SSD" else "MEM"
    namespace = order.namespace
    cache = (order.workers, medium, quota)
    asked = Acceleration(namespace, "", order.name, "", *cache, source=source)
    facts = await plans.data.facts(namespace, "", order.name)
    chosen = chosen_acceleration(
        facts, asked, has_workers=bool(order.workers), has_quota=bool(quota)
    )
    secrets = {each: await plans.data.has_secret(namespace, each) for each in source.secret_names}
    found = check_source(facts, chosen, source, secrets)
    return await plans.cache(request, facts, chosen, found, adding_line(order, chosen))


async def _over_claim(plans: DataPlans, request: Request, order: DataSetOrder) -> PlannedWrite:
    claim, _, folder = order.mount.removeprefix(CLAIM_SCHEME).partition("/")
    wanted = AccelerationOrder(order.name, folder, order.workers, order.medium, order.quota)
    asked, faults = asked_acceleration(order.namespace, claim, wanted)
    faults = [
        FieldFault("mount", each.rule, each.error) if each.path == "folder" else each
        for each in faults
    ]
    for path, text in (("endpoint", order.endpoint), ("secret", order.secret)):
        if text:
            what = "a claim has neither an endpoint nor keys: leave it empty"
            faults.append(FieldFault(path, path, what))
    if not SECRET_NAME.fullmatch(claim):
        what = f"`{claim[:100]}` is no name of a claim; for example `pvc://raw/images`"
        faults.append(FieldFault("mount", "mount", what))
    faults = [*_place_faults(order), *faults]
    if faults:
        raise invalid(faults)
    facts = await plans.data.facts(order.namespace, claim, order.name)
    chosen = chosen_acceleration(
        facts, asked, has_workers=bool(order.workers), has_quota=bool(order.quota)
    )
    found = check_acceleration(facts, chosen)
    return await plans.cache(request, facts, chosen, found, acceleration_line(chosen))


def _place_faults(order: DataSetOrder) -> Iterator[FieldFault]:
    if not _LABEL.fullmatch(order.namespace):
        what = f"`{order.namespace[:100]}` is no name of a namespace; for example `team-a`"
        yield FieldFault("namespace", "namespace", what)
    if not SECRET_NAME.fullmatch(order.name):
        what = f"`{order.name[:100]}` is no name of a data set; for example `faces`"
        yield FieldFault("name", "name", what)


def source_faults(order: DataSetOrder) -> list[FieldFault]:
    """What is wrong with source, endpoint and Secret. No text that may be a key is repeated.

    >>> order = DataSetOrder("n", "d", "https://example.org/data", "oss.example", "My Keys")
    >>> [each.path for each in source_faults(order)]
    ['endpoint', 'secret']
    """
    what, hint = uri_fault(order.mount)
    if what:
        return [FieldFault("mount", "mount", f"{what[:200]}: {hint}")]
    return [*_endpoint_faults(order), *_secret_faults(order)]


def _endpoint_faults(order: DataSetOrder) -> Iterator[FieldFault]:
    scheme = scheme_of(order.mount)
    if order.endpoint and scheme not in ENDPOINT_OPTIONS:
        what = f"`{scheme}` has no endpoint: it is for {' and '.join(ENDPOINT_OPTIONS)}"
        yield FieldFault("endpoint", "endpoint", what)
    elif order.endpoint and not _ENDPOINT.fullmatch(order.endpoint):
        what = "it names a user, a query or a blank: only scheme, host and port"
        yield FieldFault("endpoint", "endpoint", what)


def _secret_faults(order: DataSetOrder) -> Iterator[FieldFault]:
    if not order.secret:
        for path, text in (("idKey", order.id_key), ("secretKey", order.secret_key)):
            if text:
                yield FieldFault(path, "secret", "name the Secret that has the key, too")
        return
    scheme = scheme_of(order.mount)
    if scheme not in KEY_OPTIONS:
        what = f"`{scheme}` has no keys: it is for {' and '.join(KEY_OPTIONS)}"
        yield FieldFault("secret", "secret", what)
    elif not SECRET_NAME.fullmatch(order.secret):
        what = "it is no name of a Secret: small letters, digits, `-` and `.`"
        yield FieldFault("secret", "secret", what)
    for path, text in (("idKey", order.id_key), ("secretKey", order.secret_key)):
        if text and not SECRET_KEY.fullmatch(text):
            what = "it is no name of a key in a Secret: letters, digits, `-`, `_` and `.`"
            yield FieldFault(path, "secret", what)


def asked_source(order: DataSetOrder) -> CachedSource:
    """The source, with the options of its object store.

    >>> asked_source(DataSetOrder("n", "d", "s3://b", "s3.example")).options
    (('alluxio.underfs.s3.endpoint', 's3.example'),)
    """
    scheme = scheme_of(order.mount)
    options = ((ENDPOINT_OPTIONS[scheme], order.endpoint),) if order.endpoint else ()
    secrets = zip(KEY_OPTIONS[scheme], _keys(order), strict=True) if order.secret else ()
    return CachedSource(
        order.mount,
        options,
        tuple(SecretOption(option, order.secret, key) for option, key in secrets),
    )


def _keys(order: DataSetOrder) -> tuple[str, str]:
    """Their names in the Secret."""
    return order.id_key or DEFAULT_KEYS[0], order.secret_key or DEFAULT_KEYS[1]


def adding_line(order: DataSetOrder, chosen: Acceleration) -> str:
    """The command that does the same.

    >>> order = DataSetOrder("n", "faces", "oss://b/faces", secret="keys", id_key="id")
    >>> adding_line(order, Acceleration("n", "", "faces", workers=2, quota=16 << 30))
    'fairlead dataset add faces -n n --mount oss://b/faces --from-secret keys:id,accessKeySecret \
--workers 2 --quota 16Gi'
    """
    words = ["fairlead", "dataset", "add", order.name, "-n", order.namespace]
    words += ["--mount", order.mount]
    if order.endpoint:
        words += ["--endpoint", order.endpoint]
    if order.secret:
        keys = _keys(order)
        named = "" if keys == DEFAULT_KEYS else f":{','.join(keys)}"
        words += ["--from-secret", f"{order.secret}{named}"]
    return command_line([*words, *cache_flags(chosen)])

"""Reads what `fairlead doctor` judges: the cluster, and an installation if there is one. Blocking.

Nothing is written: objects are applied in a dry run. What may not be read is reported as `Unread`,
and does not prevent reading the rest.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from fairlead import __version__
from fairlead.edge.connection.certificate import validity
from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.connection.timestamp import clock_offset
from fairlead.edge.kube.api_discovery import ServerVersion
from fairlead.edge.kube.api_failure import ApiFailure, ForbiddenByServer
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEASES,
    NODES,
    PODS,
    SECRETS,
    Resource,
)
from fairlead.edge.queries.installation_target import (
    VERSION,
    KubeInstallationTarget,
    in_groups,
    is_own,
)
from fairlead.edge.queries.installed import read_installed
from fairlead.errors import Forbidden, NotFound, OutsideError
from fairlead.model.actions import Manifest, ObjectRef, kind_titles, object_ref
from fairlead.model.installation import Installation
from fairlead.model.installed.facts import (
    CertificateFact,
    DefinitionFact,
    InstallationFacts,
    InventoryFact,
    LeaseFact,
    Mismatch,
    ObjectFact,
    PodFact,
    SecretFact,
    ServerFact,
    Unread,
)
from fairlead.settings import (
    HELM_CHART,
    NODE_AGENT_POD,
    SIGN_IN_KEY_SECRET,
    USERS_NAMESPACE,
)
from fairlead.wire.installation import seen_objects
from fairlead.wire.installation.components import installed_objects
from fairlead.wire.installation.inventory import COMPLETE, Inventory
from fairlead.wire.installation.policies.policy_parts import WEBHOOK_SERVICE
from fairlead.wire.installation.seen_objects import named_in_roles, node_choice_of
from fairlead.wire.kube.forms import JsonForm

NODE_LEASES: Final = "kube-node-lease"
_KUBE_SYSTEM: Final = "kube-system"
_DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", kind="DaemonSet")
_END: Final = b"-----END CERTIFICATE-----"
Result = TypeVar("Result")
Row = TypeVar("Row")


def read_facts(
    api: KubeBlocking,
    choose: Callable[[str], Installation],
    now: Callable[[], float] = time.time,
) -> InstallationFacts:
    """`choose` makes the values that are to be judged from those of the inventory (YAML; "" without
    one). Raises OutsideError when the API server does not answer at all.
    """
    return _Reading(api, choose, now).facts()


class _Reading:
    """One reading: what all parts of it need."""

    def __init__(
        self,
        api: KubeBlocking,
        choose: Callable[[str], Installation],
        now: Callable[[], float],
    ) -> None:
        self._api = api
        self._cluster = KubeInstallationTarget(api)
        self._server = read_server(api, now)
        self._inventory = self._read_inventory()
        before = self._inventory
        self._chosen = choose(before.values if isinstance(before, Inventory) else "")
        self._wanted = tuple(installed_objects(self._chosen))
        self._refs = [object_ref(each) for each in self._wanted]
        self._clock = now
        self._now = now()

    def facts(self) -> InstallationFacts:
        unserved = _asked(lambda: self._cluster.unserved(self._refs))
        # No pod of Fairlead's is in the users namespace, which may be another program's.
        spaces = [
            each.name
            for each in self._refs
            if each.kind == "Namespace" and each.name != USERS_NAMESPACE
        ]
        left_out = () if isinstance(unserved, Unread) else unserved
        objects = self._objects(left_out)
        read = _all_asked(
            {
                "denied": partial(self._denied, left_out),
                "pods": partial(self._pods, spaces),
                "leases": partial(self._leases, spaces),
                "deployments": partial(_listed, self._api, *_DEPLOYMENT_ROWS),
                "daemon_sets": partial(_listed, self._api, *_DAEMON_SET_ROWS),
                "extenders": partial(_listed, self._api, *_EXTENDER_ROWS, namespace=_KUBE_SYSTEM),
                "nodes": partial(_listed, self._api, *_NODE_ROWS),
                "node_leases": partial(_listed, self._api, *_LEASE_ROWS, namespace=NODE_LEASES),
                "releases": partial(
                    self._cluster.helm_releases, self._chosen.namespace, HELM_CHART
                ),
                "prometheus": partial(_prometheus, self._api),
                "definitions": self._definitions,
                "certificates": partial(self._certificates, objects),
                "pull_secrets": self._pull_secrets,
                "console_secrets": self._console_secrets,
            }
        )
        kinds = (read.pop("deployments"), read.pop("daemon_sets"))
        unlisted = [each for each in kinds if isinstance(each, Unread)]
        return InstallationFacts(
            now=self._now,
            program_version=__version__,
            chosen=self._chosen,
            wanted=self._wanted,
            server=self._server,
            agent=self._agent(),
            unserved=unserved if isinstance(unserved, Unread) else tuple(kind_titles(unserved)),
            namespaces=_all_asked({each: partial(self._namespace, each) for each in spaces}),
            inventory=self._inventory_fact(),
            objects=objects,
            workloads=unlisted[0] if unlisted else (*kinds[0], *kinds[1]),
            read_seconds=self._clock() - self._now,
            **read,
        )

    def _namespace(self, name: str) -> Manifest | None:
        return self._cluster.get(ObjectRef("v1", "Namespace", name))

    def _read_inventory(self) -> Inventory | Unread | None:
        return _asked(partial(read_installed, self._cluster))

    def _inventory_fact(self) -> InventoryFact | Unread | None:
        found = self._inventory
        if isinstance(found, Inventory):
            return InventoryFact(found.version, found.state == COMPLETE, found.release)
        return found

    def _agent(self) -> Any:
        agents = (
            each
            for each in self._wanted
            if (each["kind"], each["metadata"]["name"]) == ("DaemonSet", NODE_AGENT_POD)
        )
        return next(map(node_choice_of, agents), None)

    def _objects(self, unserved: Sequence[ObjectRef]) -> tuple[ObjectFact, ...]:
        """The objects of the inventory, each with the result of a dry run."""
        if not isinstance(self._inventory, Inventory):
            return ()
        refs = self._inventory.objects
        found = [
            _asked(partial(_value, each))
            for each in in_groups([partial(self._cluster.get, each) for each in refs])
        ]
        wanted = {object_ref(each).identity: each for each in self._wanted}
        tried = [
            wanted[ref.identity]
            for ref, each in zip(refs, found, strict=True)
            if ref.identity in wanted and isinstance(each, dict) and ref not in unserved
        ]
        if self._inventory.version != __version__:
            tried = []
        # Helm 3 owns fields with the API server's defaults in them. Without force what is wanted
        # conflicts with them although no program changed anything.
        is_helms = bool(self._inventory.release)
        answers = self._cluster.try_objects(tried, is_forced=is_helms)
        results = {
            object_ref(each).identity: trial_result(answer)
            for each, answer in zip(tried, answers, strict=True)
        }
        return tuple(
            ObjectFact(ref, each, results.get(ref.identity))
            for ref, each in zip(refs, found, strict=True)
        )

    def _denied(self, unserved: Sequence[ObjectRef]) -> tuple[str, ...]:
        served = [each for each in self._refs if each not in unserved]
        return tuple(
            f"{each.kind} {f'in {each.namespace}' if each.namespace else ''}".rstrip()
            for each in self._cluster.may_write(served)
        )

    def _definitions(self) -> tuple[DefinitionFact, ...]:
        """Wanted definitions outside of the inventory."""
        own = set()
        if isinstance(self._inventory, Inventory):
            own = {each.identity for each in self._inventory.objects}
        return tuple(
            self._definition(each)
            for each in self._wanted
            if each["kind"] == "CustomResourceDefinition" and object_ref(each).identity not in own
        )

    def _definition(self, wanted: Manifest) -> DefinitionFact:
        found = _asked(partial(self._cluster.get, object_ref(wanted)))
        return DefinitionFact(wanted, found, isinstance(found, dict) and is_own(found))

    def _pods(self, spaces: Iterable[str]) -> tuple[PodFact, ...]:
        rows = [_listed(self._api, *_POD_ROWS, namespace=each) for each in spaces]
        return tuple(pod for each in rows for pod in each)

    def _leases(self, spaces: Iterable[str]) -> tuple[LeaseFact | Unread, ...]:
        """The Leases that a Role of the installation names, found or not."""
        named = named_in_roles(self._wanted, "leases")
        rows = [
            _asked(partial(_listed, self._api, *_LEASE_ROWS, namespace=each)) for each in spaces
        ]
        unread = [each for each in rows if isinstance(each, Unread)]
        if unread:
            return tuple(unread)
        found = {
            (each.namespace, each.name): each
            for row in rows
            if not isinstance(row, Unread)
            for each in row
        }
        return tuple(found.get(each) or LeaseFact(*each) for each in named)

    def _certificates(self, objects: Iterable[ObjectFact]) -> tuple[CertificateFact, ...]:
        """Authorities in webhooks, and the certificate of their server, if a Role names it."""
        found = [
            CertificateFact(f"{each.ref.kind} {each.ref.name}", _authority_end(each.found))
            for each in objects
            if "Webhook" in each.ref.kind and isinstance(each.found, dict)
        ]
        if isinstance(self._inventory, Inventory):
            found += [
                CertificateFact(
                    f"Secret {space}/{name}", _asked(partial(self._secret, space, name))
                )
                for space, name in named_in_roles(self._wanted, "secrets")
                if name == WEBHOOK_SERVICE
            ]
        return tuple(found)

    def _secret(self, namespace: str, name: str) -> float | None:
        secret = self._found_secret(namespace, name)
        return None if secret is None else _end_of((secret.get("data") or {}).get("tls.crt") or "")

    def _pull_secrets(self) -> tuple[SecretFact, ...]:
        """Those of the values, in each namespace with pods. Of their content nothing is kept."""
        return tuple(
            SecretFact(space, name, _asked(partial(self._type_of_secret, space, name)))
            for space in (self._chosen.namespace, self._chosen.node_namespace)
            for name in self._chosen.pull_secrets
        )

    def _console_secrets(self) -> tuple[SecretFact, ...]:
        chosen = self._chosen
        if not (chosen.parts.console and chosen.sign_in.enabled):
            return ()
        return tuple(
            SecretFact(space, name, _asked(partial(self._type_of_secret, space, name)))
            for space in (chosen.namespace,)
            for name in (SIGN_IN_KEY_SECRET, chosen.sign_in.secret, chosen.ingress.tls_secret)
            if name
        )

    def _type_of_secret(self, namespace: str, name: str) -> str | None:
        secret = self._found_secret(namespace, name)
        return None if secret is None else str(secret.get("type") or "Opaque")

    def _found_secret(self, namespace: str, name: str) -> Any:
        """None if it does not exist."""
        try:
            return self._api.get(SECRETS, name, namespace)
        except NotFound:
            return None


_POD_ROWS: Final = (PODS, JsonForm(seen_objects.SeenPod, seen_objects.parse_seen_pod))
_LEASE_ROWS: Final = (LEASES, JsonForm(seen_objects.SeenLease, seen_objects.parse_seen_lease))
_NODE_ROWS: Final = (NODES, JsonForm(seen_objects.SeenNode, seen_objects.parse_seen_node))
_DEPLOYMENT_ROWS: Final = (
    DEPLOYMENTS,
    JsonForm(seen_objects.SeenWorkload, seen_objects.parse_seen_deployment),
)
_DAEMON_SET_ROWS: Final = (
    _DAEMON_SETS,
    JsonForm(seen_objects.SeenWorkload, seen_objects.parse_seen_daemon_set),
)
_EXTENDER_ROWS: Final = (
    CONFIG_MAPS,
    JsonForm(seen_objects.SeenConfigMap, seen_objects.parse_seen_extenders),
)


def read_server(api: KubeBlocking, now: Callable[[], float]) -> ServerFact:
    begun_at, begun = now(), time.monotonic()
    try:
        answer = api.send(VERSION)
    except Forbidden:
        return ServerFact("", None, None)
    seconds = time.monotonic() - begun
    version = decoder_of(ServerVersion).decode(answer.body)
    return ServerFact(
        version.git_version,
        version.numbers,
        clock_offset(answer.headers.get("Date"), begun_at, seconds),
    )


def _listed(
    api: KubeBlocking, resource: Resource, form: JsonForm[Row], namespace: str = ""
) -> tuple[Row, ...]:
    selection = Selection(namespace or None)
    return tuple(api.list_all(ItemReader(resource, form), selection).rows.values())


def _prometheus(api: KubeBlocking) -> str:
    from fairlead.edge.queries.gpu_query import NoPrometheus, find_service

    try:
        return find_service(api)
    except NoPrometheus:
        return ""


def _asked(call: Callable[[], Result]) -> Result | Unread:
    try:
        return call()
    except OutsideError as error:
        return Unread(error.what)


def _all_asked(calls: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """The results by name; the calls run in parallel."""
    answers = in_groups(list(calls.values()))
    return {name: _asked(partial(_value, each)) for name, each in zip(calls, answers, strict=True)}


def _value(answer: Result | Exception) -> Result:
    if isinstance(answer, Exception):
        raise answer
    return answer


def trial_result(answer: Manifest | Exception) -> Manifest | Mismatch | Unread:
    """The result of a dry run. An answer other than 403 is about the object itself."""
    if isinstance(answer, ForbiddenByServer):
        return Unread(answer.what)
    if isinstance(answer, ApiFailure) and answer.status:
        return Mismatch(answer.message)
    if isinstance(answer, OutsideError):
        return Unread(answer.what)
    return _value(answer)


def _authority_end(configuration: Manifest) -> float | None:
    """The first end among its webhooks; None if one of them has no authority."""
    ends = [
        _end_of((each.get("clientConfig") or {}).get("caBundle") or "")
        for each in configuration.get("webhooks") or ()
    ]
    known = [each for each in ends if each is not None]
    return min(known) if known and len(known) == len(ends) else None


def _end_of(encoded: str) -> float | None:
    """When the certificate of base64 PEM that is valid longest ends."""
    try:
        pem = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    blocks = [block + _END for block in pem.split(_END)[:-1]]
    ends = [times[1] for block in blocks if (times := validity(block)) is not None]
    return max(ends, default=None)

"""Which jobs and pods mount which claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.acceleration import DataUser
from fairlead.model.pod import Pod

POD: Final = "Pod"


class ClaimUser(Struct, frozen=True, order=True):
    """A job, another owner of pods, or a pod that a person made. `job`: `type/name` of a training
    job, "" = it is none.
    """

    kind: str
    name: str
    job: str = ""

    @property
    def title(self) -> str:
        """
        >>> ClaimUser("MPIJob", "bert").title, ClaimUser("Pod", "reader").title
        ('MPIJob/bert', 'reader')
        """
        return self.name if self.kind == POD else f"{self.kind}/{self.name}"


class ClaimUsers(Struct, frozen=True):
    """`by_claim`: by namespace and name of the claim, sorted by title. `by_pod`: by `Pod.key`."""

    by_claim: Mapping[tuple[str, str], tuple[ClaimUser, ...]] = {}
    by_pod: Mapping[str, ClaimUser] = {}


def claim_users(pods: Iterable[Pod], owner_of: Callable[[Pod], ClaimUser]) -> ClaimUsers:
    """Of pods that have not ended.

    >>> worker, reader = (Pod("a", name, claims=("raw",)) for name in ("bert-0", "reader"))
    >>> jobs = {"bert-0": ClaimUser("MPIJob", "bert", "mpijob/bert")}
    >>> found = claim_users([worker, reader], lambda pod: jobs.get(pod.name) or pod_user(pod.name))
    >>> [each.title for each in found.by_claim["a", "raw"]]
    ['MPIJob/bert', 'reader']
    """
    found: dict[tuple[str, str], set[ClaimUser]] = {}
    by_pod: dict[str, ClaimUser] = {}
    for pod in pods:
        if pod.claims and not pod.is_finished:
            by_pod[pod.key] = owner = owner_of(pod)
            for claim in pod.claims:
                found.setdefault((pod.namespace, claim), set()).add(owner)
    by_claim = {key: tuple(sorted(each, key=_by_title)) for key, each in found.items()}
    return ClaimUsers(by_claim, by_pod)


def pod_user(name: str) -> ClaimUser:
    return ClaimUser(POD, name)


def by_owner(users: Iterable[DataUser]) -> list[tuple[ClaimUser, list[DataUser]]]:
    """What uses a claim, sorted by title, each with its pods.

    >>> from fairlead.model.pod import Owner
    >>> bert = Owner("MPIJob", "bert", "uid")
    >>> pods = [DataUser("a", name, "raw", owner=bert) for name in ("bert-0", "bert-1")]
    >>> [(each.title, len(mine)) for each, mine in by_owner([DataUser("a", "x", "raw"), *pods])]
    [('MPIJob/bert', 2), ('x', 1)]
    """
    found: dict[ClaimUser, list[DataUser]] = {}
    for each in users:
        made = each.owner
        user = pod_user(each.name) if made is None else ClaimUser(made.kind, made.name)
        found.setdefault(user, []).append(each)
    return sorted(found.items(), key=lambda item: _by_title(item[0]))


def _by_title(user: ClaimUser) -> str:
    return user.title

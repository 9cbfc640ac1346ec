"""What can be done to the cluster, as values, and how it ended. Rules make actions, worlds carry them out."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from fairlead.model.node import Node
from fairlead.model.pod import GrantsByContainer, Pod


class BindPod(Struct, frozen=True):
    """Set the pod's node and write its grants in one call, of this very pod (uid).

    `card_units`: units of the card on which it sits, for annotations that name one card.
    """

    pod: Pod
    node: str
    grants: GrantsByContainer
    card_units: int = 0


class WriteGrants(Struct, frozen=True):
    """Write the grants of a pod that is on its node already. `is_first`: not in the place of damaged ones."""

    pod: Pod
    grants: GrantsByContainer
    card_units: int
    is_first: bool


class TouchPod(Struct, frozen=True):
    """Change an annotation of a waiting pod, so that kube-scheduler tries it again."""

    pod: Pod


class TellEvent(Struct, frozen=True):
    """A Warning Event about a pod or a node."""

    subject: Pod | Node
    reason: str
    message: str


Action = BindPod | WriteGrants | TouchPod | TellEvent


class Result(Enum):
    """`UNKNOWN`: it may have been done, or may yet be. `GONE`: the object is not there any more."""

    DONE = "done"
    REFUSED = "refused"
    GONE = "gone"
    UNKNOWN = "unknown"


class Outcome(Struct, frozen=True):
    """How an action ended; `reason` in the words of who refused it."""

    result: Result = Result.DONE
    reason: str = ""

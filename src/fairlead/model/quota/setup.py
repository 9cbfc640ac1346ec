"""How quota is installed in a cluster: what of it is there, who works, which rights it lacks; or built in."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.moment import Moment


class QuotaSetup(Struct, frozen=True):
    """`missing`: objects (`Kind/name`) that are not there; what `unasked` names could not be asked, and why.

    `webhooks`: webhook configurations of quota, `Kind/name`. `holder` "" = nobody works; its Lease holds for
    `lease_seconds` from `renewed_at`. `ready`: replicas of the controller; None = it has no Deployment.
    `denied`: what the controller's account may not do.
    """

    missing: tuple[str, ...] = ()
    webhooks: tuple[str, ...] = ()
    holder: str = ""
    renewed_at: Moment = 0.0
    lease_seconds: int = 0
    ready: int | None = None
    denied: tuple[str, ...] = ()
    unasked: Mapping[str, str] = {}


class BuiltInQuota(Struct, frozen=True):
    """Of a cluster that has quota without installed objects, as a laptop: how it answers pods that are tried.

    They are tried in `namespace`, which is on a leaf; "" = no namespace is enforced. `has_gate`: a new pod
    gets the quota gate. `is_guarded`: a pod that names another leaf is refused. None = it could not be tried,
    and `unasked` says why.
    """

    namespace: str = ""
    has_gate: bool | None = None
    is_guarded: bool | None = None
    unasked: str = ""

"""How quota is installed: missing objects, active controller, missing rights; or built in."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.installation import SYSTEM_NAMESPACE
from fairlead.model.moment import Moment


class QuotaSetup(Struct, frozen=True):
    """The installation of quota.

    `missing`: absent objects (`Kind/name`); `unasked`: objects that could not be read, with the
    reason.

    `webhooks`: webhook configurations of quota, `Kind/name`. `holder` "" = no controller is active;
    its Lease is valid for `lease_seconds` from `renewed_at`. `ready`: ready replicas of the
    controller; None = it has no Deployment. `denied`: rights that the controller's ServiceAccount
    lacks. `namespace`: of the controller. `release`: the Helm release that is installed; "" =
    `fairlead install` did it; None = neither, or this user may not read it. `is_part`: whether
    quota is a part of that installation.
    """

    missing: tuple[str, ...] = ()
    webhooks: tuple[str, ...] = ()
    holder: str = ""
    renewed_at: Moment = 0.0
    lease_seconds: int = 0
    ready: int | None = None
    denied: tuple[str, ...] = ()
    unasked: Mapping[str, str] = {}
    namespace: str = SYSTEM_NAMESPACE
    release: str | None = None
    is_part: bool = True


class BuiltInQuota(Struct, frozen=True):
    """Quota without installed objects, as on a laptop: the result of creating trial pods.

    The trial was in `namespace`, which is on a leaf; "" = no namespace is enforced. `has_gate`: a
    new pod gets the quota gate. `is_guarded`: a pod that names another leaf is refused. None = no
    trial was possible, for the reason `unasked`.
    """

    namespace: str = ""
    has_gate: bool | None = None
    is_guarded: bool | None = None
    unasked: str = ""

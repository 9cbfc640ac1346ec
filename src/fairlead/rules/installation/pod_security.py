"""What of a pod the Pod Security Standards refuse, for the fields that Fairlead's pods use.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/. The controls for
Windows, AppArmor, SELinux, sysctls and /proc are left out: no pod of Fairlead sets them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

LEVELS: Final = ("privileged", "baseline", "restricted")
"""From the most permissive to the strictest."""
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
"""The label of a namespace with the level that its pods must meet. Without it the API server's own
default holds, which is `privileged` unless its administrator configured another.
"""
_BASELINE_ADDED: Final = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_RESTRICTED_VOLUMES: Final = frozenset(
    (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral"),
        *("persistentVolumeClaim", "projected", "secret"),
    )
)
_SECCOMP: Final = ("RuntimeDefault", "Localhost")


def violations(spec: Any, level: str) -> list[str]:
    """Fields of a pod's spec that the level refuses; none for `privileged`.

    >>> violations({"hostPID": True, "containers": [{"name": "c"}]}, "baseline")
    ['hostPID']
    """
    if level not in LEVELS[1:]:
        return []
    found = [*_baseline(spec)]
    if level == "restricted":
        found += _restricted(spec)
    return list(dict.fromkeys(found))


def _baseline(spec: Any) -> Iterator[str]:
    yield from (name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name))
    for volume in spec.get("volumes") or ():
        if "hostPath" in volume:
            yield f"hostPath volume `{volume['name']}`"
    for each in _containers(spec):
        context = each.get("securityContext") or {}
        where = f"container `{each['name']}`"
        if context.get("privileged"):
            yield f"privileged {where}"
        for name in _added(context):
            if name not in _BASELINE_ADDED:
                yield f"capability {name} of {where}"
        for port in each.get("ports") or ():
            if port.get("hostPort"):
                yield f"hostPort {port['hostPort']} of {where}"
        if _seccomp(context) == "Unconfined":
            yield f"seccompProfile of {where}"
    if _seccomp(spec.get("securityContext") or {}) == "Unconfined":
        yield "seccompProfile"


def _restricted(spec: Any) -> Iterator[str]:
    pod = spec.get("securityContext") or {}
    for volume in spec.get("volumes") or ():
        kinds = set(volume) - {"name"}
        if "hostPath" not in kinds and not kinds <= _RESTRICTED_VOLUMES:
            yield f"volume `{volume['name']}`"
    for each in _containers(spec):
        context = each.get("securityContext") or {}
        where = f"container `{each['name']}`"
        if context.get("allowPrivilegeEscalation") is not False:
            yield f"allowPrivilegeEscalation of {where}"
        if context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
            yield f"runAsNonRoot of {where}"
        if context.get("runAsUser", pod.get("runAsUser")) == 0:
            yield f"runAsUser 0 of {where}"
        if (_seccomp(context) or _seccomp(pod)) not in _SECCOMP:
            yield f"seccompProfile of {where}"
        if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()):
            yield f"capabilities of {where}: ALL is not dropped"
        for name in _added(context):
            if name != "NET_BIND_SERVICE":
                yield f"capability {name} of {where}"


def _containers(spec: Any) -> list[Any]:
    return [*(spec.get("initContainers") or ()), *spec["containers"]]


def _added(context: Any) -> list[str]:
    return (context.get("capabilities") or {}).get("add") or []


def _seccomp(context: Any) -> str:
    return str((context.get("seccompProfile") or {}).get("type") or "")

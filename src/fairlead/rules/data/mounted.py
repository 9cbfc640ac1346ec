"""Which pods mount which claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead.model.pod import Pod

ClaimUsers = Mapping[tuple[str, str], tuple[str, ...]]
"""Names of pods by namespace and name of the claim."""


def pods_by_claim(pods: Iterable[Pod]) -> ClaimUsers:
    """Pods that have not ended, by name.

    >>> trainer = Pod("a", "trainer-0", claims=("raw", "logs"))
    >>> pods_by_claim([trainer, Pod("a", "other"), Pod("a", "second", claims=("raw",))])
    {('a', 'raw'): ('second', 'trainer-0'), ('a', 'logs'): ('trainer-0',)}
    """
    found: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        if pod.claims and not pod.is_finished:
            for claim in dict.fromkeys(pod.claims):
                found.setdefault((pod.namespace, claim), []).append(pod.name)
    return {key: tuple(sorted(names)) for key, names in found.items()}

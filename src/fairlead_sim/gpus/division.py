"""How MIG divides a card: the profiles of a model, and the instances of a list of them.

A card has seven slices of compute and eight of memory; a profile contains the number of each, the
second in gigabytes. NVIDIA numbers GPU instances by size and place, so that ids are not 0, 1, 2, ….
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.resources import MIG_PREFIX
from fairlead_sim.gpus.cards import CardModel

COMPUTE_SLICES: Final = 7
MEMORY_SLICES: Final = 8
_SIZES: Final = ((1, 1), (1, 2), (2, 2), (3, 4), (4, 4), (7, 8))
"""Slices of compute and of memory that go together."""
_FIRST_ID: Final = {7: 0, 4: 1, 3: 1, 2: 3, 1: 7}


class CardPart(Struct, frozen=True, gc=False):
    """One GPU instance with its one compute instance.

    `compute`: its part of the card's, 0..1; memory in MiB.
    """

    gpu_instance: int
    profile: str
    total_mib: int
    reserved_mib: int
    compute: float

    @property
    def memory_mib(self) -> int:
        """What a container can have of it."""
        return self.total_mib - self.reserved_mib


def profiles(model: CardModel) -> Mapping[str, tuple[int, int]]:
    """Its profiles with their slices of compute and memory; none for a card without MIG.

    >>> from fairlead_sim.gpus.cards import CARD_MODELS
    >>> list(profiles(CARD_MODELS["NVIDIA H200"]))
    ['1g.18gb', '1g.35gb', '2g.35gb', '3g.71gb', '4g.71gb', '7g.141gb']
    """
    gigabytes = dict(zip((1, 2, 4, 8), model.slice_gigabytes, strict=False))
    return {
        f"{compute}g.{gigabytes[memory]}gb": (compute, memory)
        for compute, memory in _SIZES
        if memory in gigabytes
    }


def bad_division(model: CardModel, wanted: Sequence[str]) -> str:
    """Why a card of this model cannot be divided so; "" = it can.

    >>> from fairlead_sim.gpus.cards import CARD_MODELS
    >>> bad_division(CARD_MODELS["Tesla T4"], ["1g.18gb"])
    'a Tesla T4 cannot be divided by MIG'
    >>> bad_division(CARD_MODELS["NVIDIA H200"], ["4g.71gb", "4g.71gb"])
    'these instances need 8 slices of compute, a card has 7'
    """
    known = profiles(model)
    if not known:
        return f"a {model.name} cannot be divided by MIG"
    for profile in wanted:
        if profile not in known:
            return f"`{profile}` is no profile of a {model.name}; it has {', '.join(known)}"
    for index, most, word in ((0, COMPUTE_SLICES, "compute"), (1, MEMORY_SLICES, "memory")):
        if (needed := sum(known[profile][index] for profile in wanted)) > most:
            return f"these instances need {needed} slices of {word}, a card has {most}"
    return ""


def divided(model: CardModel, wanted: Iterable[str]) -> tuple[CardPart, ...]:
    """The instances of these profiles, which the model has, by id.

    >>> from fairlead_sim.gpus.cards import CARD_MODELS
    >>> made = divided(CARD_MODELS["NVIDIA H200"], ["1g.18gb", "3g.71gb", "1g.18gb"])
    >>> [(each.gpu_instance, each.profile) for each in made]
    [(1, '3g.71gb'), (7, '1g.18gb'), (8, '1g.18gb')]
    """
    known, made = profiles(model), Counter[int]()
    found = []
    for profile in sorted(wanted, key=lambda profile: (-known[profile][0], -known[profile][1])):
        compute, memory = known[profile]
        first = _FIRST_ID[compute]
        total, reserved = (
            amount * memory // MEMORY_SLICES for amount in (model.total_mib, model.reserved_mib)
        )
        found.append(
            CardPart(first + made[first], profile, total, reserved, compute / COMPUTE_SLICES)
        )
        made[first] += 1
    return tuple(found)


def offered_profiles(capacity: Mapping[str, int], cards: int) -> tuple[str, ...]:
    """The instances of each of this number of equal cards of a node, from the node's capacity.

    >>> offered_profiles({"cpu": 96000, "nvidia.com/mig-1g.18gb": 4}, 2)
    ('1g.18gb', '1g.18gb')
    """
    counts = {
        name.removeprefix(MIG_PREFIX): amount
        for name, amount in capacity.items()
        if name.startswith(MIG_PREFIX)
    }
    return tuple(
        profile
        for profile, amount in counts.items()
        for _ in range(min(amount // max(1, cards), COMPUTE_SLICES))
    )

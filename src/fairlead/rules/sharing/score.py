"""How well a node suits a pod that shares a GPU: 0..10, from the cards that bind would choose.

Specification: docs/spec/gpu-sharing.md#choice-of-gpu-and-node.
"""

from __future__ import annotations

from fairlead.model.sharing import SPREAD, GpuNeed, Placement
from fairlead.rules.holding.account import CardAccount
from fairlead.rules.sharing.placement import Choice, held_of_cards


def node_score(choice: Choice, need: GpuNeed, policy: Placement) -> int:
    """The score of the worst of the chosen cards.

    Best fit prefers cards that end up full, and gives 0 to an unused card.
    """
    held = held_of_cards(choice, need)
    cards = {card.key: card for chosen in choice.values() for card in chosen}
    return min(card_score(card, held[key][0], policy) for key, card in cards.items())


def card_score(card: CardAccount, units: int, policy: Placement) -> int:
    """0..10 for taking `units` of the card.

    Best fit prefers a card that ends up full, and gives 0 to an unused one; spread prefers a card
    that stays empty.

    >>> card_score(CardAccount("u", 0, "u", 15, 16130, 0, used=4, free=11), 4, Placement.BINPACK)
    5
    >>> card_score(CardAccount("u", 0, "u", 15, 16130, 0, used=0, free=15), 4, Placement.BINPACK)
    0
    """
    leftover = max(0, card.free - units)
    if policy == SPREAD:
        return 10 * leftover // card.units
    if card.used == 0:
        return 0
    return 1 + 9 * (card.units - leftover) // card.units

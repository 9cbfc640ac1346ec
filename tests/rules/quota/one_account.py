"""Compares the numbers in the sentences of a plan with the numbers of its table."""

from __future__ import annotations

from fairlead.model.quota.plan import QuotaNodeUse, QuotaWaiting, Reason
from fairlead.model.quota.state import QuotaState
from fairlead.model.resources import amount_text

FULL = (
    *("in-use", "in-use-there", "in-use-promised", "in-use-there-promised"),
    *("at-max", "at-nodes", "at-max-promised", "at-nodes-promised"),
)


def wrong(row: QuotaWaiting, table: dict[str, QuotaNodeUse], state: QuotaState) -> list[str]:
    """Clauses of a sentence with a number that differs from the table."""
    found = []
    nodes = {node.name: node for node in state.tree.walk()}
    clauses = [(each.code, each.values, each.text) for each in row.clauses]
    resource = next((values["resource"] for _, values, _ in clauses if "resource" in values), "")
    for code, values, words in clauses:
        name = values.get("node") or values.get("leaf") or ""
        if name not in table or code in ("owed", "firm", "cap", "room-again", "min-is", "max-is"):
            continue
        own, named = table[name], values.get("resource") or resource
        if (code in FULL or "min" in values) and values["used"] != amount_text(
            named, own.used.get(named, 0)
        ):
            found.append(f"{words}: {name} uses {own.used}")
        if "claimed" in values and values["claimed"] != amount_text(
            named, own.claimed.get(named, 0)
        ):
            found.append(f"{words}: {name} has promised {own.claimed}")
        if "min" in values and code not in FULL:
            least = own.counted_min.get(named, nodes[name].min.get(named, 0))
            if values["min"] != amount_text(named, least):
                found.append(f"{words}: min of {name} counts as {least}")
    for each in row.blocked:
        own = table[each.node]
        used, claimed = own.used.get(each.resource, 0), own.claimed.get(each.resource, 0)
        # a unit's own claim does not block it
        is_own_claim = row.reason is Reason.WAITING_FOR_EVICTIONS
        if each.used != used or (
            each.claimed != claimed and not (is_own_claim and each.claimed < claimed)
        ):
            found.append(f"{each}: {each.node} uses {used} and has promised {claimed}")
    borrowed = {
        leaf.name: over
        for leaf in state.tree.leaves()
        if (over := table[leaf.name].borrowed.get(resource, 0))
    }
    for code, values, words in clauses:
        if code == "nobody-borrows" and borrowed:
            found.append(f"{words}: {borrowed}")
        if code == "borrowers":
            reported = dict(each.split(" +") for each in values["leaves"].split(", "))
            found += [
                f"{words}: {borrowed}"
                for leaf, over in reported.items()
                if over != amount_text(resource, borrowed.get(leaf, 0))
            ]
    return found

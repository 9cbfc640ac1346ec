"""Which tokens a user may ask for (docs/spec/people.md#renewal)."""

from __future__ import annotations

from fairlead.model.people.renewal import BOUND_ONLY, NOT_LONGER, OWN_ONLY, RENEWED_SECONDS_MAX
from fairlead.model.refusal import Refusal


def refuse_token(user: str, account: str, bound: tuple[str, str], seconds: int) -> Refusal | None:
    """`user`: the user. `account`: of which ServiceAccount the token is. `bound`: the kind and
    the uid of the object to which it is bound. A user that issues credentials is not asked about.

    >>> refuse_token("bob", "bob", ("Secret", "uid"), 3600)
    >>> refuse_token("bob", "bob", ("", ""), 3600).reason
    'a renewed token is bound to the Secret of its credential, by uid'
    """
    if user != account:
        return Refusal(OWN_ONLY)
    if bound[0] != "Secret" or not bound[1]:
        return Refusal(BOUND_ONLY)
    if seconds > RENEWED_SECONDS_MAX:
        return Refusal(NOT_LONGER)
    return None

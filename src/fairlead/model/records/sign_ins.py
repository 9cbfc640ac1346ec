"""Sign-ins, and keys that work once.

All times in `model/records` are integers: milliseconds since 1970, UTC.
"""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.people.subject import SignInWay


class SignIn(Struct, frozen=True):
    """A user who is signed in at the console.

    `hash`: SHA-256 of the cookie's id, 64 hexadecimal digits; the id itself is not kept.
    `identity`: the user as the API server or the OIDC provider names it (`issuer#sub`), `groups`
    those that came with it. `user`: the id of the User object, "" = there is none (an administrator
    who may update `users`). `csrf`: the value that writes must send back. `began_at`, `seen_at`:
    when it began and was last used. `ends_at`: when it ends, however much it is used. `bound_to`:
    the object with which the token of the sign-in ends (`BoundTo.text`), "" = none.

    Role and namespaces are not part of it: they are read at each request.
    """

    hash: str
    identity: str
    user: str
    way: SignInWay
    began_at: int
    seen_at: int
    ends_at: int
    csrf: str
    groups: tuple[str, ...] = ()
    source_ip: str = ""
    bound_to: str = ""


class SpentKey(Struct, frozen=True):
    """A key that was used and does not work again until `ends_at`: a state or a nonce of OIDC.

    `hash`: SHA-256 of the key, 64 hexadecimal digits.
    """

    hash: str
    ends_at: int

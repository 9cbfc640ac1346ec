"""Users of an OpenID Connect provider, and what is asked of it."""

from __future__ import annotations

from msgspec import Struct


class ExternalIdentity(Struct, frozen=True):
    """A user of the provider. `uid`: the claim that names the user. `name`: for pages."""

    issuer: str
    uid: str
    name: str = ""

    @property
    def text(self) -> str:
        """As the store has it.

        >>> ExternalIdentity("https://sso.example", "1234").text
        'https://sso.example#1234'
        """
        return f"{self.issuer}#{self.uid}"


class OidcRequest(Struct, frozen=True):
    """One sign-in at the provider. `state` comes back with the code, `nonce` in the ID token;
    `verifier` proves to the provider that the code came to this console (PKCE). `callback`: the
    address to which it sends the browser back.
    """

    state: str
    nonce: str
    verifier: str
    callback: str

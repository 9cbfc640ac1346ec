"""A credential of a user, with its row in the store."""

from __future__ import annotations

from typing import Final

from fairlead.errors import FairleadError
from fairlead.model.people.record import Credential
from fairlead.model.records.rows import CredentialRecord
from fairlead.ports import CredentialIssuer, CredentialRecords

NOTE_MAX: Final = 200
"""Characters of a note, which stands in an annotation and in a table."""


async def issue_recorded(
    issuer: CredentialIssuer,
    records: CredentialRecords | None,
    user: str,
    seconds: int,
    note: str,
    issued_by: str,
) -> tuple[Credential, str]:
    """The credential and its token. `records`: None = they are not kept.

    Nothing is left of a credential that cannot be recorded. Raises OutsideError.
    """
    credential, token = await issuer.issue(user, seconds, note, issued_by)
    if records is None:
        return credential, token
    record = CredentialRecord(
        name=credential.name,
        user=user,
        issued_at=round(credential.issued_at * 1000),
        expires_at=round(credential.expires_at * 1000),
        issued_by=issued_by,
        note=note,
    )
    try:
        await records.add_credential(record)
    except FairleadError:
        await issuer.revoke(credential)
        raise
    return credential, token

"""Policies about what the account of the console may write (Kubernetes 1.30 and later).

The console issues credentials, so its account may create Secrets and tokens. With these policies a
holder of the account's token makes no Secret but the key of cookies and credentials of users, and
no token but of a credential, which a deleted Secret ends.
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import OwnAccounts
from fairlead.model.people.rows import LABEL_BOUND_USER
from fairlead.settings import SIGN_IN_KEY_SECRET, USERS_NAMESPACE
from fairlead.wire.installation.policies.policy_parts import (
    OF_USER,
    Object,
    cel,
    is_user,
    on,
    refuse,
    validating,
)

_PART: Final = "console"
_LABELLED: Final = f'metadata.{OF_USER}.orValue("") != ""'


def console_policies(accounts: OwnAccounts) -> list[Object]:
    is_console = {"is-the-console": is_user(accounts.console)}
    return [
        *validating(
            "fairlead-console-secrets",
            _PART,
            rules=[on("CREATE UPDATE DELETE", "secrets")],
            conditions=is_console,
            validations=[
                refuse(
                    cel(f"""
            request.namespace == "{USERS_NAMESPACE}"
              ? [object, oldObject].all(each, each == null || each.{_LABELLED})
              : request.operation == "CREATE" && object.metadata.name == "{SIGN_IN_KEY_SECRET}"
            """),
                    (
                        f"the console makes the Secret {SIGN_IN_KEY_SECRET}, and credentials in "
                        f"namespace {USERS_NAMESPACE}, which have the label {LABEL_BOUND_USER}"
                    ),
                ),
            ],
        ),
        *validating(
            "fairlead-console-accounts",
            _PART,
            rules=[on("DELETE", "serviceaccounts")],
            conditions=is_console,
            validations=[
                refuse(
                    f"oldObject.{_LABELLED}",
                    (
                        "the console deletes ServiceAccounts with the label "
                        f"{LABEL_BOUND_USER}, and no others"
                    ),
                ),
            ],
        ),
        *validating(
            "fairlead-console-tokens",
            _PART,
            rules=[on("CREATE", "serviceaccounts/token")],
            conditions=is_console,
            validations=[
                refuse(
                    cel("""
            object.spec.?boundObjectRef.?kind.orValue("") == "Secret"
              && object.spec.?boundObjectRef.?uid.orValue("") != ""
            """),
                    "the console issues tokens that are bound to the Secret of a credential",
                ),
            ],
        ),
    ]

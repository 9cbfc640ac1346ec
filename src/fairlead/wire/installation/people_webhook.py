"""Validation of users and groups, for every server.

While the webhook does not answer, no user or group is created, deleted or changed in its spec
(`failurePolicy: Fail`). The people controller, which writes finalizers and statuses, goes on.
"""

from __future__ import annotations

from typing import Final

from fairlead.settings import USERS_NAMESPACE
from fairlead.wire.installation.policies.policy_parts import (
    Object,
    cel,
    on,
    webhook,
    webhook_configuration,
)
from fairlead.wire.names import PEOPLE_GROUP, PEOPLE_VERSION, USER_GROUPS, USERS

PEOPLE_WEBHOOK: Final = "fairlead-people"


def people_webhook(namespace: str) -> list[Object]:
    """`namespace`: of the server."""
    judged = on(
        "CREATE UPDATE DELETE",
        f"{USERS} {USER_GROUPS}",
        groups=PEOPLE_GROUP,
        versions=PEOPLE_VERSION,
    )
    conditions = {
        "is-in-the-users-namespace": f'request.namespace == "{USERS_NAMESPACE}"',
        # So that the first one can be made before the server runs. There is nothing to judge.
        "makes-no-administrator-without-groups": cel("""
            request.operation != "CREATE" || request.resource.resource != "users"
              || object.spec.?groups.orValue([]).size() > 0 || object.spec.apiRoles != ["admin"]
            """),
        "changes-the-spec": 'request.operation != "UPDATE" || object.spec != oldObject.spec',
    }
    return [
        webhook_configuration(
            "ValidatingWebhookConfiguration",
            PEOPLE_WEBHOOK,
            "people",
            [
                webhook(
                    "people.fairlead.io",
                    "/people",
                    namespace,
                    rules=[judged],
                    conditions=conditions,
                )
            ],
        )
    ]

"""Rows with a value in every field."""

from __future__ import annotations

from msgspec import structs

from fairlead.model.people.subject import SignInWay
from fairlead.model.records.audit import AuditResult, AuditRow, AuditTarget
from fairlead.model.records.rows import CredentialRecord, OperationRow, TreeVersion
from fairlead.model.records.sign_ins import SignIn

NOW = 1_790_000_000_000
HOUR = 3_600_000


def sign_in(number: int = 1, **changes: object) -> SignIn:
    row = SignIn(
        hash=f"{number:064x}",
        identity=f"https://idp.example#bob-{number}",
        user="bob",
        way=SignInWay.OIDC,
        began_at=NOW,
        seen_at=NOW + 1,
        ends_at=NOW + 24 * HOUR,
        csrf=f"csrf-{number}",
        groups=("researchers", "研究 🚀"),
        source_ip="2001:db8::1",
        bound_to="secrets/bob-x7k2p/6f9619ff-8b86-d011-b42d-00c04fc964ff",
    )
    return structs.replace(row, **changes)


def audit_row(**changes: object) -> AuditRow:
    row = AuditRow(
        at=NOW,
        actor="anna",
        action="quota.tree.update",
        result=AuditResult.OK,
        role="admin",
        source_ip="10.0.0.7",
        target=AuditTarget("ElasticQuotaTree", "kube-system", "tree"),
        request_id="request-1",
        code="",
        summary="root.a.1.min.cpu",
    )
    return structs.replace(row, **changes)


def credential(name: str = "bob-x7k2p", **changes: object) -> CredentialRecord:
    row = CredentialRecord(name, "bob", NOW, NOW + 8 * HOUR, "anna", "my laptop")
    return structs.replace(row, **changes)


def tree_version(number: int = 1, **changes: object) -> TreeVersion:
    row = TreeVersion(
        NOW + number, "anna", '{"root": {}}', str(1000 + number), "root.a.min", f"r-{number}"
    )
    return structs.replace(row, **changes)


def operation_row(id: str = "abc", **changes: object) -> OperationRow:
    row = OperationRow(
        id,
        "deploy",
        "component/fluid",
        "Failed",
        "anna",
        NOW,
        NOW + HOUR,
        "Create Dataset a/b: 不可以 🚀",
        '[{"title": "Create Dataset a/b"}]',
    )
    return structs.replace(row, **changes)

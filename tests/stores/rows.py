"""Rows with a value in every field."""

from __future__ import annotations

from msgspec import structs

from fairlead.model.people.subject import SignInWay
from fairlead.model.records.audit import AuditResult, AuditRow, AuditTarget
from fairlead.model.records.rows import CredentialRecord, OperationRow, TreeVersion
from fairlead.model.records.sign_ins import SignIn
from fairlead.model.usage.ledger import (
    Amount,
    JobRecord,
    KeptState,
    LedgerBatch,
    LedgerCard,
    LedgerJob,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    PriceClass,
    StateKind,
    UsedBy,
)
from fairlead.model.usage.prices import Price

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


A100 = PriceClass((("zone", "a"),), "A100", 8_000_000, 96_000, 1_048_576)


def pod_interval(uid: str = "p1", started_at: int = NOW, **changes: object) -> PodInterval:
    row = PodInterval(
        uid,
        started_at,
        UsedBy("ml", "bob", "root.a"),
        "bert-worker-0",
        "node-7",
        A100,
        Amount(2_000_000, 163_840, 8000, 65_536),
        LedgerJob("j1", "bert", "PYTORCHJOB"),
        (LedgerCard("GPU-1", 0), LedgerCard("GPU-2", 1, 512)),
    )
    return structs.replace(row, **changes)


def kept_state(uid: str = "p1", started_at: int = NOW, **changes: object) -> KeptState:
    body = '{"名": "worker \\"0\\" 🚀"}'.encode()
    row = KeptState(StateKind.POD, uid, started_at, "ml", "bert-worker-0", body)
    return structs.replace(row, **changes)


def ledger_batch(at: int = NOW + HOUR) -> LedgerBatch:
    """With a row in every table of batches."""
    hour = NOW - NOW % HOUR
    return LedgerBatch(
        at,
        pods=(pod_interval(), pod_interval("p2", job=LedgerJob(), ended_at=NOW + 5)),
        nodes=(NodeInterval("n7", NOW, "node-7", A100),),
        pod_hours=(PodHour("p1", NOW, hour, 1, 2, 3),),
        node_hours=(NodeHour("n7", NOW, hour, 1, 2, 3, 4, "cpu", (("ml", "bert-worker-0"),)),),
        states=(kept_state(),),
        jobs=(JobRecord("j1", UsedBy("ml", "bob", "root.a"), "bert", "PYTORCHJOB"),),
    )


def price(**changes: object) -> Price:
    row = Price((("zone", "a"),), "CNY", 98_000_000, NOW, NOW + 1, None, 900, "anna", "备注 🚀")
    return structs.replace(row, **changes)

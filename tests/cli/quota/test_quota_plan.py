"""`fairlead quota plan` on the cluster of document 004: current actions, what-if questions, and
questions that are refused.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.cli.command import Printed, run_command
from tests.cli.quota.demo import TREE, after_nginx3, demo, nginx

from fairlead.errors import OutsideError, UserError
from fairlead.model.pod import Owner
from fairlead.model.snapshot import ClusterSnapshot, build_snapshot
from fairlead.model.source import Source, SourceState

NGINX4 = "--add ns=namespace4,count=5,cpu=5"


def plan(line: str = "", snapshot: ClusterSnapshot | None = None) -> Printed:
    return run_command(f"quota plan {line}", snapshot or demo(), "fairlead")


def test_what_is_done_now() -> None:
    printed = plan(snapshot=demo([*nginx(1, 4, 0), *nginx(2, 4, 0), *nginx(3, 0, 1)]))

    assert printed.status == 0
    assert printed.out.startswith(
        "The controller would evict 1 pod; 1 unit waits. Nothing was written.\n"
        "\n"
        "EVICT                LEAF      HOW    FREES  FOR\n"
        "namespace2/nginx2-3  root.a.2  evict  "
    )
    assert printed.out.endswith(
        "  namespace3/nginx3-0\n"
        "\n"
        "WAITS                PODS  LEAF      PLACE  REASON\n"
        "namespace3/nginx3-0  1     root.b.1  1      WaitingForEvictions\n"
        "\n"
        "root.b.1 (1): guaranteed by root.b.1 (uses 0 of 10 cpu, asks 5); waiting for "
        "namespace2/nginx2-3 of root.a.2 to stop\n"
    )


def test_pods_that_are_admitted() -> None:
    assert plan(snapshot=demo(nginx(3, 1, 2))).out == (
        "The controller would admit 2 pods; nothing waits. Nothing was written.\n"
        "\n"
        "ADMIT                LEAF      GUARANTEED\n"
        "namespace3/nginx3-1  root.b.1  yes\n"
        "namespace3/nginx3-2  root.b.1  no, it borrows\n"
    )


def test_nothing_to_do() -> None:
    assert (
        plan(snapshot=demo(nginx(1, 2, 0))).out
        == "The controller would do nothing; nothing waits. Nothing was written.\n"
    )


def test_the_last_step_of_the_demo_is_predicted() -> None:
    printed = plan(f"{NGINX4} --until-settled")

    assert printed.out.startswith(
        "Settled after 2 plans with 2 evictions. Nothing was written.\n"
        "\n"
        "LEAF      NAMESPACES  RUN NOW  RUN THEN  WAIT THEN\n"
        "root.a.1  namespace1  3        2         3\n"
        "root.a.2  namespace2  3        2         3\n"
        "root.b.1  namespace3  2        2         3\n"
        "root.b.2  namespace4  0        2         3\n"
        "\n"
        "EVICT                LEAF      HOW    FREES  FOR\n"
    )
    sentence = (
        "cpu asks 5; root 40/40 in use; root.b.2 uses 10 of guaranteed 10, so it may only borrow "
        "idle quota; no leaf borrows"
    )
    assert printed.out.endswith(f"root.b.2 (3): {sentence}\n")


def test_the_document_of_json_has_all_keys_of_the_contract() -> None:
    now = json.loads(plan("-o json").out)
    assert list(now) == [
        "admit",
        "evict",
        "disrupted",
        "claims",
        "return",
        "resume",
        "waiting",
        "nodes",
        "violations",
    ]
    assert {each["reason"] for each in now["waiting"]} == {"WaitingForIdleQuota"}

    then = json.loads(plan(f"{NGINX4} --until-settled -o json").out)
    assert (then["evictions"], then["plans"]) == (2, 2)
    assert then["running"] == {"root.a.1": 2, "root.a.2": 2, "root.b.1": 2, "root.b.2": 2}
    assert sorted(each["namespace"] for each in then["evict"]) == ["namespace1", "namespace2"]
    assert plan("-o yaml").out.startswith("admit: []\nevict: []\n")


def test_another_tree_is_asked_about_beforehand(tmp_path: Path) -> None:
    """Half of root.a's guarantee goes to root.b.1: the effect of a lowered and a raised min on
    running pods.
    """
    file = tmp_path / "new.yaml"
    text = TREE.replace(
        "namespaces: [namespace1], min: {cpu: 10}", "namespaces: [namespace1], min: {cpu: 5}"
    )
    file.write_text(
        text.replace(
            "namespaces: [namespace3], min: {cpu: 10}", "namespaces: [namespace3], min: {cpu: 15}"
        )
    )

    printed = plan(f"--tree {file} --until-settled")

    assert "with 1 eviction. " in printed.out
    assert "root.a.1  namespace1  3        2         3\n" in printed.out
    assert "root.b.1  namespace3  2        3         2\n" in printed.out
    assert "SumOfMin" in printed.out, "the API server's warning is printed as well"


def test_a_tree_that_stops_every_plan(tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    file.write_text(TREE.replace("namespaces: [namespace3]", "namespaces: [namespace1]"))

    printed = plan(f"--tree {file}")

    assert printed.status == 1
    assert "NamespaceInTwoLeaves" in printed.out
    assert "The quota tree is invalid: no pods are admitted or evicted.\n" in printed.out


def test_without_a_pod() -> None:
    printed = plan("--remove namespace1/nginx1-0 --until-settled")
    assert "Settled after 1 plan with 0 evictions." in printed.out
    assert "root.b.1  namespace3  2        3         2\n" in printed.out


def test_a_tree_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TREE.encode())))
    assert "7 units wait" in plan("--tree -").out


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("-o xml", "output format `xml` is not known"),
        ("--add nonsense", "`nonsense` in `--add nonsense` is not KEY=VALUE"),
        ("--add ns=namespace1,cpu=", "`cpu=` in"),
        ("--add cpu=5", "has no namespace"),
        ("--add ns=namespace1,count=2", "request nothing"),
        ("--add ns=namespace1,count=0,cpu=5", "count cannot be 0"),
        ("--add ns=namespace1,count=two,cpu=5", "count is `two` and not a whole number"),
        ("--add ns=namespace1,count=1001,cpu=5", "1001 pods are too many"),
        ("--add ns=namespace1,cpu=5,cpu=6", "contains cpu twice"),
        ("--add ns=namespace1,cpu=five", "quantity `five` is not a Kubernetes quantity"),
        ("--add ns=namespace1,cpu=-5", "`-5` is not an amount that a pod can request"),
        ("--add ns=namespace1,cpu=5,gang=-1", "gang cannot be -1"),
        ("--add ns=elsewhere,cpu=5", "namespace `elsewhere` is on no leaf"),
        ("--remove nginx1-0", "`--remove nginx1-0` is not the name of a pod"),
        ("--remove namespace1/other", "quota counts no pod `namespace1/other`"),
        ("--tree /nowhere.yaml", "cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_planned(line: str, sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        plan(line)
    assert sentence in refusal.value.what
    assert refusal.value.hint


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "{",
            (
                "tree `{tmp_path}/tree.yaml` is not YAML: while parsing a flow node\n"
                'did not find expected node content\n  in "<byte string>", line 2, '
                "column 1"
            ),
        ),
        ("kind: Pod\n", "file `{tmp_path}/tree.yaml` holds no objects of kind ElasticQuotaTree"),
        (
            f"{TREE}---{TREE}",
            "file `{tmp_path}/tree.yaml` holds 2 objects of kind ElasticQuotaTree",
        ),
        (
            "kind: ElasticQuotaTree\n",
            (
                "the ElasticQuotaTree of `{tmp_path}/tree.yaml` cannot be read: "
                "Object missing required field `metadata`"
            ),
        ),
    ],
)
def test_what_is_no_tree(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "tree.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        plan(f"--tree {file}")
    assert caught.value.what == sentence.format(tmp_path=tmp_path)


def test_a_cluster_without_a_tree_and_one_that_may_not_be_read() -> None:
    with pytest.raises(UserError) as caught:
        plan(snapshot=build_snapshot(taken_at=1.0, pods=after_nginx3()))
    assert caught.value.what == "the cluster has no quota tree"
    hidden = Source("elasticquotatrees", SourceState.FORBIDDEN, "forbidden")
    with pytest.raises(OutsideError, match=r"elasticquotatrees.*: forbidden"):
        plan(snapshot=build_snapshot(taken_at=1.0, pods=after_nginx3(), sources=[hidden]))


def test_what_else_cannot_be_read_is_warned_of() -> None:
    from msgspec.structs import replace

    budgets = Source("poddisruptionbudgets", SourceState.FORBIDDEN, "forbidden")
    printed = plan(snapshot=replace(demo(), sources={"poddisruptionbudgets": budgets}))
    assert (
        "poddisruptionbudgets cannot be read, so the answer may be wrong: forbidden" in printed.err
    )


def test_pods_of_daemonsets_are_not_planned_for() -> None:
    from msgspec.structs import replace

    daemon = replace(
        nginx(1, 1, 0)[0],
        name="agent",
        uid="agent",
        labels={},
        owners=(Owner("DaemonSet", "agent", "ds", True, "apps/v1"),),
    )
    assert (
        "root.a.1  namespace1  3 "
        in plan(f"{NGINX4} --until-settled", demo([*after_nginx3(), daemon])).out
    )


def test_the_page_for_users_shows_what_the_commands_print() -> None:
    page = Path("docs/concepts/quota.md").read_text()
    assert TREE.strip() in page
    assert plan(f"{NGINX4} --until-settled").out.split("\nEVICT")[0] in page
    assert run_command("quota tree", demo(), "fairlead").out in page

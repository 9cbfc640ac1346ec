"""`fairlead doctor`: table, JSON and exit status; tests/rules/installation has the findings."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from tests.cli.command import run_command
from tests.rules.installation.doctor_facts import AFTER, BEFORE, HIDDEN

from fairlead.errors import UserError
from fairlead.model.installed.facts import ServerFact
from fairlead.model.snapshot import ClusterSnapshot

LAST = "\n`fairlead quota doctor` checks the quota tree and its controller.\n"
OLD = replace(BEFORE, server=ServerFact("v1.35.1", (1, 35), 0.0), nodes=HIDDEN)


def test_a_sound_cluster_has_a_table_and_the_name_of_the_other_doctor() -> None:
    printed = run_command("doctor --set store.size=1Gi", ClusterSnapshot(), "fairlead", facts=AFTER)
    assert printed.status == 0
    table, last = printed.out.split("\n\n")
    assert "\n" + last == LAST
    assert {line.split()[0] for line in table.splitlines()} == {"STATE", "ok"}


def test_a_fault_has_what_mends_it_and_the_status_1() -> None:
    printed = run_command("doctor", ClusterSnapshot(), "fairlead", facts=OLD)
    assert printed.status == 1
    assert "BAD    server  " in printed.out
    assert "Kubernetes v1.35.1; admission by policies needs 1.36\n" in printed.out
    assert f"?      nodes           {HIDDEN.why}\n" in printed.out
    assert "\nserver: `--set admission=webhooks` works" in printed.out
    assert printed.out.endswith(LAST)


def test_values_decide_what_is_needed() -> None:
    image = "kubeSchedulerImage=registry.example.com/kube-scheduler:v1.35.4"
    values = f"doctor --set admission=webhooks --set {image}"
    printed = run_command(values, ClusterSnapshot(), "fairlead", facts=OLD)
    assert printed.status == 0
    assert "Kubernetes v1.35.1; admission by webhooks needs 1.32\n" in printed.out


def test_json_has_each_state_and_what_mends_it() -> None:
    printed = run_command("doctor -o json", ClusterSnapshot(), "fairlead", facts=OLD)
    found = json.loads(printed.out)
    assert (printed.status, found["ok"]) == (1, False)
    by_check = {each["check"]: each for each in found["items"]}
    assert by_check["server"]["state"] == "fail"
    assert by_check["server"]["mend"].startswith("`--set admission=webhooks`")
    assert by_check["nodes"]["state"] == "unknown"
    assert by_check["nodes"]["sentence"] == HIDDEN.why


def test_the_quota_doctor_has_the_same_json() -> None:
    printed = run_command("quota doctor -o json", ClusterSnapshot(), "fairlead")
    found = json.loads(printed.out)
    assert {"check": "tree", "state": "fail", "sentence": "there is none"}.items() <= next(
        each for each in found["items"] if each["check"] == "tree"
    ).items()
    assert printed.status == 1


@pytest.mark.parametrize("verb", ["doctor", "quota doctor"])
def test_another_format_is_refused(verb: str) -> None:
    with pytest.raises(UserError) as caught:
        run_command(f"{verb} -o yml", ClusterSnapshot(), "fairlead", facts=AFTER)
    assert caught.value.what == "output format `yml` is not known"


def test_without_a_cluster_there_is_nothing_to_examine() -> None:
    with pytest.raises(UserError) as caught:
        run_command("doctor", ClusterSnapshot(), "fairlead")
    assert caught.value.what == "there is no cluster to examine"

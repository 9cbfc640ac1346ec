"""`fairlead why NS/POD` prints why a pod waits, or which GPUs it has."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.errors import OutsideError, UserError
from fairlead.model.resources import PODS
from fairlead.wire.text.tabwriter import render_rows

if TYPE_CHECKING:
    from fairlead.model.pod import Pod
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.rules.jobs.waiting import Wait
    from fairlead.rules.sharing.ledger import Ledger

NAME = "why"
HELP = (
    "Print why a pod waits: the message of the scheduler, its request of shared GPUs, "
    "the answer of each node, and which pods would have to be evicted for it to fit. "
    "For a running pod, print its GPUs."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pod",
        metavar="NAMESPACE/POD",
        help="the pod; without a namespace, that of -n or of the context",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    snapshot = context.world.reader().read_all()
    pods = snapshot.sources.get(PODS)
    if pods is not None and pods.is_forbidden:
        raise OutsideError(
            "kubernetes",
            f"pods of all namespaces cannot be read: {pods.message or pods.state}",
            "`arena get JOB --explain` needs the rights of the job's namespace alone",
        )
    namespace = context.options.namespace or context.world.namespace()
    pod = find_pod(snapshot, args.pod, namespace)
    context.stdout.write(why_text(snapshot, pod))
    return 0


def find_pod(snapshot: ClusterSnapshot, text: str, default_namespace: str) -> Pod:
    """Raises UserError for a pod that does not exist, with pods
    of that name in other namespaces.
    """
    namespace, _, name = text.rpartition("/")
    namespace = namespace or default_namespace
    if "/" in namespace or not name:
        raise UserError(f"`{text}` is not the name of a pod", "write NAMESPACE/POD or POD")
    for pod in snapshot.pods_in(namespace):
        if pod.name == name:
            return pod
    elsewhere = sorted(pod.key for pod in snapshot.pods if pod.name == name)
    hint = (
        f"pods of that name: {', '.join(elsewhere[:3])}"
        if elsewhere
        else f"`kubectl get pods -n {namespace}` shows the names"
    )
    raise UserError(f"pod `{namespace}/{name}` does not exist", hint)


def why_text(snapshot: ClusterSnapshot, pod: Pod) -> str:
    """What the verb prints."""
    from fairlead.rules.holding.need import gpu_need
    from fairlead.rules.jobs.waiting import UNSCHEDULABLE, why_pod_waits
    from fairlead.rules.nodes.room import NodeRooms
    from fairlead.rules.pods.status import pod_status
    from fairlead.rules.sharing.ledger import ledger_of
    from fairlead.rules.sharing.why import shortage

    node = f" on {pod.node}" if pod.node else ""
    rows = [
        ("Pod:", pod.key),
        (
            "Status:",
            (
                f"{pod_status(pod)}{node}, priority {pod.priority}, "
                f"scheduler {pod.scheduler or 'unknown'}"
            ),
        ),
    ]
    wait = _quota_wait(snapshot, pod) or why_pod_waits(pod)
    shares = not gpu_need(pod).is_nothing
    ledger = ledger_of(snapshot) if shares else None
    if wait is not None:
        if wait.reason == UNSCHEDULABLE:
            short = shortage(ledger, pod) if ledger else NodeRooms(snapshot).why(pod)
            rows += [("Why:", short.text)] if short else []
        rows.append(("Message:", f"{wait.reason}: {' '.join(wait.message.split())}"))
    if ledger is None:
        rows.append(("Shared GPUs:", "it requests none"))
        return render_rows(rows)
    return (
        render_rows([*rows, *_of_holder(ledger, pod)])
        if pod.is_holding
        else _of_waiter(ledger, pod, rows)
    )


def _quota_wait(snapshot: ClusterSnapshot, pod: Pod) -> Wait | None:
    """The reason in the quota plan of a pod that waits for quota,
    or its condition for the same reason.
    """
    from fairlead.model.keys import QUOTA_GATE

    if QUOTA_GATE not in pod.gates or snapshot.quota is None:
        return None
    from fairlead.rules.jobs.waiting import Wait
    from fairlead.rules.quota.plan import plan_quota
    from fairlead.rules.quota.sight import quota_state
    from fairlead.rules.quota.why import why_pod

    state = quota_state(snapshot, snapshot.taken_at)
    answer = why_pod(snapshot, state, plan_quota(state), pod)
    return Wait(answer.reason, answer.sentence)


def _of_holder(ledger: Ledger, pod: Pod) -> list[tuple[str, str]]:
    tenant = ledger.tenants.get(pod.uid)
    account = ledger.nodes.get(pod.node)
    if tenant is None or account is None or not tenant.grants:
        return [("Cards:", "unknown: no annotation names them (it counts as PENDING)")]
    rows = []
    for container, grants in tenant.grants.items():
        for grant in grants:
            card = account.card_of(grant)
            of = f" of {card.units}" if card is not None else ""
            mib = f", {grant.memory_mib} MiB" if grant.memory_mib is not None else ""
            rows.append(
                (
                    "Card:",
                    (
                        f"GPU {grant.index} {grant.uuid}: "
                        f"container {container} has {grant.units}{of} {account.unit}{mib}"
                    ),
                )
            )
    return rows


def _of_waiter(ledger: Ledger, pod: Pod, rows: list[tuple[str, str]]) -> str:
    from fairlead.rules.holding.need import gpu_need
    from fairlead.rules.sharing.what_if import what_must_go
    from fairlead.rules.sharing.why import usable_nodes

    need = gpu_need(pod)
    unit = ledger.policies.unit
    asked = need.fault or (
        f"{need.units} {unit} on {'one GPU' if need.cards == 1 else f'each of {need.cards} GPUs'}"
    )
    if need.is_split:
        asked = " and ".join(f"{part.units} {unit} for {part.name}" for part in need.running)
    if need.core_percent and not need.fault:
        asked += f", {need.core_percent} % of its cores"
    rows = [*rows, ("Needs:", asked)]
    usable = usable_nodes(ledger, pod)
    answer = ledger.filter(pod, usable)
    if answer.passed:
        room = f"{', '.join(answer.passed[:5])}{' …' if len(answer.passed) > 5 else ''}"
        rows.append(("Room:", f"{room} has room on its GPUs now: it waits for another reason"))
        return render_rows(rows)
    sacrifice = what_must_go(ledger, pod)
    if sacrifice is not None:
        who = ", ".join(f"{victim.key} (priority {victim.priority})" for victim in sacrifice.pods)
        rows.append(("Would fit:", f"on {sacrifice.node} without {who}"))
    table = [("NODE", "LARGEST FREE", "ANSWER")]
    barred = dict.fromkeys(
        ledger.nodes.keys() - set(usable),
        "the pod's nodeSelector, affinity or tolerations rule it out",
    )
    for name, reason in sorted({**answer.failed, **answer.hopeless, **barred}.items()):
        account = ledger.nodes[name]
        free = f"{account.largest_free} {account.unit}" if account.largest_free >= 0 else "-"
        table.append((name, free, reason))
    return f"{render_rows(rows)}\n{render_rows(table)}"

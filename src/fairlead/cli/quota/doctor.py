"""`fairlead quota doctor`: checks of everything that quota needs, each failure with its fix."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.findings import add_output, check_output, print_findings
from fairlead.model.installed.finding import Finding, State

if TYPE_CHECKING:
    from fairlead.model.quota.setup import BuiltInQuota, QuotaSetup
    from fairlead.model.quota.tree import QuotaTree
    from fairlead.model.snapshot import ClusterSnapshot

NAME = "quota doctor"
HELP = """Check everything that quota needs: the tree and its definition, the policies that gate
pods and guard the gates, the labels of namespaces, the controller, its Lease and its rights. Each
check is ok, BAD with a fix, or ? (not checked). The exit status is 1 if any check is BAD.

The laptop has quota built in: there, two pods are tested in a dry run, which creates none, and the
controller is ok if it has read the current tree."""
_ADMISSION: Final = "deploy/quota-admission.yaml"
_CONTROLLER: Final = "deploy/quota-controller.yaml"
_DEFINITION: Final = "deploy/quota-crd.yaml"
_REPORT: Final = "this is a bug of the laptop: please report it"
_TIME: Final = (
    "`fairlead time` shows whether the laptop's time is paused; the controller reads the tree "
    "while time advances"
)
_WITH_QUOTA: Final = "--set parts.quota=true"
_FEW: Final = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.model.quota.setup import BuiltInQuota

    check_output(args)
    snapshot = context.world.reader().read_all()
    setup = context.world.quota_setup()
    checks = [*_tree(snapshot, context.now(), _definition_fix(setup)), *_labels(snapshot)]
    if setup is None:
        reason = "not available in a snapshot or the embedded cluster"
        checks += [
            Finding(name, State.UNKNOWN, reason)
            for name in ("injector", "guard", "controller", "lease", "rights")
        ]
    elif isinstance(setup, BuiltInQuota):
        checks += [*_tried(setup), *_built_in(snapshot)]
    else:
        checks += [*_admission(setup), *_controller(setup, context.now())]
    return print_findings(checks, args, context)


def _fix(setup: QuotaSetup, file: str) -> str:
    """What writes missing objects, which are also in `file`."""
    from fairlead.rules.installation.finding_lists import written_again

    if setup.release is None:
        return _not_installed(file)
    if setup.is_part:
        return written_again(setup.release)
    if setup.release:
        command = f"`helm upgrade {setup.release}` with the same values and `{_WITH_QUOTA}`"
    else:
        command = f"`fairlead upgrade {_WITH_QUOTA}`"
    return f"{command} adds quota"


def _definition_fix(setup: QuotaSetup | BuiltInQuota | None) -> str:
    from fairlead.model.quota.setup import QuotaSetup

    if not isinstance(setup, QuotaSetup):
        return _not_installed(_DEFINITION)
    if setup.release and setup.is_part:
        return f"{_fix(setup, _DEFINITION)}, with `--set crds.enabled=true`"
    return _fix(setup, _DEFINITION)


def _not_installed(file: str) -> str:
    return (
        "`fairlead install` installs it; where you apply the files yourself: "
        f"`kubectl apply -f {file}`"
    )


def _tree(snapshot: ClusterSnapshot, now: float, definition_fix: str) -> Iterator[Finding]:
    from fairlead.cli.quota.cluster_state import TREES
    from fairlead.rules.quota.managed import own_namespaces
    from fairlead.rules.quota.validate import validate

    source = snapshot.sources.get(TREES)
    tree = snapshot.quota_tree
    if source is not None and source.is_missing:
        yield Finding(
            "definition",
            State.FAIL,
            "the cluster serves no ElasticQuotaTree",
            definition_fix,
        )
        return
    if tree is None and source is not None and source.is_unread:
        yield Finding("tree", State.UNKNOWN, source.message or str(source.state))
        return
    if source is not None:
        yield Finding("definition", State.OK, "ElasticQuotaTree is served")
    if tree is None or tree.root is None:
        yield Finding(
            "tree",
            State.FAIL,
            "there is none",
            "kubectl apply an ElasticQuotaTree called elasticquotatree in namespace kube-system",
        )
        return
    own = own_namespaces(snapshot.namespaces)
    errors = [each for each in validate(tree, tree, own=own) if each.is_error]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        yield Finding(
            "tree",
            State.FAIL,
            f"{errors[0].code}: {errors[0].message}{more}",
            "`fairlead quota validate FILE` prints every fault",
        )
        return
    yield from _over_max(tree, snapshot, now)
    leaves = list(tree.root.leaves())
    yield Finding(
        "tree",
        State.OK,
        f"{len(leaves)} leaves with {sum(len(leaf.namespaces) for leaf in leaves)} namespaces",
    )


def _over_max(tree: QuotaTree, snapshot: ClusterSnapshot, now: float) -> Iterator[Finding]:
    """Whether any node uses more than its max: no pods are admitted there until it uses less."""
    from fairlead.model.quota.tree import ViolationCode
    from fairlead.rules.quota.sight import quota_state
    from fairlead.rules.quota.validate import use_warnings

    source = snapshot.sources.get("pods")
    if source is not None and source.is_unread:
        yield Finding("max", State.UNKNOWN, source.message or str(source.state))
        return
    found = [
        each
        for each in use_warnings(quota_state(snapshot, snapshot.taken_at or now))
        if each.code == ViolationCode.OVER_MAX_NOW
    ]
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        fix = (
            "raise its max, end pods there, or set fairlead.io/drain-over-max on the node, which "
            "evicts down to it"
        )
        yield Finding("max", State.FAIL, f"{found[0].message}{more}", fix)
    else:
        yield Finding("max", State.OK, "no node uses more than its max")


def _labels(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """Labels of the namespaces of leaves; no other namespace may have the label."""
    from fairlead.model.keys import ANNOTATION_LEAF, LABEL_QUOTA, QUOTA_ENFORCED

    if snapshot.quota is None:
        return
    if not snapshot.was_read("namespaces"):
        source = snapshot.sources.get("namespaces")
        yield Finding(
            "labels",
            State.UNKNOWN,
            source.message or str(source.state)
            if source
            else "the snapshot contains no namespaces",
        )
        return
    leaf_of = {space: leaf.name for leaf in snapshot.quota.leaves() for space in leaf.namespaces}
    wrong = []
    for space in snapshot.namespaces:
        is_labelled = space.labels.get(LABEL_QUOTA) == QUOTA_ENFORCED
        leaf = leaf_of.get(space.name)
        if leaf is None and is_labelled:
            wrong.append(f"{space.name} is on no leaf but is still enforced")
        elif leaf is not None and not (
            is_labelled and space.annotations.get(ANNOTATION_LEAF) == leaf
        ):
            wrong.append(f"{space.name} is not enforced as {leaf}")
    if wrong:
        more = f" (and {len(wrong) - _FEW} more)" if len(wrong) > _FEW else ""
        yield Finding(
            "labels",
            State.FAIL,
            f"{', '.join(wrong[:_FEW])}{more}",
            "the quota controller writes them: see `controller` and `lease`",
        )
    else:
        yield Finding(
            "labels",
            State.OK,
            (
                f"{sum(space.name in leaf_of for space in snapshot.namespaces)} "
                "namespaces are enforced"
            ),
        )


def _admission(setup: QuotaSetup) -> Iterator[Finding]:
    for name, kind in (("injector", "Mutating"), ("guard", "Validating")):
        missing = [each for each in setup.missing if each.startswith(kind)]
        webhooks = [each for each in setup.webhooks if each.startswith(kind)]
        unasked = [why for what, why in setup.unasked.items() if what.startswith(kind)]
        if webhooks and missing:
            yield Finding(name, State.OK, f"{', '.join(webhooks)} in the place of a policy")
        elif missing:
            fix = _fix(setup, _ADMISSION)
            yield Finding(name, State.FAIL, f"{', '.join(missing)}: not found", fix)
        elif unasked:
            yield Finding(name, State.UNKNOWN, unasked[0])
        else:
            yield Finding(name, State.OK, f"{kind}AdmissionPolicy and its binding exist")


def _controller(setup: QuotaSetup, now: float) -> Iterator[Finding]:
    is_held = bool(setup.holder) and now <= setup.renewed_at + setup.lease_seconds
    if "Deployment" in setup.unasked:
        yield Finding("controller", State.UNKNOWN, setup.unasked["Deployment"])
    elif setup.ready:
        yield Finding("controller", State.OK, f"{setup.ready} ready")
    elif is_held:
        yield Finding(
            "controller", State.OK, f"{setup.holder} is active; no pod of its Deployment is ready"
        )
    elif setup.ready is None:
        yield Finding(
            "controller",
            State.FAIL,
            f"Deployment {setup.namespace}/fairlead-quota-controller does not exist",
            _fix(setup, _CONTROLLER),
        )
    else:
        fix = (
            f"`kubectl describe pods -n {setup.namespace} -l "
            "app.kubernetes.io/name=fairlead-quota-controller` shows why"
        )
        yield Finding("controller", State.FAIL, "none is ready", fix)
    if "Lease" in setup.unasked:
        yield Finding("lease", State.UNKNOWN, setup.unasked["Lease"])
    elif is_held:
        yield Finding(
            "lease",
            State.OK,
            f"held by {setup.holder}, renewed {max(0, now - setup.renewed_at):.0f} s ago",
        )
    else:
        ago = (
            f"{setup.holder} released it {now - setup.renewed_at:.0f} s ago"
            if setup.holder
            else "no process holds fairlead-quota"
        )
        fix = (
            "a running controller acquires it (see `controller`); check that the clocks of this "
            "machine and the cluster agree"
        )
        yield Finding("lease", State.FAIL, ago, fix)
    if "rights" in setup.unasked:
        yield Finding("rights", State.UNKNOWN, setup.unasked["rights"])
    elif setup.denied:
        yield Finding(
            "rights",
            State.FAIL,
            f"the controller is not allowed to {', '.join(setup.denied)}",
            _fix(setup, _CONTROLLER),
        )
    else:
        yield Finding("rights", State.OK, "the controller has all rights that it needs")


def _tried(setup: BuiltInQuota) -> Iterator[Finding]:
    """Results of the laptop's admission for the tested pods."""
    where = f"a new pod in {setup.namespace}"
    checks = (
        ("injector", setup.has_gate, f"{where} gets the quota gate", f"{where} gets no quota gate"),
        (
            "guard",
            setup.is_guarded,
            f"{where} that names another leaf is refused",
            f"{where} may name another leaf",
        ),
    )
    for name, is_so, good, bad in checks:
        if is_so is None:
            yield Finding(name, State.UNKNOWN, setup.unasked)
        else:
            yield (
                Finding(name, State.OK, f"{good} (tried)")
                if is_so
                else Finding(name, State.FAIL, f"{bad} (tried)", _REPORT)
            )


def _built_in(snapshot: ClusterSnapshot) -> Iterator[Finding]:
    """The controller inside the laptop, judged by the generation in the status of its tree."""
    tree = snapshot.quota_tree
    read = tree.status.get("observedGeneration") if tree is not None else None
    if tree is None:
        yield Finding("controller", State.OK, "part of the laptop; it has no tree to follow")
    elif read == tree.generation:
        yield Finding(
            "controller", State.OK, f"part of the laptop; it follows the tree's generation {read}"
        )
    else:
        was = (
            "has not read the tree yet"
            if read is None
            else f"follows the tree's generation {read}, which is {tree.generation} now"
        )
        yield Finding("controller", State.FAIL, f"part of the laptop; it {was}", _TIME)
    yield Finding(
        "lease", State.OK, "not needed: the laptop has one controller, which is part of it"
    )
    yield Finding(
        "rights", State.OK, "not needed: the laptop's controller writes without asking for rights"
    )

"""Runs `arena submit …` in this process, against a small cluster that keeps what is created, or
against none.
"""

from __future__ import annotations

import argparse
import importlib
import io
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import pytest
import yaml
from tests.cli.command import Printed

from fairlead.cli.frame.context import (
    ClusterJobs,
    ClusterObjects,
    ClusterReader,
    ClusterServings,
    Context,
    LaptopTime,
)
from fairlead.cli.frame.messages import Messages
from fairlead.cli.frame.parser import VerbModule, global_options, make_parser, split_verb
from fairlead.errors import OutsideError, RejectedObject, UserError
from fairlead.kinds.parts.kind import CreatedKind
from fairlead.kinds.submission import Served
from fairlead.model.actions import (
    CreateObject,
    DeleteObject,
    Manifest,
    ObjectAction,
    ObjectRef,
    Outcome,
    PatchObject,
    Result,
)
from fairlead.run.machine import OwnMachine

SERVED: Final[Mapping[str, Sequence[str]]] = {
    "MPIJob": ("v1", "v2beta1"),
    **dict.fromkeys(("TFJob", "PyTorchJob", "RayJob"), ("v1",)),
    **dict.fromkeys(("Job", "TrainingJob", "Cron"), ("v1alpha1",)),
    "SparkApplication": ("v1beta2",),
}
"""`Job` is Volcano's; Kubernetes Jobs are never submitted."""


class KeepingCluster:
    """`versions` by kind; `full` names objects that exist (`NAME`, or `KIND NAME`, one of several),
    `broken` those whose creation fails, `bad_parents` those that cannot become owners.
    """

    def __init__(
        self, versions: Mapping[str, Sequence[str]] | None = None, **settings: Any
    ) -> None:
        self.versions = SERVED if versions is None else versions
        self.user: str = settings.get("user", "")
        self.priorities: Mapping[str, bool | None] = settings.get("priorities", {})
        self.spec_fields: frozenset[str] | None = settings.get("spec_fields")
        self.full: Sequence[str] = settings.get("full", ())
        self.broken: Sequence[str] = settings.get("broken", ())
        self.bad_parents: Sequence[str] = settings.get("bad_parents", ())
        self.unreachable: bool = settings.get("unreachable", False)
        self.created: list[Manifest] = []
        self.deleted: list[str] = []
        self.calls: list[str] = []

    def served(self, kind: CreatedKind, with_fields_of: str, priority: str) -> Served:
        self.calls.append(f"served {kind.KIND} {with_fields_of} {priority}".rstrip())
        if self.unreachable:
            raise OutsideError("kubernetes", "no answer")
        fields = self.spec_fields if with_fields_of else None
        return Served(
            tuple(self.versions.get(kind.KIND, ())),
            fields,
            self.user,
            self.priorities.get(priority),
        )

    def submitter(self) -> str:
        return self.user

    def create_unasked(self, kind: CreatedKind, manifest: Manifest, namespace: str) -> Outcome:
        is_served = manifest["apiVersion"].rpartition("/")[2] in self.versions.get(kind.KIND, ())
        if self.unreachable:
            raise OutsideError("kubernetes", "no answer")
        if not is_served or (
            self.spec_fields is not None and not manifest["spec"].keys() <= self.spec_fields
        ):
            self.calls.append(f"refused {manifest['apiVersion']}")
            raise RejectedObject("kubernetes", "not so")
        return self._create(manifest, namespace)

    def apply(self, action: ObjectAction) -> Outcome:
        match action:
            case CreateObject():
                return self._create(action.manifest, action.namespace)
            case PatchObject():
                return self._adopt(
                    action.target, action.patch["metadata"]["ownerReferences"][0]["name"]
                )
            case DeleteObject():
                self.deleted.append(f"{action.target.kind} {action.target.name}")
                return Outcome()

    def _create(self, manifest: Manifest, namespace: str) -> Outcome:
        name = manifest["metadata"]["name"]
        self.calls.append(f"create {manifest['kind']} {name}")
        if name in self.broken:
            return Outcome(
                Result.REFUSED, failure=OutsideError("kubernetes", f"cannot make {name}")
            )
        if name in self.full or f"{manifest['kind']} {name}" in self.full:
            return Outcome(Result.THERE, failure=OutsideError("kubernetes", f"{name} is there"))
        self.created.append({**manifest})
        return Outcome(
            made={
                **manifest,
                "metadata": {**manifest["metadata"], "uid": f"uid-{name}", "namespace": namespace},
            }
        )

    def is_there(self, manifest: Mapping[str, Any], namespace: str) -> bool:
        self.calls.append(f"get {manifest['kind']} {manifest['metadata']['name']}")
        return (
            manifest["metadata"]["name"] in self.full
            or f"{manifest['kind']} {manifest['metadata']['name']}" in self.full
        )

    def _adopt(self, child: ObjectRef, owner: str) -> Outcome:
        self.calls.append(f"adopt {child.kind} {child.name}")
        if owner in self.bad_parents:
            return Outcome(
                Result.REFUSED, failure=OutsideError("kubernetes", "secrets may not be patched")
            )
        return Outcome()


class SubmitWorld:
    def __init__(self, cluster: ClusterObjects | None, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    def objects(self) -> ClusterObjects | None:
        return self._cluster

    def servings(self) -> ClusterServings | None:
        return None

    def namespace(self) -> str:
        return self._namespace

    def reader(self) -> ClusterReader:
        raise AssertionError("submit reads no cluster")

    def jobs(self) -> ClusterJobs:
        raise AssertionError("submit lists nothing")

    def console(self) -> str:
        return ""

    def laptop_clock(self, state_dir: str) -> LaptopTime:
        raise AssertionError("no laptop here")

    def run_process(self, name: str, args: argparse.Namespace) -> int:
        raise AssertionError(f"{name} is no submit")


def submit(
    line: str | Sequence[str],
    cluster: KeepingCluster | None = None,
    env: Mapping[str, str] | None = None,
) -> Printed:
    """Runs `arena submit` with `line`. Errors are raised as exceptions, as `main` receives them;
    their attribute `printed` has the output before the error.
    """
    return create(["submit", *(shlex.split(line) if isinstance(line, str) else line)], cluster, env)


def serve(
    line: str | Sequence[str],
    cluster: KeepingCluster | None = None,
    env: Mapping[str, str] | None = None,
) -> Printed:
    """Runs `arena serve` with `line`."""
    return create(["serve", *(shlex.split(line) if isinstance(line, str) else line)], cluster, env)


def create(
    argv: Sequence[str], cluster: KeepingCluster | None, env: Mapping[str, str] | None
) -> Printed:
    verb, rest = split_verb(argv, "arena")
    assert verb is not None, argv
    out, err = io.StringIO(), io.StringIO()
    module = cast("VerbModule", importlib.import_module(f"fairlead.cli.{verb.module}"))
    args = make_parser(module, "arena").parse(rest)
    options = global_options(args)
    messages = Messages("arena", err, now=lambda: 0.0)
    world = SubmitWorld(cluster, options.namespace or "default")
    env = env or {"HOME": "/nonexistent"}
    context = Context(
        "arena", options, messages, world, out, env, lambda: 0.0, lambda _: None, OwnMachine(env)
    )
    try:
        status = module.run(args, context)
    except Exception as error:
        error.printed = Printed(1, out.getvalue(), err.getvalue())  # type: ignore[attr-defined]
        raise
    return Printed(status, out.getvalue(), err.getvalue())


def dry_run(line: str | Sequence[str], env: Mapping[str, str] | None = None) -> list[Manifest]:
    """The objects that `--dry-run` prints without any cluster."""
    words = shlex.split(line) if isinstance(line, str) else list(line)
    place = words.index("--") if "--" in words else len(words)
    return list(
        yaml.safe_load_all(submit([*words[:place], "--dry-run", *words[place:]], env=env).out)
    )


def at(document: Any, path: str) -> Any:
    """The value at a path like `metadata|labels|a/b` or `spec|0|name`, where a number is the index
    in a list; None if it is absent.
    """
    for key in path.split("|"):
        if isinstance(document, list):
            document = document[int(key)] if int(key) < len(document) else None
        elif isinstance(document, dict):
            document = document.get(key)
        else:
            return None
    return document


def assert_refused(line: str, reported: str) -> None:
    """The line fails with this message before any request to the cluster."""
    cluster = KeepingCluster()
    with pytest.raises(UserError) as refused:
        submit(line, cluster)
    assert reported in refused.value.what
    assert cluster.calls == []

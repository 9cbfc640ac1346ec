"""Helm's releases through the program `helm`, version 3 or 4.

Helm gets the connection in use as a kubeconfig and the values on stdin: neither is in its arguments
or in a file with a name. Its folders are empty, so that no plugin and no repository of the user
changes what it does.

The trap: a release name or a chart that begins with `-` would be a flag, so both are checked and
stand behind `--`.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlead.edge.connection.connection import Connection
from fairlead.edge.helm.helm_blocking import PROGRAM_VARIABLE, find_helm
from fairlead.edge.helm.kubeconfig import render_kubeconfig
from fairlead.edge.helm.process import Ended, ended
from fairlead.errors import NoHelm, OutsideError, UserError
from fairlead.model.actions import Manifest
from fairlead.model.operations.operation import HelmRelease, HelmStep
from fairlead.wire.helm.failures import failure_of, is_absent
from fairlead.wire.helm.releases import (
    LABEL_TEMPLATE,
    OPERATION_LABEL,
    SYSTEM,
    description,
    parse_history,
    parse_list,
    parse_rendered,
    with_label,
)

READ_SECONDS: Final = 60.0
_MARGIN_SECONDS: Final = 60.0
"""Beyond Helm's own time limit."""
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_RELEASES: Final = 10_000
_PASSED_ON: Final = (
    *("PATH", "TMPDIR", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_ID: Final = re.compile(r"[a-z0-9]{1,63}")
_VERSION: Final = re.compile(r"v?[0-9]+(\.[0-9]+){0,2}([-+][-+.0-9A-Za-z]*)?")
_LONGEST_NAME: Final = 53
_STATES: Final = ("deployed", "failed", "pending", "uninstalled", "uninstalling")


class HelmProgram:
    """See `ports.Helm`. The program is looked for at each call, so that it may be installed while
    this process runs.

    `registry_config`: the file of `helm registry login`, for charts at `oci://…`.
    """

    def __init__(self, connection: Connection, environment: Mapping[str, str] = os.environ) -> None:
        self._connection = connection
        self._environment = environment

    async def release(self, name: str, namespace: str) -> HelmRelease | None:
        place = (f"--namespace={_namespace(namespace)}", "--", _name(name))
        history = await self._run(["history", "--output=json", "--max=256", *place])
        if is_absent(history.errors) and history.status:
            return None
        found = parse_history(name, namespace, _checked(history, "history", name))
        if found is None or found.operation or (found.rolled_back_to and found.is_own):
            return found
        words = ["get", "all", f"--revision={found.revision}", f"--template={LABEL_TEMPLATE}"]
        answer = await self._run([*words, *place])
        if is_absent(answer.errors) and answer.status:
            return None
        return with_label(found, _checked(answer, "get", name).decode("utf-8", "replace"))

    async def releases(self) -> tuple[HelmRelease, ...]:
        states = [f"--{each}" for each in _STATES]
        words = ["list", "--all-namespaces", "--output=json", f"--max={_MOST_RELEASES}", *states]
        return parse_list(_checked(await self._run(words), "list", ""))

    async def written(self, release: HelmRelease) -> tuple[Manifest, ...]:
        """The objects of the newest deployed revision, without hooks; none if none was deployed."""
        if not release.deployed:
            return ()
        place = (f"--namespace={_namespace(release.namespace)}", "--", _name(release.name))
        words = ["get", "manifest", f"--revision={release.deployed}", *place]
        answer = await self._run(words)
        if is_absent(answer.errors) and answer.status:
            return ()
        return parse_rendered(_checked(answer, "get", release.name))

    async def render(self, step: HelmStep) -> tuple[Manifest, ...]:
        upgrade = ["--is-upgrade"] if step.verb == "upgrade" else []
        words = ["template", "--include-crds", "--no-hooks", *upgrade, *_chart_words(step)]
        answer = await self._run(words, step.values)
        return parse_rendered(_checked(answer, "template", step.release))

    async def carry_out(self, step: HelmStep, operation: str) -> None:
        words = _words(step, operation)
        answer = await self._run(words, step.values, step.seconds + _MARGIN_SECONDS)
        _checked(answer, step.verb, step.release)

    async def _run(
        self,
        words: Sequence[str],
        values: Mapping[str, Any] | None = None,
        seconds: float = READ_SECONDS,
    ) -> Ended:
        program = find_helm(self._environment)
        if not program:
            hint = f"install Helm 3 or Helm 4, or name its program with {PROGRAM_VARIABLE}"
            raise NoHelm("there is no program `helm`", hint)
        kubeconfig = await asyncio.to_thread(render_kubeconfig, self._connection)
        with _unnamed_file(kubeconfig) as descriptor, _empty_home() as home:
            return await ended(
                (program, words[0], f"--kubeconfig=/dev/fd/{descriptor}", *words[1:]),
                stdin=msgspec.json.encode(values or {}),
                environment=self._for_helm(home),
                files=(descriptor,),
                seconds=seconds,
                most_bytes=_MOST_BYTES,
            )

    def _for_helm(self, home: str) -> dict[str, str]:
        given = self._environment
        kept = {name: given[name] for name in _PASSED_ON if name in given}
        logins = given.get("HELM_REGISTRY_CONFIG") or str(
            Path(given.get("HOME") or home, ".config/helm/registry/config.json")
        )
        return {**kept, "HOME": home, "HELM_REGISTRY_CONFIG": logins}


def _words(step: HelmStep, operation: str) -> list[str]:
    """The arguments of a step; CRDs are not Helm's to write."""
    if not _ID.fullmatch(operation):
        raise ValueError(f"`{operation}` is no id of an operation")
    limit = f"--timeout={max(1, round(step.seconds))}s"
    place = f"--namespace={_namespace(step.namespace)}"
    if step.verb == "uninstall":
        return ["uninstall", "--ignore-not-found", limit, place, "--", _name(step.release)]
    if step.verb == "rollback":
        return ["rollback", limit, place, "--", _name(step.release), str(step.revision)]
    marks = (
        f"--description={description(operation)}",
        f"--labels={OPERATION_LABEL}={operation}",
    )
    install = ("--install", "--create-namespace") if step.verb == "install" else ()
    # Without it Helm takes the last values over if the step has none.
    shared = ("--reset-values", "--skip-crds", limit)
    return ["upgrade", *install, *shared, *marks, *_chart_words(step)]


def _chart_words(step: HelmStep) -> list[str]:
    """Of values, namespace, version and, behind `--`, release and chart."""
    chart = step.chart
    if not chart or chart.startswith("-") or not chart.isprintable():
        what = f"the chart `{chart}` is no folder, archive or address"
        raise UserError(what, "write a path, `oci://…` or `https://…`")
    version = []
    if step.version:
        if not _VERSION.fullmatch(step.version):
            raise UserError(f"the chart's version is `{step.version}`", "write one like 1.0.8")
        version = [f"--version={step.version}"]
    place = f"--namespace={_namespace(step.namespace)}"
    return ["--values=-", place, *version, "--", _name(step.release), chart]


def _name(release: str) -> str:
    if not _NAME.fullmatch(release) or len(release) > _LONGEST_NAME:
        hint = "write at most 53 lower-case letters, digits and `-`, a letter or digit first"
        raise UserError(f"`{release}` is no name of a Helm release", hint)
    return release


def _namespace(namespace: str) -> str:
    if not _NAMESPACE.fullmatch(namespace):
        hint = "write at most 63 lower-case letters, digits and `-`, a letter or digit first"
        raise UserError(f"`{namespace}` is no name of a namespace", hint)
    return namespace


def _checked(answer: Ended, verb: str, release: str) -> bytes:
    """What it printed. Raises OutsideError if it failed."""
    if answer.status == 0:
        return answer.output
    failure = failure_of(answer.errors)
    subject = f" of the release `{release}`" if release else ""
    reason = failure.reason or f"it ended with status {answer.status}"
    what = f"`helm {verb}`{subject} failed: {reason}"
    raise OutsideError("kubernetes" if failure.is_unreachable else SYSTEM, what, failure.hint)


@contextmanager
def _unnamed_file(content: bytes) -> Iterator[int]:
    """A descriptor of a file that no folder lists: it ends with the last process that has it."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kubeconfig", os.MFD_CLOEXEC)
    else:
        descriptor, name = tempfile.mkstemp()
        Path(name).unlink()
    try:
        os.fchmod(descriptor, 0o600)  # Helm warns of files that others may read
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _empty_home() -> Iterator[str]:
    """A folder for what Helm keeps; charts that it downloads are in it."""
    with tempfile.TemporaryDirectory(prefix="fairlead-helm-", ignore_cleanup_errors=True) as home:
        yield home

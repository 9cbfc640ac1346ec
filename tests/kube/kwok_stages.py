"""The behaviour of the played kubelets: KWOK's own stages, taken from its module and driven by
annotations of the pod.

A pod becomes Ready at once and then runs until it is deleted. Annotations change that: see the
constants. KWOK's `pod-complete` is left out on purpose: it ends every pod of a Job at once, and no
other pod ever.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

READY_DELAY = "test.fairlead.io/ready-delay"
"""How long the pod stays Pending on its node, as a Go duration (`5s`)."""
RUN_TIME = "test.fairlead.io/run-time"
"""How long the containers run; without it they run for ever."""
EXIT_CODE = "test.fairlead.io/exit-code"
"""The exit code of the containers: "0" (the default) makes the pod Succeeded, any other Failed."""
DELETE_DELAY = "test.fairlead.io/delete-delay"
"""How long the pod stays Terminating."""
NOT_READY = "test.fairlead.io/not-ready"
"""On a node, with any value: its kubelet reports Ready=False."""

_FINISHED = """\
{{ $now := Now }}
{{ $root := . }}
{{ $code := or ( index .metadata.annotations "test.fairlead.io/exit-code" ) "0" }}
conditions:
- lastTransitionTime: {{ $now | Quote }}
  status: "False"
  type: Ready
containerStatuses:
{{ range $index, $item := .spec.containers }}
{{ $origin := index $root.status.containerStatuses $index }}
- image: {{ $item.image | Quote }}
  name: {{ $item.name | Quote }}
  ready: false
  restartCount: 0
  started: false
  state:
    terminated:
      exitCode: {{ $code }}
      finishedAt: {{ $now | Quote }}
      reason: {{ if eq $code "0" }}Completed{{ else }}Error{{ end }}
      startedAt: {{ $origin.state.running.startedAt | Quote }}
{{ end }}
phase: {{ if eq $code "0" }}Succeeded{{ else }}Failed{{ end }}
"""


def write_stages(kwok_module: Path, target: Path) -> None:
    """Write KWOK's configuration file from the stages in its module."""
    source = kwok_module / "kustomize" / "stage"
    stages = [
        _only_unless(_with_address(_load(source / "node/fast/node-initialize.yaml")), NOT_READY),
        _load(source / "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml"),
        _node_not_ready(_load(source / "node/chaos/node-not-ready.yaml")),
        _delayed(_load(source / "pod/fast/pod-ready.yaml"), READY_DELAY),
        _pod_finished(),
        _delayed(_load(source / "pod/fast/pod-delete.yaml"), DELETE_DELAY),
    ]
    target.write_text(yaml.safe_dump_all(stages, sort_keys=False), encoding="utf-8")


def _load(path: Path) -> dict[str, Any]:
    stage: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return stage


def _with_address(stage: dict[str, Any]) -> dict[str, Any]:
    """A node keeps its address when it is Ready again.

    KWOK has no hostname for it, and its template then writes an empty list over the addresses.
    """
    text = stage["spec"]["next"]["statusTemplate"]
    condition = "{{ if or (not $hasInternalIP) (not $hasHostname) }}"
    assert condition in text, text
    stage["spec"]["next"]["statusTemplate"] = text.replace(condition, "{{ if not $hasInternalIP }}")
    return stage


def _annotation(name: str) -> str:
    return f'.metadata.annotations["{name}"]'


def _delayed(stage: dict[str, Any], annotation: str) -> dict[str, Any]:
    stage["spec"]["delay"] = {
        "durationMilliseconds": 0,
        "durationFrom": {"expressionFrom": _annotation(annotation)},
    }
    return stage


def _only_unless(stage: dict[str, Any], annotation: str) -> dict[str, Any]:
    stage["spec"]["selector"]["matchExpressions"].append(
        {"key": _annotation(annotation), "operator": "DoesNotExist"}
    )
    return stage


def _node_not_ready(stage: dict[str, Any]) -> dict[str, Any]:
    ready = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    stage["spec"]["selector"]["matchExpressions"] = [
        {"key": _annotation(NOT_READY), "operator": "Exists"},
        {"key": ready, "operator": "NotIn", "values": ["False"]},
    ]
    stage["spec"]["delay"] = {"durationMilliseconds": 0}
    return stage


def _pod_finished() -> dict[str, Any]:
    of_pods = {"key": _annotation(RUN_TIME), "operator": "Exists"}
    return _delayed(_finished_stage("pod-finished", of_pods), RUN_TIME)


def ended_stage(name: str, label: str, value: str, milliseconds: int) -> dict[str, Any]:
    """A further stage: pods with this label end by themselves after this time."""
    of_pods = {"key": f'.metadata.labels["{label}"]', "operator": "In", "values": [value]}
    stage = _finished_stage(name, of_pods)
    stage["spec"]["delay"] = {"durationMilliseconds": milliseconds}
    return stage


def _finished_stage(name: str, of_pods: dict[str, Any]) -> dict[str, Any]:
    selector = [
        {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
        {"key": ".status.phase", "operator": "In", "values": ["Running"]},
        of_pods,
    ]
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {"matchExpressions": selector},
            "next": {"statusTemplate": _FINISHED},
        },
    }

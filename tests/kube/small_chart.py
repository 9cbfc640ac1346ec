"""A small chart of the tests, with a definition, a hook that waits, and a check of its values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

VERSION: Final = "1.2.3"
_SCHEMA: Final = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"replicas": {"type": "integer"}},
}
_TEMPLATE: Final = """
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-settings", namespace: "{{ .Release.Namespace }}"}
data: {"{{ .Values.key | default "color" }}": {{ .Values.color | default "red" | quote }}}
---
{{- if .Values.hasSecond }}
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-second", namespace: "{{ .Release.Namespace }}"}
{{- end }}
"""
_HOOK: Final = """
{{- if .Values.hasHook }}
apiVersion: v1
kind: Pod
metadata:
  name: "{{ .Release.Name }}-hook"
  namespace: "{{ .Release.Namespace }}"
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
spec: {restartPolicy: Never, nodeSelector: {no: node}, containers: [{name: hook, image: hook}]}
{{- end }}
"""
"""A pod that no node takes, so Helm waits for it until its time is over."""
_DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "smalls.test.fairlead.io"},
    "spec": {
        "group": "test.fairlead.io",
        "scope": "Namespaced",
        "names": {"kind": "Small", "plural": "smalls", "singular": "small"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def write_small_chart(folder: Path, version: str = VERSION, name: str = "small") -> Path:
    """Writes it into the folder, which is then the chart."""
    for file, text in {
        "Chart.yaml": f'apiVersion: v2\nname: {name}\nversion: {version}\nappVersion: "9"\n',
        "values.schema.json": json.dumps(_SCHEMA),
        "templates/settings.yaml": _TEMPLATE,
        "templates/hook.yaml": _HOOK,
        "crds/small.yaml": json.dumps(_DEFINITION),
    }.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder

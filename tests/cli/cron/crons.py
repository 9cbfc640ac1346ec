"""Crons as the API server returns them."""

from __future__ import annotations

NIGHTLY = {
    "metadata": {
        "name": "nightly",
        "namespace": "default",
        "uid": "u1",
        "creationTimestamp": "2026-01-05T08:00:00Z",
    },
    "spec": {
        "schedule": "0 22 * * *",
        "concurrencyPolicy": "Allow",
        "deadline": "2026-10-01T13:00:12Z",
        "historyLimit": 10,
        "template": {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "workload": {}},
    },
    "status": {
        "lastScheduleTime": "2026-01-06T22:00:00Z",
        "history": [
            {
                "object": {
                    "apiGroup": "kubeflow.org/v1",
                    "kind": "TFJob",
                    "name": "nightly-1767650400",
                },
                "status": "Succeeded",
                "created": "2026-01-05T22:00:00Z",
                "finished": "2026-01-05T22:10:00Z",
            },
            {
                "object": {"kind": "TFJob", "name": "nightly-1767736800"},
                "status": "Running",
                "created": "2026-01-06T22:00:00Z",
            },
        ],
    },
}

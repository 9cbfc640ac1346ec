"""Cron (KubeDL): no job itself but a schedule that makes jobs, so it is in no list of jobs and only submitted like one."""

from __future__ import annotations

from typing import Final

TYPE: Final = "cron"
KIND: Final = "Cron"
GROUP: Final = "apps.kubedl.io"
PLURAL: Final = "crons"
VERSIONS: Final = ("v1alpha1",)

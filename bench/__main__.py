"""Runs a measurement: `python -m bench NAME [options]`; `python -m bench LIST` prints the names.

Run it in the repository's root. `python -m bench NAME --help` prints a measurement's options. Most
print their figures beside a peer's or beside a baseline of the same run; large_world,
simulated_week, quota_look and filter print figures of Fairlead alone. A measurement is a function
`measure_NAME` of the module that `MEASUREMENTS` names; only that module is imported.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Final

MEASUREMENTS: Final = {
    "clients": ("list_pods", "watch_events"),
    "commands": ("cli_start", "submit", "list_jobs", "top_node", "api_forms"),
    "servers": ("api_server",),
    "store": ("store",),
    "past": ("past_map",),
    "ledger": ("ledger_write", "ledger_sums", "ledger_past", "ledger_claim"),
    "usage_recorder": ("usage_recorder",),
    "usage_rows": ("usage_rows",),
    "usage": ("usage_idle", "usage_report"),
    "console": ("console_boards", "console_while_moving", "log_follow"),
    "pictures": ("pictures", "researchers"),
    "datasets": ("datasets",),
    "acceleration": ("click_to_bound",),
    "image": ("image",),
    "installation": ("install", "upgrade", "doctor"),
    "laptop": ("laptop_start", "first_start", "large_world", "simulated_week"),
    "guard": ("guard",),
    "exporter": (
        "gpu_exporter",
        "gpu_exporter_peer",
        "gpu_exporter_soak",
        "pod_names",
        "value_to_series",
    ),
    "pages": ("exporter_pages", "cluster_exporter_page"),
    "leases": ("lease_handover",),
    "quota": ("quota_plan", "quota_look"),
    "recovery": ("recovery",),
    "replay": ("quota_replay",),
    "quota_cluster": ("quota_admissions", "quota_controller_idle"),
    "scale": ("scale", "scale_simulated"),
    "sharing": ("filter", "scheduler_extender"),
    "people": ("people", "sign_in"),
    "operations": ("operation_apply", "operation_resume"),
    "components": ("component_upgrade",),
    "nodes": ("node_agent", "bound_to_running", "mode_switch"),
}
"""Names by module."""
MODULES: Final = {name: module for module, names in MEASUREMENTS.items() for name in names}


def listed() -> Iterator[str]:
    """A line for each module, and below it one for each of its measurements."""
    width = max(map(len, MODULES))
    for module, names in MEASUREMENTS.items():
        tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
        known = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        yield _first_line(tree)
        for name in names:
            yield f"  {name:<{width}}  {_first_line(known[f'measure_{name}'])}"


def _first_line(node: ast.Module | ast.FunctionDef) -> str:
    text = ast.get_docstring(node) or ""
    return " ".join(text.partition("\n\n")[0].split())


def main(words: list[str]) -> int:
    if not words or words[0] in ("LIST", "-h", "--help"):
        print(__doc__ if words[:1] != ["LIST"] else "\n".join(listed()))
        return 0 if words else 2
    name, *options = words
    if name not in MODULES:
        near = get_close_matches(name, MODULES, 1)
        print(f"error: there is no measurement `{name}`", file=sys.stderr)
        hint = f"did you mean `{near[0]}`?" if near else "`python -m bench LIST` prints them"
        print(f"hint: {hint}", file=sys.stderr)
        return 2
    sys.argv = [f"python -m bench {name}", *options]
    getattr(import_module(f"bench.{MODULES[name]}"), f"measure_{name}")()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What panels show of series that are easily missed, asked of Prometheus's promtool."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.prometheus.alert_cases import MINUTE, from_then, gpu, held
from tests.prometheus.promtool import Asked, Question, wrong_answers

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "grafana"


def expression(board: str, panel: str) -> str:
    """Of the panel's only query, with everything chosen."""
    (found,) = (each for each in json.loads((FOLDER / f"{board}.json").read_text(encoding="utf-8"))["panels"] if each["title"] == panel)
    (target,) = found["targets"]
    return re.sub(r"\$\w+", lambda name: "5m" if name[0] == "$__rate_interval" else ".*", target["expr"])


def test_the_first_xid_of_its_kind_is_drawn(tmp_path: Path) -> None:
    """Codes of programs have no series before the first of them; those that mean harm stand at 0 from the start."""
    series = {
        gpu("xid_errors_total", xid="31"): from_then(1, 10 * MINUTE, 20 * MINUTE),
        gpu("xid_errors_total", xid="79"): held(0, 20 * MINUTE),
    }
    none = {'{xid="79"}': 0.0}
    drawn = expression("fairlead-gpu-node", "XID errors")
    asked = [Asked(9 * MINUTE, drawn, none), *(Asked(at * MINUTE, drawn, {**none, '{xid="31"}': 1}) for at in (11, 19))]
    assert wrong_answers([Question("an XID 31", series, asked)], tmp_path) == ""

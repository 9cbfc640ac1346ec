"""The page's list of charts that only a Prometheus keeps equals the server's. Without this test a
panel that is hidden by mistake would go unnoticed.
"""

from __future__ import annotations

import re
from pathlib import Path

from fairlead.console.charts.queries import CHART_QUERIES

LIST = Path(__file__).parents[2] / "web" / "src" / "charts" / "unkept.ts"


def test_the_page_folds_what_the_built_in_series_do_not_keep() -> None:
    named = set(re.findall(r'"([\w-]+)"', LIST.read_text(encoding="utf-8")))
    assert named == {name for name, query in CHART_QUERIES.items() if not query.is_kept}

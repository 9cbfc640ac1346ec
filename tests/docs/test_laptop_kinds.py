"""docs/get-started/first-job.md lists the kinds of jobs that the laptop runs (those that its API
serves), and the kinds that it does not run.
"""

from __future__ import annotations

from pathlib import Path

from tests.sim.small_world import small_world

from fairlead.cli.frame.verbs import VERBS
from fairlead.kinds.registry import KINDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "get-started" / "first-job.md"


def test_each_kind_stands_where_the_laptop_has_it() -> None:
    _, _, kinds = PAGE.read_text(encoding="utf-8").partition("- The laptop runs ")
    runs, _, others = kinds.partition("\n- ")
    refused = others.partition("\n\n")[0]
    served = {ref.group for ref in small_world().cluster.kinds()}
    submitted = {verb.words[1] for verb in VERBS if verb.words[0] == "submit"}
    for kind in (kind for kind in KINDS if kind.TYPE in submitted):
        is_run = kind.GROUP in served or kind.TYPE == "deepspeedjob"  # it becomes an MPIJob
        if kind.TYPE != "pytorchjob":  # the example above
            assert (f"`{kind.TYPE}`" in runs, f"`{kind.TYPE}`" in refused) == (
                is_run,
                not is_run,
            ), kind.TYPE
    assert "`serve kserve`" in refused and "serving.kserve.io" not in served

"""The program of document 001's images under the guard, without a kubelet: it prints and ends as
`tests/documents/guard_story.py` expects of every place.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.documents.cuda_malloc import cuda_malloc
from tests.documents.guard_story import LINE, MEMORY, STATUS, USED_MIB
from tests.native.driver import MIB, Machine
from tests.programs import run_program

GRANT = 4301 * MIB


def test_three_gib_fit_into_four_units_and_are_shown_to_a_query(tmp_path: Path) -> None:
    machine = Machine(tmp_path, GRANT)
    environment = machine.environment()
    with subprocess.Popen(
        [cuda_malloc(), "3072"], env=environment, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "allocated\n"
        shown = run_program([cuda_malloc()], env=environment, check=True)
        assert (shown.stdout.strip(), shown.stderr) == (MEMORY, "")
        count = machine.count()
        assert (count.truth, count.used, count.denied) == (USED_MIB * MIB, USED_MIB * MIB, 0)
        running.kill()


def test_six_gib_do_not_fit_and_the_program_ends_with_the_documents_line(tmp_path: Path) -> None:
    machine = Machine(tmp_path, GRANT)
    done = run_program([cuda_malloc(), "6144"], env=machine.environment())
    assert (done.returncode, done.stdout, done.stderr) == (STATUS, f"{LINE}\n", "")
    assert machine.count().denied == 1

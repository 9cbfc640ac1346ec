"""For random flag sets `serve TYPE --dry-run` prints what `serve TYPE` creates, object
by object.
"""

from __future__ import annotations

import yaml
from hypothesis import strategies as st
from tests.cli.submitting import KeepingCluster, serve
from tests.examples import examples
from tests.properties.owners import without_owner
from tests.properties.serving_flag_sets import serving_flag_sets


@examples(20, 300, serving_flag_sets(), st.sampled_from(["", "alice", "system:serviceaccount:a:b"]))
def test_a_dry_run_prints_what_is_created(words: list[str], user: str) -> None:
    result = serve([*words, "--dry-run"], KeepingCluster(user=user))
    cluster = KeepingCluster(user=user)
    done = serve(words, cluster)
    printed = list(yaml.safe_load_all(result.out))
    assert printed == [without_owner(each) for each in cluster.created]
    assert done.out.count(" created\n") == len(printed)
    assert all(
        each["metadata"]["labels"]["servingName"] == words[1].removeprefix("--name=")
        for each in printed
    )

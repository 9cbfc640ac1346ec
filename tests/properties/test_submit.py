"""For random flag sets `submit --dry-run` prints what `submit` creates, object by object."""

from __future__ import annotations

import yaml
from hypothesis import strategies as st
from tests.cli.submitting import KeepingCluster, submit
from tests.examples import examples
from tests.properties.flag_sets import flag_sets
from tests.properties.owners import without_owner


@examples(20, 300, flag_sets(), st.sampled_from(["", "alice", "system:serviceaccount:a:b"]))
def test_a_dry_run_prints_what_a_submit_creates(words: list[str], user: str) -> None:
    place = words.index("--")
    result = submit([*words[:place], "--dry-run", *words[place:]], KeepingCluster(user=user))
    cluster = KeepingCluster(user=user)
    done = submit(words, cluster)
    printed = list(yaml.safe_load_all(result.out))
    assert printed == [without_owner(each) for each in cluster.created]
    assert done.out.count(" created\n") == len(printed)
    assert all(each["metadata"]["namespace"] == "default" for each in printed)

"""Grants are read from the newest annotation that exists; an annotation that cannot be parsed is no
grant.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.devices.gpu import Grant
from fairlead.model.pod import Container
from fairlead.wire import names
from fairlead.wire.gpus.allocation import parse_card_memory, parse_grants, render_grants

CONTAINERS = [
    Container("a", limits={names.GPU_MEMORY: 4}),
    Container("b"),
    Container("c", limits={names.GPU_MEMORY: 2}),
]
GRANTS = st.builds(
    Grant,
    st.text(max_size=8),
    st.integers(0, 16),
    st.integers(0, 200),
    st.none() | st.integers(0, 10**6),
    st.integers(0, 100),
)


@given(st.dictionaries(st.text(max_size=8), st.lists(GRANTS, max_size=3).map(tuple), max_size=3))
def test_our_annotation_is_read_back(grants: dict[str, tuple[Grant, ...]]) -> None:
    assert parse_grants({names.ANNOTATION_ALLOCATION: render_grants(grants)}, []) == grants


def test_our_annotation_beats_the_others() -> None:
    annotations = {
        names.ANNOTATION_ALLOCATION: (
            '{"a":[{"uuid":"GPU-x","index":1,"units":4,"mib":4301,"core":30}]}'
        ),
        names.ANNOTATION_REFERENCE_ALLOCATION: '{"0":{"0":4}}',
        names.ANNOTATION_GPU_INDEX: "3",
    }
    assert parse_grants(annotations, CONTAINERS) == {"a": (Grant("GPU-x", 1, 4, 4301, 30),)}


def test_the_reference_counts_containers_by_position_and_has_cores_beside() -> None:
    annotations = {
        names.ANNOTATION_REFERENCE_ALLOCATION: '{"2":{"0":1,"1":1}}',
        names.ANNOTATION_CORE_PERCENTAGE: '{"2":{"1":40}}',
        names.ANNOTATION_GPU_INDEX: "3",
    }
    assert parse_grants(annotations, CONTAINERS) == {
        "c": (Grant("", 0, 1), Grant("", 1, 1, None, 40))
    }


def test_the_index_alone_takes_all_limits_of_the_pod() -> None:
    assert parse_grants({names.ANNOTATION_GPU_INDEX: "2"}, CONTAINERS) == {
        "a": (Grant("", 2, 4),),
        "c": (Grant("", 2, 2),),
    }


def test_a_topology_group_names_whole_cards() -> None:
    assert parse_grants({names.ANNOTATION_TOPOLOGY_GROUP: "0, 3"}, CONTAINERS) == {
        "": (Grant("", 0, 0), Grant("", 3, 0))
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (names.ANNOTATION_ALLOCATION, "{"),
        (names.ANNOTATION_ALLOCATION, "null"),
        (names.ANNOTATION_ALLOCATION, '{"a":[{"units":-4}]}'),
        (names.ANNOTATION_ALLOCATION, '{"a":[{"units":"4"}]}'),
        (names.ANNOTATION_ALLOCATION, '{"a":[{"units":4,"core":-1000}]}'),
        (names.ANNOTATION_REFERENCE_ALLOCATION, '{"9":{"0":4}}'),
        (names.ANNOTATION_REFERENCE_ALLOCATION, '{"0":{"gpu":4}}'),
        (names.ANNOTATION_REFERENCE_ALLOCATION, '{"0":{"0":-1}}'),
        (names.ANNOTATION_REFERENCE_ALLOCATION, "4"),
        (names.ANNOTATION_GPU_INDEX, "-1"),
        (names.ANNOTATION_GPU_INDEX, "9" * 5000),
        (names.ANNOTATION_GPU_INDEX, "٣"),
        (names.ANNOTATION_TOPOLOGY_GROUP, "0,x"),
    ],
)
def test_what_does_not_parse_is_no_grant_even_with_an_older_annotation_beside(
    name: str, text: str
) -> None:
    assert parse_grants({name: text}, CONTAINERS) == {}
    assert (
        name == names.ANNOTATION_TOPOLOGY_GROUP
        or parse_grants({name: text, names.ANNOTATION_TOPOLOGY_GROUP: "0"}, CONTAINERS) == {}
    )


def test_compute_below_nothing_is_no_grant_of_the_reference() -> None:
    notes = {
        names.ANNOTATION_REFERENCE_ALLOCATION: '{"0":{"0":4}}',
        names.ANNOTATION_CORE_PERCENTAGE: '{"0":{"0":-30}}',
    }
    assert parse_grants(notes, CONTAINERS) == {}


@given(st.text(max_size=40))
def test_no_text_makes_it_fail(text: str) -> None:
    for name in (
        names.ANNOTATION_ALLOCATION,
        names.ANNOTATION_REFERENCE_ALLOCATION,
        names.ANNOTATION_GPU_INDEX,
        names.ANNOTATION_TOPOLOGY_GROUP,
    ):
        parse_grants({name: text}, CONTAINERS)
    parse_card_memory({names.LABEL_GPU_CARD_MEMORY: text})


@pytest.mark.parametrize("text", ["", "lots", "0MiB", "16 GiB", "1.5MiB"])
def test_a_memory_label_without_a_usable_value_is_unknown(text: str) -> None:
    assert parse_card_memory({names.LABEL_GPU_CARD_MEMORY: text}) is None

"""Label and field selectors; the contract suite checks that they select as the real server does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_sim.schema.selector import (
    parse_field_selector,
    parse_label_selector,
    render_label_selector,
    selects,
)
from fairlead_sim.schema.status import ApiStatus

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "x", "y", "7"]), max_size=3)
TERMS = st.lists(
    st.builds(
        lambda key, operator, values: {
            "key": key,
            "operator": operator,
            **({"values": values} if "In" in operator else {}),
        },
        st.sampled_from("abc"),
        st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        st.lists(st.sampled_from(["x", "y", "7"]), min_size=1, max_size=2),
    ),
    max_size=3,
)


def labelled(labels: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"labels": labels}}


def _holds(term: dict[str, Any], labels: dict[str, str]) -> bool:
    """The definition of a requirement, written a second time."""
    value = labels.get(term["key"])
    wanted = {
        "In": value in term.get("values", ()),
        "NotIn": value not in term.get("values", ()),
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }
    return wanted[term["operator"]]


@given(TERMS, LABELS)
def test_a_selector_object_and_its_text_choose_the_same(
    terms: list[dict[str, Any]], labels: dict[str, str]
) -> None:
    expected = all(_holds(term, labels) for term in terms)
    assert selects({"matchExpressions": terms})(labelled(labels)) is expected
    assert (
        parse_label_selector(render_label_selector({"matchExpressions": terms}))(labelled(labels))
        is expected
    )


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not selects(None)(labelled({"a": "x"}))
    assert selects({})(labelled({}))


@given(st.text(max_size=30))
def test_any_text_is_a_selector_or_a_bad_request(text: str) -> None:
    for parse in (parse_label_selector, lambda given: parse_field_selector(given, "pods")):
        try:
            parse(text)(labelled({"a": "x"}))
        except ApiStatus as refused:
            assert refused.code == 400


def test_objects_without_labels_are_chosen_by_absence() -> None:
    assert parse_label_selector("!a,b!=x,c notin (y)")({"metadata": {"labels": None}})


@pytest.mark.parametrize(
    ("text", "obj", "chosen"),
    [
        ("spec.unschedulable=true", {"spec": {"unschedulable": True}}, True),
        ("spec.unschedulable=false", {"spec": {}}, True),
        ("metadata.name==n", {"metadata": {"name": "n"}}, True),
        ("metadata.name!=n", {"metadata": {"name": "n"}}, False),
    ],
)
def test_fields_of_nodes(text: str, obj: dict[str, Any], chosen: bool) -> None:
    assert parse_field_selector(text, "nodes")(obj) is chosen

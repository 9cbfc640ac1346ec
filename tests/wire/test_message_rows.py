"""Pods, nodes and events in protobuf give the same rows as their JSON. Unusual messages are read in
full or reported, never in part.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from tests.examples import examples
from tests.protobuf_bodies import encoded, envelope, frame, list_body, part
from tests.wire.message_readers import READERS

from fairlead.edge.kube.api_page import ItemReader, Page, early_token
from fairlead.edge.kube.quota_api import LEAN_POD_SUBJECT
from fairlead.edge.kube.resource import PODS, SERVICES
from fairlead.model.node import Condition
from fairlead.model.pod import Pod
from fairlead.wire.kube import message_pages, message_rows, objects
from fairlead.wire.kube.budgets import WireNamespace, parse_namespace
from fairlead.wire.kube.forms import JsonForm, UnreadableProtobuf
from fairlead.wire.kube.objects import EVENT_FORM, NODE_FORM, POD_FORM, WirePod, parse_pod

# objects as JSON: any of their parts may be absent

words = st.sampled_from(
    ["", "a", "gpu-1", "train-0", "Ready", "True", "False", "雪", "x" * 130, 'quo"te\n']
)
names = st.sampled_from(
    [
        "a",
        "b",
        "worker-0",
        "nvidia.com/gpu",
        "cpu",
        "memory",
        "aliyun.com/gpu-mem",
        "雪/n",
        "k" * 140,
    ]
)
times = st.integers(0, 2**33).map(
    lambda seconds: (
        f"{1971 + seconds % 200}-0{1 + seconds % 9}-1{seconds % 9}T0{seconds % 9}:59:"
        f"5{seconds % 9}Z"
    )
)
micro_times = times.map(lambda text: text.replace("Z", ".123456Z"))
amounts = st.dictionaries(
    names, st.sampled_from(["0", "1", "500m", "16Gi", "1e3", "0.5"]), max_size=3
)
texts = st.dictionaries(names, words, max_size=3)
ANNOTATIONS = [
    "fairlead.io/gpu-allocation",
    "ALIYUN_COM_GPU_MEM_IDX",
    "fairlead.io/gpu-mem-limit-mib",
    "fairlead.io/gpus",
    "k8s.io/x",
    "x" * 200,
]
annotations = st.dictionaries(
    st.sampled_from(ANNOTATIONS),
    st.sampled_from(['{"a":[{"index":1,"units":4}]}', '{"a":3500}', "1", "[]", "x"]),
    max_size=4,
)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def lists(of: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(of, max_size=3)


meta = some(
    name=names,
    namespace=words,
    labels=texts,
    annotations=annotations,
    creationTimestamp=times,
    deletionTimestamp=times,
    resourceVersion=st.sampled_from(["7", "x", ""]),
    ownerReferences=lists(
        some(kind=words, name=words, uid=words, controller=st.booleans(), apiVersion=words)
    ),
    managedFields=lists(some(manager=words, fieldsV1=st.just({"f:metadata": {}}))),
    finalizers=lists(words),
)
container = some(
    name=names,
    image=words,
    resources=some(requests=amounts, limits=amounts),
    restartPolicy=st.sampled_from(["Always", "Never"]),
    env=lists(some(name=words, value=words)),
)
state = some(
    waiting=some(reason=words, message=words),
    running=some(startedAt=times),
    terminated=some(
        exitCode=st.integers(-1, 255),
        signal=st.sampled_from([9, 15]),
        reason=words,
        message=words,
        startedAt=times,
        finishedAt=times,
    ),
)
one_state = state.map(lambda reported: dict(list(reported.items())[:1])).map(
    lambda reported: (
        {"terminated": {"exitCode": 0, **reported["terminated"]}}
        if "terminated" in reported
        else reported
    )
)
status = st.fixed_dictionaries(
    {
        "name": names,
        "ready": st.booleans(),
        "restartCount": st.integers(0, 1 << 30),
        "state": one_state,
    },
    optional={"lastState": one_state, "started": st.booleans(), "allocatedResources": amounts},
)
SOUND = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
sound_conditions = st.tuples(*([times] * len(SOUND)), st.sampled_from([0, 1, 300])).map(
    lambda reported: [
        {
            "type": kind,
            "status": "True",
            "lastTransitionTime": at,
            "observedGeneration": reported[-1],
        }
        for kind, at in zip(SOUND, reported, strict=False)
    ]
)
conditions = sound_conditions | lists(
    some(
        type=st.sampled_from(["Ready", "PodScheduled", ""]),
        status=words,
        reason=words,
        message=words,
        lastTransitionTime=times,
    )
)
affinity = st.just(
    {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b", "c"]}]}
                ]
            }
        }
    }
)
pods = st.fixed_dictionaries(
    {"metadata": meta},
    optional={
        "spec": some(
            nodeName=words,
            containers=lists(container),
            initContainers=lists(container),
            overhead=amounts,
            priority=st.integers(-(1 << 31), (1 << 31) - 1),
            priorityClassName=words,
            schedulerName=words,
            schedulingGates=lists(some(name=words)),
            preemptionPolicy=st.sampled_from(["Never", "PreemptLowerPriority"]),
            nodeSelector=texts,
            affinity=affinity,
            tolerations=lists(
                some(
                    key=names,
                    operator=st.sampled_from(["Exists", "Equal"]),
                    value=words,
                    effect=words,
                )
            ),
            resources=some(requests=amounts, limits=amounts),
            terminationGracePeriodSeconds=st.sampled_from([0, 30, 1 << 40]),
            volumes=lists(
                some(
                    name=words,
                    emptyDir=some(medium=words),
                    persistentVolumeClaim=some(claimName=words, readOnly=st.booleans()),
                )
            ),
        ),
        "status": some(
            phase=st.sampled_from(
                ["", "Pending", "Running", "Succeeded", "Failed", "Unknown", "Odd"]
            ),
            reason=words,
            message=words,
            hostIP=words,
            podIP=words,
            startTime=times,
            containerStatuses=lists(status),
            initContainerStatuses=lists(status),
            conditions=conditions,
            nominatedNodeName=words,
        ),
    },
)
nodes = st.fixed_dictionaries(
    {"metadata": meta},
    optional={
        "spec": some(
            unschedulable=st.booleans(),
            taints=lists(some(key=words, value=words, effect=words, timeAdded=times)),
        ),
        "status": some(
            capacity=amounts,
            allocatable=amounts,
            addresses=lists(some(type=words, address=words)),
            conditions=conditions,
            nodeInfo=some(kubeletVersion=words, containerRuntimeVersion=words, osImage=words),
            images=lists(some(names=lists(words), sizeBytes=st.integers(0, 1 << 40))),
        ),
    },
)
events = st.fixed_dictionaries(
    {"metadata": meta},
    optional={
        "involvedObject": some(kind=words, namespace=words, name=words, uid=words),
        "type": words,
        "reason": words,
        "message": words,
        "count": st.integers(0, 1000),
        "eventTime": micro_times,
        "firstTimestamp": times,
        "lastTimestamp": times,
        "series": some(count=st.integers(0, 1000), lastObservedTime=micro_times),
    },
)
statuses = pods.map(lambda reported: reported.get("status", {}))
namespaces = st.fixed_dictionaries({"metadata": meta}, optional={"status": some(phase=words)})
config_maps = st.fixed_dictionaries(
    {"metadata": meta.map(lambda reported: {**reported, "name": "unhealthy-gpu-n"})},
    optional={"data": st.just({"gpus": "1,2"})},
)
OBJECTS = {
    "Pod": pods,
    "Node": nodes,
    "Event": events,
    "Namespace": namespaces,
    "ConfigMap": config_maps,
}


def with_uids(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**each, "metadata": {**each["metadata"], "uid": f"u{place}"}}
        for place, each in enumerate(objects)
    ]


def read(kind: str, body: bytes) -> Page[Any]:
    reader = READERS[kind]
    return reader.parse_page(reader.decode_page(body))


@examples(
    150,
    1_000,
    st.sampled_from(sorted(OBJECTS)).flatmap(
        lambda kind: st.tuples(st.just(kind), lists(OBJECTS[kind]))
    ),
)
def test_both_forms_give_the_same_rows(kind_and_objects: tuple[str, list[dict[str, Any]]]) -> None:
    kind, objects = kind_and_objects[0], with_uids(kind_and_objects[1])
    in_json = read(
        kind,
        msgspec.json.encode(
            {"metadata": {"resourceVersion": "7", "continue": "t"}, "items": objects}
        ),
    )
    in_protobuf = read(
        kind, list_body(kind, [encoded(f"core.{kind}", each) for each in objects], token="t")
    )
    assert list(in_protobuf.rows.items()) == list(in_json.rows.items())
    assert in_protobuf == in_json


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_unknown_quantity_and_an_invalid_text_leave_out_no_other_row(kind: str) -> None:
    sound = {"metadata": {"name": "b", "uid": "b"}}
    malformed = {
        "metadata": {"name": "\udcff", "namespace": "n", "uid": "a", "labels": {"x": "\udcfe"}}
    }
    page = read(
        kind, list_body(kind, [encoded(f"core.{kind}", each) for each in (malformed, sound)])
    )
    assert list(page.rows) == ["a", "b"] and not page.malformed
    if kind == "Pod":
        assert page.rows["a"].name == "\N{REPLACEMENT CHARACTER}" and page.rows["a"].labels == {
            "x": "\N{REPLACEMENT CHARACTER}"
        }
        malformed = {
            "metadata": {"name": "o", "namespace": "n", "uid": "o"},
            "spec": {"containers": [{"resources": {"limits": {"cpu": "a lot"}}}]},
        }
        page = read(
            kind, list_body(kind, [encoded("core.Pod", each) for each in (malformed, sound)])
        )
        [left_out] = page.malformed
        assert list(page.rows) == ["b"] and left_out.key == "o"
        assert left_out.label == "pods n/o" and left_out.reason == (
            "resource `cpu`: quantity `a lot` is not a Kubernetes quantity"
        )


def pod_reader(mark: bytes = b"") -> ItemReader[Any]:
    return ItemReader(PODS, POD_FORM, mark, lambda _: not mark)


def in_frames(*reported: tuple[str, Mapping[str, Any]]) -> list[bytes]:
    return [frame(kind, envelope("Pod", encoded("core.Pod", each)))[4:] for kind, each in reported]


def in_lines(*reported: tuple[str, Mapping[str, Any]]) -> bytes:
    return b"\n".join(
        msgspec.json.encode({"type": kind, "object": each}) for kind, each in reported
    )


@examples(
    40, 300, st.lists(st.tuples(pods, st.lists(statuses, min_size=1, max_size=4)), max_size=3)
)
def test_events_in_both_forms_make_the_same_changes_however_often_a_pod_changes(
    stories: list[tuple[Any, list[Any]]],
) -> None:
    reported = [
        (
            "MODIFIED",
            {
                **each,
                "metadata": {**each["metadata"], "resourceVersion": str(version)},
                "status": status,
            },
        )
        for each, (_, changes) in zip(with_uids([pod for pod, _ in stories]), stories, strict=True)
        for version, status in enumerate([*changes, *changes])
    ]
    reader = pod_reader()
    assert reader.read_frames(in_frames(*reported)) == pod_reader().read_changes(
        in_lines(*reported)
    )
    assert reader.read_frames(in_frames(*reported[::-1])) == pod_reader().read_changes(
        in_lines(*reported[::-1])
    )


def test_of_a_pod_that_comes_again_only_what_changed_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_whole: list[str] = []
    read_pod, reader = message_rows.read_pod, pod_reader()
    monkeypatch.setattr(
        message_rows,
        "read_pod",
        lambda pod, raw: read_whole.append(pod.metadata.uid) or read_pod(pod, raw),
    )

    def reported(version: str, *, node: str = "g", given: str = "1", **more: Any) -> Any:
        meta = {
            "name": "a",
            "uid": "a",
            "resourceVersion": version,
            "managedFields": [{"manager": f"kubelet {version}"}],
        }
        containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
        container = {"name": "c", "state": {}, "allocatedResources": {"cpu": given}, **more}
        status = {"phase": "Running", "containerStatuses": [container]}
        event = (
            "MODIFIED",
            {
                "metadata": meta,
                "spec": {"nodeName": node, "containers": containers},
                "status": status,
            },
        )
        [change] = reader.read_frames(in_frames(event))
        assert [change] == pod_reader().read_changes(in_lines(event))
        return change.row

    assert [
        reported("1").statuses[0].restarts,
        reported("2", restartCount=7).statuses[0].restarts,
    ] == [
        0,
        7,
    ]
    assert read_whole == ["a"]
    # the container is being resized
    assert (
        reported("3", given="2").containers[0].requests == {"cpu": 2000} and read_whole == ["a"] * 2
    )
    assert reported("4").containers[0].requests == {"cpu": 1000} and read_whole == ["a"] * 2
    assert reported("5", node="h").node == "h" and read_whole == ["a"] * 3
    monkeypatch.setattr(message_rows, "KNOWN_BYTES_MAX", 200)
    reported("6", node="i")  # replaces all others
    reported("7", node="i")
    assert read_whole == ["a"] * 4
    reported("8", node="h")
    assert read_whole == ["a"] * 5


@pytest.mark.parametrize("length", [0, 40, 100, 128, 200, 16_300, 16_384, 70_000])
def test_events_of_any_length_and_type_are_the_same_again(length: int) -> None:
    reader = pod_reader()
    reported = [
        (kind, {"metadata": {"name": "a" * length, "uid": uid}})
        for uid in "ab"
        for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
    ]
    for _ in range(2):
        assert reader.read_frames(in_frames(*reported)) == pod_reader().read_changes(
            in_lines(*reported)
        )
    [longer] = in_frames(("MODIFIED", {"metadata": {"name": "a" * length, "uid": "b"}}))
    with pytest.raises(UnreadableProtobuf):
        reader.read_frames([longer[:-6]])
    [change] = reader.read_frames([longer + part(9, b"of a later server")])
    assert change.key == "b"


def test_conditions_of_a_sound_pod_from_before_there_were_generations() -> None:
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-05T08:00:00Z"}
        for kind in SOUND
    ]
    raws = [encoded("core.PodCondition", each).removesuffix(b"8\0") for each in conditions]
    raw = part(1, encoded("meta.ObjectMeta", {"uid": "u"})) + part(
        3, b"".join(part(2, each) for each in raws)
    )
    [row] = read("Pod", list_body("Pod", [raw])).rows.values()
    assert row.conditions == (Condition("PodScheduled", "True", "", "", 1767600000.0),)


def test_which_kinds_are_taken_in_protobuf() -> None:
    assert all(reader.takes_protobuf for reader in READERS.values())
    assert not ItemReader(SERVICES, JsonForm(WireNamespace, parse_namespace)).takes_protobuf
    assert not ItemReader(PODS, JsonForm(WireNamespace, parse_namespace)).takes_protobuf


def test_a_parser_of_json_alone_is_called_for_every_object() -> None:
    """Even for a kind with a parser for each form; such a reader does not request protobuf."""
    reader = ItemReader(PODS, JsonForm(WirePod, lambda wire: parse_pod(wire).name))
    assert not reader.takes_protobuf
    page = reader.parse_page(reader.decode_page(b'{"items":[{"metadata":{"name":"a","uid":"u"}}]}'))
    assert page.rows == {"u": "a"}


def test_each_kind_with_two_parsers_has_them_in_both_forms() -> None:
    assert (
        {form.kind for form in (POD_FORM, NODE_FORM, EVENT_FORM)}
        == set(message_pages.PARSERS)
        == set(objects.JSON_FORMS)
    )


def test_what_is_kept_of_a_pod_is_the_same_in_both_forms_of_a_list_and_of_a_watch() -> None:
    """Quota keeps nothing that a kubelet reports, which is most of the memory of a list of all
    pods.
    """
    status = {
        "podIP": "10.0.0.1",
        "hostIP": "10.0.0.2",
        "phase": "Running",
        "reason": "r",
        "message": "m",
    }
    status["containerStatuses"] = [
        {
            "name": "c",
            "restartCount": 3,
            "image": "i",
            "imageID": "",
            "ready": True,
            "started": True,
        }
    ]
    pod = {
        "metadata": {"name": "a", "uid": "a"},
        "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
        "status": status,
    }
    reader = LEAN_POD_SUBJECT.reader(PODS)
    pages = [
        msgspec.json.encode({"metadata": {}, "items": [pod]}),
        list_body("Pod", [encoded("core.Pod", pod)]),
    ]
    rows = [reader.parse_page(reader.decode_page(body)).rows["a"] for body in pages]
    reported = [("ADDED", pod), ("MODIFIED", pod), ("MODIFIED", pod)]
    rows += [
        change.row
        for change in (
            *reader.read_changes(in_lines(*reported)),
            *reader.read_frames(in_frames(*reported)),
        )
        if change.row
    ]
    assert len(rows) == 8
    assert all(row.phase == "Running" and row.node == "n" for row in rows)
    assert {(row.statuses, row.pod_ip, row.host_ip, row.reason, row.message) for row in rows} == {
        ((), "", "", "", "")
    }


def test_the_next_token_is_known_before_a_page_is_decoded() -> None:
    body = list_body(
        "Pod", [encoded("core.Pod", {"metadata": {"name": "a"}})] * 3, token="eyJ2IjoibWV0YSJ9"
    )
    assert early_token(body) == "eyJ2IjoibWV0YSJ9" == READERS["Pod"].decode_page(body).token
    assert early_token(body[:120]) == "eyJ2IjoibWV0YSJ9"
    assert (
        early_token(list_body("Pod", [])) == early_token(body[:30]) == early_token(b"k8s\0") == ""
    )


RUNNING = {"running": {"startedAt": "2026-01-05T08:00:00Z"}}
POD = {
    "metadata": {
        "name": "a",
        "namespace": "n",
        "uid": "u",
        "labels": {"app": "x"},
        "annotations": {"fairlead.io/gpus": "[]"},
    },
    "spec": {
        "nodeName": "g",
        "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    },
    "status": {
        "phase": "Running",
        "containerStatuses": [{"name": "c", "ready": True, "state": RUNNING}],
    },
}
BODY = list_body("Pod", [encoded("core.Pod", POD)] * 2)


def test_a_page_that_is_cut_off_anywhere_is_no_page() -> None:
    for end in range(4, len(BODY) - len(part(3, b"") + part(4, b""))):
        with pytest.raises(UnreadableProtobuf):
            read("Pod", BODY[:end])


STRANGE = {
    "another magic": (
        b"k8x\0" + BODY[4:],
        msgspec.DecodeError,
        "JSON is malformed: invalid character (byte 0)",
    ),
    "another kind": (
        list_body("Node", []),
        UnreadableProtobuf,
        "a `NodeList` of `v1` came where a `PodList` was asked for",
    ),
    "a length of 10 GB": (
        b"k8s\0" + part(1, b"") + b"\x12" + bytes([0x80, 0xC8, 0xAF, 0xA0, 0x25]),
        UnreadableProtobuf,
        "the protobuf body cannot be read: field 2 is cut off",
    ),
    "a number without an end": (
        b"k8s\0" + b"\xff" * 30,
        UnreadableProtobuf,
        "the protobuf body cannot be read: a number is too long",
    ),
    "nothing behind the magic": (
        b"k8s\0",
        UnreadableProtobuf,
        "the protobuf body has no object in it",
    ),
    "garbage as the list": (
        envelope("PodList", b"\xff\xff\xff"),
        UnreadableProtobuf,
        "the protobuf body cannot be read: field 31 is cut off, or none of a list's",
    ),
    "garbage as an item": (
        envelope("PodList", part(2, b"\x0a\x50x")),
        UnreadableProtobuf,
        "the protobuf body cannot be read: field 1 is cut off",
    ),
}


@pytest.mark.parametrize("case", STRANGE)
def test_an_invalid_page_is_reported(case: str) -> None:
    body, failure, words = STRANGE[case]
    with pytest.raises(failure) as caught:
        read("Pod", body)
    assert str(caught.value) == words


@examples(200, 5_000, st.integers(0, 1 << 62))
def test_any_bytes_are_a_sentence_or_whole_rows(seed: int) -> None:
    rng = random.Random(seed)
    body = bytearray(BODY)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(4, len(body))
        match rng.randrange(3):
            case 0:
                body[at] = rng.randrange(256)
            case 1:
                del body[at : at + rng.randint(1, 9)]
            case _:
                body[at:at] = rng.randbytes(rng.randint(1, 9))
    try:
        page = read("Pod", bytes(body))
    except UnreadableProtobuf as error:
        assert len(str(error)) > 20
        return
    for row in page.rows.values():
        assert msgspec.convert(msgspec.to_builtins(row), Pod) == row
    assert all(each.reason for each in page.malformed)


def test_an_object_that_is_strange_and_broken_leaves_out_no_other() -> None:
    """An unknown quantity makes the reader use the slow path, which cannot read this
    pod's volumes.
    """
    spec = encoded(
        "core.PodSpec", {"containers": [{"name": "c", "resources": {"limits": {"cpu": "a lot"}}}]}
    ) + part(1, b"\xff")
    broken = part(
        1, encoded("meta.ObjectMeta", {"name": "o", "namespace": "n", "uid": "o"})
    ) + part(2, spec)
    page = read(
        "Pod",
        list_body("Pod", [broken, encoded("core.Pod", {"metadata": {"name": "b", "uid": "b"}})]),
    )
    [left_out] = page.malformed
    assert list(page.rows) == ["b"] and (left_out.key, left_out.label) == ("o", "pods n/o")


def test_what_is_not_marked_makes_no_row_however_often_it_comes_at_once() -> None:
    reader = ItemReader(PODS, POD_FORM, mark=b"aliyun.com/gpu", is_known=lambda key: False)
    plain, marked = (
        {
            "metadata": {"name": name, "uid": name},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {resource: "1"}}}]},
        }
        for name, resource in (("a", "cpu"), ("b", "aliyun.com/gpu-mem"))
    )
    objects = [plain, plain, marked, {"metadata": {"name": "b", "uid": "b"}}]
    reported = [("MODIFIED", each) for each in objects]
    for changes in (
        reader.read_changes(in_lines(*reported)),
        reader.read_frames(in_frames(*reported)),
    ):
        assert [change.row is not None for change in changes] == [False, False, True, True]


def test_a_mark_in_metadata_marks_nothing_in_protobuf() -> None:
    plain = {"metadata": {"name": "a", "uid": "a", "annotations": {"aliyun.com/gpu-mem": "4"}}}
    [change] = pod_reader(b"aliyun.com/gpu").read_frames(in_frames(("MODIFIED", plain)))
    assert (change.key, change.row) == ("a", None)

"""Scenarios: the default loads, and the message of every fault names the file, the line and the
key.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.examples import long_case
from tests.sim.small_world import EPOCH

from fairlead.errors import UserError
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.file import known_scenarios, load_scenario, parse_scenario

GOOD = """\
title = "T"

[[node_pools]]
name = "gpu"
gpus = 2
gpu_model = "Tesla T4"

[[teams]]
name = "a"
namespaces = ["a"]

[[quota]]
path = "root"
max = { cpu = 4 }

[[quota]]
path = "root.a"
namespaces = ["a"]

[[streams]]
name = "train"
namespace = "a"
kind = "mpijob"
every = "5m"
runs = ["1m", "2m"]

[[xids]]
node = "gpu-1"
gpu = 1
code = 79
at = "1h"
"""


def refusal(text: str) -> str:
    with pytest.raises(UserError) as caught:
        parse_scenario(text, "mine.toml")
    assert caught.value.hint
    return caught.value.what


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), start=1) if part in line)


def test_a_good_scenario_loads() -> None:
    scenario = parse_scenario(GOOD, "mine.toml")
    assert scenario.streams[0].every.seconds == 300
    assert scenario.node_pools[0].gpu_model == "Tesla T4"


LIVED_ELSEWHERE = {"default", "faults", "telemetry"}
"""Scenarios that test_default_scenario, test_faults_scenario and test_telemetry_scenario run in
`make test`.
"""


@pytest.mark.parametrize(  # for `large` see test_settled.py and `python -m bench large_world`
    "name",
    [
        long_case(name) if name in LIVED_ELSEWHERE else name
        for name in sorted(set(known_scenarios()) - {"large"})
    ],
)
def test_every_scenario_that_comes_with_fairlead_loads_and_lives(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.title
    world = sharing_world(scenario, 1, EPOCH)
    world.warm_up()
    assert world.clock.now() == EPOCH + scenario.history.seconds
    assert world.cluster.list(NODES)


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("gpus = 2", 'gpus = "two"', "node_pools[0].gpus", "Expected `int`, got `str`"),
        ("gpus = 2", "gpus = 99", "node_pools[0].gpus", "99 is not between 0 and 16"),
        ("gpus = 2", "gpuss = 2", "node_pools[0].gpuss", "unknown field `gpuss`"),
        (
            ('gpu_model = "Tesla T4"'),
            ('gpu_model = "Voodoo 2"'),
            "node_pools[0].gpu_model",
            "`Voodoo 2` is not a known card",
        ),
        ('name = "gpu"', 'name = "GPU!"', "node_pools[0].name", "`GPU!` is not a Kubernetes name"),
        ('namespace = "a"', 'namespace = "b"', "streams[0].namespace", "no team has namespace `b`"),
        ('kind = "mpijob"', 'kind = "rayjob"', "streams[0].kind", "Invalid enum value 'rayjob'"),
        ('every = "5m"', 'every = "often"', "streams[0].every", "`often` is not a length of time"),
        ('every = "5m"', "every = 5", "streams[0].every", "`5` is not a length of time in quotes"),
        (
            ('runs = ["1m", "2m"]'),
            ('runs = ["3m", "2m"]'),
            "streams[0].runs",
            "the shortest is longer than the longest",
        ),
        (
            ('runs = ["1m", "2m"]'),
            ('runs = ["1m"]'),
            "streams[0].runs",
            "Expected `array` of length 2, got 1",
        ),
        (
            ('every = "5m"'),
            ('every = "5m"\nworkers = [1, 2001]'),
            "streams[0].workers",
            "at least one number of workers, each 1 to 2000",
        ),
        (
            "max = { cpu = 4 }",
            ('max = { cpu = "four" }'),
            "quota[0].max",
            "`four` is not a Kubernetes quantity",
        ),
        ('path = "root.a"', 'path = "roof.a"', "quota[1].path", "`roof.a` has no parent `roof`"),
        ('node = "gpu-1"', 'node = "gpu-2"', "xids[0].node", "there is no node `gpu-2`"),
        ("gpu = 1", "gpu = 2", "xids[0].gpu", "node `gpu-1` has 2 GPUs, there is no index 2"),
    ],
)
def test_a_fault_names_line_and_key(old: str, new: str, key: str, message: str) -> None:
    text = GOOD.replace(old, new, 1)
    what = refusal(text)
    assert f"`mine.toml` line {line_of(text, new.splitlines()[-1])}, key `{key}`:" in what
    assert message in what


T4 = 'gpu_model = "Tesla T4"'
DIVIDED = 'gpu_model = "NVIDIA H200"\nmig = '
MORE = """
[[hangs]]
node = "gpu-1"
gpu = 0
at = "10m"
until = "20m"

[[foreign_processes]]
node = "gpu-1"
gpu = 0
memory = "3Gi"
at = "11m"
until = "21m"

[[priority_classes]]
name = "high"
value = 10

[[services]]
name = "web"
namespace = "a"
image = "web:1"

[[pods]]
name = "one"
namespace = "kube-system"

[[network_services]]
name = "dns"
namespace = "kube-system"
cluster_ip = "10.96.0.10"
ports = ["53/UDP"]

[[outages]]
node = "gpu-1"
at = "2h"
until = "3h"
"""


_NODE_PORT_SERVICE = (
    '\n\n[[network_services]]\nname = "{}"\nnamespace = "a"\ntype = "NodePort"\nports = '
    '["80:30080/TCP"]\n'
)


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        (
            "[[teams]]",
            "[[node_pools]]\nnames = ['x', 'gpu-1']\n\n[[teams]]",
            "node_pools[1].names",
            "there are two nodes `gpu-1`",
        ),
        (
            "[[teams]]",
            "[[node_pools]]\nname = 'gpu'\n\n[[teams]]",
            "node_pools[1].name",
            "there are two nodes `gpu-1`",
        ),
        (
            ('name = "gpu"'),
            "names = ['a', 'b']\ncount = 3",
            "node_pools[0].count",
            "`names` gives 2 machines, `count` 3",
        ),
        (
            ('name = "gpu"'),
            "names = ['a', 'B']",
            "node_pools[0].names",
            "`B` is not a Kubernetes name",
        ),
        ('name = "gpu"\n', "", "node_pools[0].name", "a pool needs a `name`, or exact `names`"),
        (
            ('name = "gpu"'),
            "names = ['a', 'b']\naddresses = ['10.0.0.1']",
            "node_pools[0].addresses",
            "there are 1 addresses for 2 names",
        ),
        (
            ('name = "gpu"'),
            "names = ['a']\naddresses = ['10.0.0.256']",
            "node_pools[0].addresses",
            "`10.0.0.256` is no IPv4 address",
        ),
        (
            'name = "gpu"',
            "names = ['a', 'b']\naddresses = ['10.0.0.1', '10.0.0.1']",
            "node_pools[0].addresses",
            "two nodes have the address",
        ),
        ("gpus = 2", "gpus = 0", "node_pools[0].gpu_model", "a model (`Tesla T4`) of no cards"),
        ("gpus = 2", "gpus = 2\ncpu = 0", "node_pools[0].cpu", "0 is not between 1 and 4096"),
        ("gpus = 2", "gpus = 2\nmemory = '-1Gi'", "node_pools[0].memory", "`-1Gi` is below 0"),
        (
            "gpus = 2",
            "gpus = 2\nmig = ['1g.18gb']",
            "node_pools[0].mig",
            "a Tesla T4 cannot be divided by MIG",
        ),
        (
            T4,
            f'{DIVIDED}["1g.10gb"]',
            "node_pools[0].mig",
            "`1g.10gb` is no profile of a NVIDIA H200; it has 1g.18gb,",
        ),
        (
            T4,
            f'{DIVIDED}["4g.71gb", "4g.71gb"]',
            "node_pools[0].mig",
            "these instances need 8 slices of compute, a card has 7",
        ),
        (
            T4,
            f'{DIVIDED}["1g.35gb", "1g.35gb", "1g.35gb", "1g.35gb", "1g.35gb"]',
            "node_pools[0].mig",
            "these instances need 10 slices of memory, a card has 8",
        ),
        (
            T4,
            f'{DIVIDED}["1g.18gb"]\nshared = true',
            "node_pools[0].mig",
            "divides its GPUs by MIG or shares them",
        ),
        (
            T4,
            f'{DIVIDED}["1g.18gb"]',
            "foreign_processes[0].node",
            "the GPUs of `gpu-1` are divided by MIG",
        ),
        (
            ('image = "web:1"'),
            ('image = "web:1"\nmig = "1g.18gb"'),
            "services[0].mig",
            "no machine has an instance `1g.18gb`; there are none",
        ),
        (
            ('image = "web:1"'),
            ('image = "web:1"\nmig = "1g.18gb"\ngpus = 1'),
            "services[0].mig",
            "a MIG instance (`mig`) or",
        ),
        (
            'namespaces = ["a"]',
            'namespaces = ["a"]\n\n[[teams]]\nname = "b"\nnamespaces = ["a"]',
            "teams[1].namespaces",
            "`a` is already of team `a`",
        ),
        (
            ('namespaces = ["a"]'),
            ('namespaces = ["a", "kube-system"]'),
            "teams[0].namespaces",
            "`kube-system` belongs to the cluster",
        ),
        (
            ('namespaces = ["a"]'),
            ('namespaces = ["a", "B"]'),
            "teams[0].namespaces",
            "`B` is not a Kubernetes name",
        ),
        (
            ('path = "root.a"'),
            ('path = "root"'),
            "quota[1].path",
            "`root` is there twice: also `quota[0]`",
        ),
        ('path = "root.a"', 'path = "other"', "quota[1].path", "there is one root already, `root`"),
        (
            'path = "root.a"',
            'path = "root.b.a"\n\n[[quota]]\npath = "root.b"',
            "quota[1].path",
            "`root.b.a` stands before its parent `root.b`",
        ),
        (
            'path = "root.a"',
            'path = "root.a"\nmin = { cpu = 3 }',
            "quota[0].min",
            "its children's min of cpu (root.a 3) is more than its own min 0",
        ),
        (
            "max = { cpu = 4 }",
            "min = { cpu = 5 }\nmax = { cpu = 4 }",
            "quota[0].min",
            "min 5 of cpu is more than max 4",
        ),
        ("max = { cpu = 4 }", "min = { cpu = -5 }", "quota[0].min", "-5 of cpu is below 0"),
        (
            "max = { cpu = 4 }",
            'max = { cpu = 4 }\nnamespaces = ["a"]',
            "quota[0].namespaces",
            "`root` has children: namespaces belong to leaves",
        ),
        (
            ('path = "root.a"\nnamespaces = ["a"]'),
            ('path = "root.a"\nnamespaces = ["b"]'),
            "quota[1].namespaces",
            "no team has namespace `b`",
        ),
        (
            "value = 10",
            "value = 2000000000",
            "priority_classes[0].value",
            "2000000000 is not between",
        ),
        (
            ('name = "high"'),
            ('name = "system-high"'),
            "priority_classes[0].name",
            "names that begin with `system-`",
        ),
        (
            "value = 10",
            "value = 10\n\n[[priority_classes]]\nname = 'high'\nvalue = 3",
            "priority_classes[1].name",
            "`high` is there twice",
        ),
        (
            'image = "web:1"',
            'image = "web:1"\npriority_class = "low"',
            "services[0].priority_class",
            "`low` is not among `priority_classes`",
        ),
        (
            ('image = "web:1"'),
            ('image = "web:1"\ngpus = 3'),
            "services[0].gpus",
            "3 fits on no machine; the largest has 2",
        ),
        (
            ('image = "web:1"'),
            ('image = "web:1"\ngpu_memory = 4'),
            "services[0].gpu_memory",
            "4 fits on no machine; the largest has 0",
        ),
        (
            ('image = "web:1"'),
            ('image = "web:1"\ncpu = "17"'),
            "services[0].cpu",
            "`17` fits on no machine; the largest has 16",
        ),
        (
            ('image = "web:1"'),
            ('image = "web:1"\nmemory = "1Ti"'),
            "services[0].memory",
            "`1Ti` fits on no machine; the largest has `64Gi`",
        ),
        ('image = "web:1"', 'image = "web:1"\ngpus = -1', "services[0].gpus", "-1 is below 0"),
        (
            'image = "web:1"',
            'image = "web:1"\n\n[[services]]\nname = "web"\nnamespace = "a"\nimage = "x"',
            "services[1].name",
            "`web` is there twice",
        ),
        (
            ('kind = "mpijob"'),
            ('kind = "mpijob"\nparameter_servers = 1'),
            "streams[0].parameter_servers",
            "a mpijob has no parameter servers",
        ),
        (
            ('kind = "mpijob"'),
            ('kind = "mpijob"\nfailing = -0.1'),
            "streams[0].failing",
            "-0.1 is no share",
        ),
        (
            ('kind = "mpijob"'),
            ('kind = "mpijob"\nbackoff_limit = -1'),
            "streams[0].backoff_limit",
            "must be 0 to 2000",
        ),
        ('name = "one"', 'name = "One"', "pods[0].name", "`One` is not a Kubernetes name"),
        (
            ('ports = ["53/UDP"]'),
            ('ports = ["53"]'),
            "network_services[0].ports",
            "`53` is not a port such as",
        ),
        (
            ('ports = ["53/UDP"]'),
            ('ports = ["53:30053/UDP"]'),
            "network_services[0].ports",
            "a Service of type `ClusterIP` does not have",
        ),
        (
            ('cluster_ip = "10.96.0.10"'),
            ('cluster_ip = "here"'),
            "network_services[0].cluster_ip",
            "`here` is no IPv4 address",
        ),
        (
            ('cluster_ip = "10.96.0.10"'),
            ('cluster_ip = "10.0.0.1"'),
            "network_services[0].cluster_ip",
            "`10.0.0.1` is not in 10.96.0.0/12",
        ),
        (
            ('cluster_ip = "10.96.0.10"'),
            ('cluster_ip = "10.96.0.1"'),
            "network_services[0].cluster_ip",
            "is that of the Service `kubernetes`",
        ),
        (
            'ports = ["53/UDP"]',
            'type = "NodePort"\nports = ["53:20053/UDP"]',
            "network_services[0].ports",
            "20053 is no port on the nodes: they are 30000 to 32767",
        ),
        (
            'ports = ["53/UDP"]',
            ('ports = ["53/UDP"]')
            + "".join(_NODE_PORT_SERVICE.format(name) for name in ("n1", "n2")),
            "network_services[2].ports",
            "`30080` is that of the Service `n1` already",
        ),
        ("code = 79", "code = 0", "xids[0].code", "0 is no XID"),
        ('at = "1h"', 'at = "-1h"', "xids[0].at", "`-1h` is not a length of time"),
        ('until = "3h"', 'until = "1h"', "outages[0].until", "is not after `at`"),
        (
            ('until = "3h"'),
            ('until = "3h"\n\n[[outages]]\nnode = "gpu-1"\nat = "150m"'),
            "outages[1].at",
            "`gpu-1` is silent already",
        ),
        ('until = "20m"', 'until = "9m"', "hangs[0].until", "is not after `at`"),
        (
            'until = "20m"',
            'until = "20m"\n\n[[hangs]]\nnode = "gpu-1"\ngpu = 0\nat = "19m"',
            "hangs[1].at",
            "GPU 0 of `gpu-1` hangs already",
        ),
        (
            ('until = "20m"'),
            ('until = "20m"\n\n[[hangs]]\nnode = "gpu-7"\ngpu = 0\nat = "1m"'),
            "hangs[1].node",
            "there is no node `gpu-7`",
        ),
        (
            ('memory = "3Gi"'),
            ('memory = "much"'),
            "foreign_processes[0].memory",
            "`much` is not a Kubernetes quantity",
        ),
        ('until = "21m"', 'until = "11m"', "foreign_processes[0].until", "is not after `at`"),
        ("gpus = 2", "gpus = 2\nready = false", "outages[0].node", "`gpu-1` never reports"),
    ],
)
def test_a_contradiction_names_line_and_key(old: str, new: str, key: str, message: str) -> None:
    whole = GOOD + MORE
    assert parse_scenario(whole, "mine.toml").services
    text = whole.replace(old, new, 1)
    assert text != whole
    what = refusal(text)
    assert f"key `{key}`: " in what
    assert message in what
    line = int(what.partition(" line ")[2].partition(",")[0])
    named = text.splitlines()[line - 1]
    assert named.startswith((key.rpartition(".")[2], f"[[{key.partition('[')[0]}")), (
        f"line {line} is `{named}`"
    )


def test_what_asks_too_much_on_purpose_is_let_be() -> None:
    text = (GOOD + MORE).replace(
        ('image = "web:1"'), ('image = "web:1"\ngpus = 99\noversized = true'), 1
    )
    assert parse_scenario(text, "mine.toml").services[0].gpus == 99


@pytest.mark.parametrize("replicas", [-1, 2001])
def test_a_service_of_too_many_pods_is_reported(replicas: int) -> None:
    text = (
        f'{GOOD}\n[[services]]\nname = "s"\nnamespace = "a"\nimage = "x:1"\nreplicas = {replicas}\n'
    )
    assert (
        f"line {line_of(text, 'replicas =')}, key `services[0].replicas`: must be 0 to 2000"
    ) in refusal(text)


def test_a_missing_key_names_its_table() -> None:
    text = GOOD.replace('kind = "mpijob"\n', "")
    assert (
        f"line {line_of(text, '[[streams]]')}, key `streams[0].kind`: Object missing required "
        "field `kind`"
    ) in refusal(text)


def test_a_missing_top_level_key_names_the_file() -> None:
    assert "`mine.toml` line 1, key `title`: Object missing required field `title`" in refusal(
        GOOD.replace(('title = "T"\n'), "")
    )


def test_broken_toml_names_the_line() -> None:
    assert "`mine.toml` is not valid TOML" in refusal("a = [1,\n[[b]")
    assert "line 2" in refusal("a = 1\nb = = 2\n")


def test_an_unknown_scenario_lists_the_known_ones() -> None:
    with pytest.raises(UserError) as caught:
        load_scenario("defualt")
    assert caught.value.what == "there is no scenario `defualt`"
    assert "default" in caught.value.hint


def test_a_missing_file_is_reported_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load_scenario(str(tmp_path / "none.toml"))
    assert (
        caught.value.what
        == f"scenario file `{tmp_path}/none.toml` cannot be read: No such file or directory"
    )


def test_a_file_that_is_not_text_is_reported(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"title = \xff")
    with pytest.raises(UserError) as caught:
        load_scenario(str(tmp_path / "bad.toml"))
    assert caught.value.what == f"scenario file `{tmp_path}/bad.toml` is not UTF-8 text (byte 8)"

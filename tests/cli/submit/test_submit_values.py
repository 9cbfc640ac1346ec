"""Values that `submit` refuses, and the messages. No request is sent before.

See docs/spec/arena-cli.md#names-and-labels, docs/spec/arena-cli.md#effects-of-the-flags.
"""

from __future__ import annotations

import pytest
from tests.cli.submitting import KeepingCluster, submit

from fairlead.errors import UserError

FAILED = "failed to validate command args: "
NAME_RULE = (
    "the job name must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character"
)
DIGITS = ("mpijob", "pytorchjob", "tfjob", "etjob", "deepspeedjob", "sparkjob")
"""The webhooks of training-operator 1.9.2 accept only DNS-1035 labels (`NameIsDNS1035Label`);
mpi-operator 0.6.0 refuses other names in the status, since it makes host names of the name; Spark's
operator makes a Service of it. It is not tested that et-operator does so, too.
"""
MPI, PT, TF = (
    "mpijob --name=j --image=i",
    "pytorchjob --name=j --image=i",
    "tfjob --name=j --image=i",
)

REFUSED = [
    ("mpijob --image=i", 'required flag(s) "name" not set'),
    ("mpijob --name= --image=i", 'required flag(s) "name" not set'),
    (
        f"mpijob --image=i --name={'a' * 50}",
        f"{FAILED}the len 50 of name {'a' * 50} is too long, it should be less than 49",
    ),
    ("mpijob --image=i --name=a.b", FAILED + NAME_RULE),
    *(
        (
            f"{kind} --image=i --name=1a",
            f"{FAILED}the job name must start with a letter, not as 1a with a digit",
        )
        for kind in DIGITS
    ),
    ("mpijob --image=i --name=Big", FAILED + NAME_RULE),
    ("mpijob --image=i --name=-a", FAILED + NAME_RULE),
    ("mpijob --image=i --name=a-", FAILED + NAME_RULE),
    ("mpijob --image=i --name='a b'", FAILED + NAME_RULE),
    ("mpijob --image=i --name='$(touch x)'", FAILED + NAME_RULE),
    ("mpijob --name=j", f"{FAILED}--image must be set "),
    ("pytorchjob --name=j", f"{FAILED}--image must be set "),
    ("tfjob --name=j", f"{FAILED}--image or --workerImage must be set"),
    ("tfjob --name=j --worker-image=w --ps 1", f"{FAILED}--image or --psImage must be set"),
    (f"{MPI} --gpus -1", f"{FAILED}--gpus is invalid"),
    (f"{MPI} --gpus=-1", f"{FAILED}--gpus is invalid"),
    (f"{TF} --ps-gpus -1", f"{FAILED}--ps-gpus is invalid"),
    (
        f"{MPI} --gpus two",
        (
            'invalid argument "two" for "--gpus" flag: strconv.ParseInt: '
            'parsing "two": invalid syntax'
        ),
    ),
    (
        f"{MPI} --gpus 1.5",
        (
            'invalid argument "1.5" for "--gpus" flag: strconv.ParseInt: '
            'parsing "1.5": invalid syntax'
        ),
    ),
    (
        f"{MPI} --workers 99999999999",
        (
            'invalid argument "99999999999" for "--workers" flag: strconv.ParseInt: parsing '
            '"99999999999": value out of range'
        ),
    ),
    (f"{MPI} --workers 0", f"{FAILED}--workers is invalid"),
    (f"{TF} --workers -1", f"{FAILED}--workers is invalid"),
    (f"{TF} --ps -1", f"{FAILED}--ps is invalid"),
    (f"{MPI} --gpumemory -1", f"{FAILED}--gpumemory is invalid"),
    (
        f"{MPI} --gpucore x",
        (
            'invalid argument "x" for "--gpucore" flag: '
            'strconv.ParseInt: parsing "x": invalid syntax'
        ),
    ),
    (f"{MPI} --retry -1", f"{FAILED}--retry is invalid"),
    (
        f"{MPI} --device nvidia.com/gpu=2",
        f"{FAILED}please use '--gpus 2' instead of '--device nvidia.com/gpu=2'",
    ),
    (f"{MPI} --device amd.com/gpu", f"{FAILED}--device is invalid: `amd.com/gpu`"),
    (f"{MPI} --device cpu=1", f"{FAILED}--device is invalid: `cpu=1`"),
    (f"{MPI} --device a.b/c=-1", f"{FAILED}--device is invalid: `a.b/c=-1`"),
    (f"{MPI} -e novalue", f"{FAILED}--env is invalid: `novalue`"),
    (f"{MPI} -e 1A=b", f"{FAILED}--env is invalid: `1A` is no name of an environment variable"),
    (f"{MPI} --env-from-secret A", f"{FAILED}--env-from-secret is invalid: `A`"),
    (f"{MPI} -a novalue", f"{FAILED}--annotation is invalid: `novalue`"),
    (f"{MPI} -a 'a b=c'", f"{FAILED}--annotation is invalid: `a b` is no key"),
    (f"{MPI} -l 'a=b c'", f"{FAILED}--label is invalid: `b c` of a is no value of a label"),
    (f"{MPI} --selector x", f"{FAILED}--selector is invalid: `x`"),
    (f"{TF} --ps-selector x", f"{FAILED}--ps-selector is invalid: `x`"),
    (f"{MPI} --toleration a:Sometimes", f"{FAILED}--toleration is invalid: `a:Sometimes`"),
    (f"{MPI} --toleration 'not sense'", f"{FAILED}--toleration is invalid: `not sense`"),
    (
        f"{MPI} --toleration a=b:NoSchedule,Maybe",
        f"{FAILED}--toleration is invalid: `a=b:NoSchedule,Maybe`",
    ),
    (
        f"{MPI} --toleration a=b:NoSchedule,Exists",
        f"{FAILED}--toleration is invalid: `a=b:NoSchedule,Exists`",
    ),
    (f"{MPI} -p 'A B'", f"{FAILED}--priority is invalid: `A B` is no name of an object"),
    (f"{MPI} --scheduler S", f"{FAILED}--scheduler is invalid: `S` is no name of an object"),
    (
        f"{MPI} --service-account S",
        f"{FAILED}--service-account is invalid: `S` is no name of an object",
    ),
    (
        f"{MPI} --image-pull-secret S",
        f"{FAILED}--image-pull-secret is invalid: `S` is no name of an object",
    ),
    (
        f"{MPI} --image-pull-policy Sometimes",
        f"{FAILED}--image-pull-policy is invalid: unknown value Sometimes",
    ),
    (
        f"{MPI} --restart-policy Always",
        f"{FAILED}--restart-policy is invalid: unknown value Always",
    ),
    (
        f"{MPI} --share-memory 1GG",
        f"{FAILED}--share-memory is invalid: quantity `1GG` is not a Kubernetes quantity",
    ),
    (
        f"{MPI} --cpu much",
        f"{FAILED}--cpu is invalid: quantity `much` is not a Kubernetes quantity",
    ),
    (f"{MPI} --memory -1Gi", f"{FAILED}--memory is invalid: `-1Gi` is below zero"),
    (
        f"{TF} --chief-cpu much",
        f"{FAILED}--chief-cpu is invalid: quantity `much` is not a Kubernetes quantity",
    ),
    (f"{MPI} -d claim", f"{FAILED}--data is invalid: `claim`"),
    (f"{MPI} -d claim:relative", f"{FAILED}--data is invalid: `claim:relative`"),
    (
        f"{MPI} --mounts-on-launcher -d c:/a -d d:/a",
        f"{FAILED}/a is the place of two volumes: c and d",
    ),
    (f"{PT} -d c:/a -d c:/a", f"{FAILED}/a is the place of two volumes: c and c"),
    (
        f"{PT} -d c:/a --data-dir /x:/a/",
        f"{FAILED}/a is the place of two volumes: c and training-data-0",
    ),
    (f"{TF} -d c:/dev/shm", f"{FAILED}/dev/shm is the place of two volumes: dshm and c"),
    (f"{MPI} --data-dir relative", f"{FAILED}--data-dir is invalid: `relative`"),
    (f"{MPI} --data-dir /a/../b", f"{FAILED}--data-dir is invalid: `/a/../b`"),
    (f"{MPI} --config-file a:b", f"{FAILED}--config-file is invalid: `a:b`"),
    (f"{MPI} --config-file a", f"{FAILED}--config-file is invalid: `a`"),
    (
        f"{MPI} --config-file /absent",
        f"{FAILED}config file `/absent` cannot be read: No such file or directory",
    ),
    (
        f"{MPI} --sync-mode ftp --sync-source x",
        f"{FAILED}--sync-mode is invalid: unknown value ftp",
    ),
    (f"{MPI} --sync-mode git", f"{FAILED}--sync-source must be set when --sync-mode is set"),
    (f"{MPI} --tensorboard --logdir logs", f"{FAILED}--logdir is invalid: `logs` is not absolute"),
    (f"{MPI} --clean-task-policy Some", f"{FAILED}unsupported cleanTaskPolicy Some"),
    (
        f"{MPI} --running-timeout 5",
        ('invalid argument "5" for "--running-timeout" flag: time: invalid duration "5"'),
    ),
    (
        f"{MPI} --ttl-after-finished 1d",
        ('invalid argument "1d" for "--ttl-after-finished" flag: time: invalid duration "1d"'),
    ),
    (
        f"{TF} --starting-timeout soon",
        ('invalid argument "soon" for "--starting-timeout" flag: time: invalid duration "soon"'),
    ),
    (f"{MPI} --running-timeout 9999999h", f"{FAILED}--running-timeout is invalid"),
    (f"{TF} --success-policy Any", f"{FAILED}--success-policy is invalid: unknown value Any"),
    (f"{TF} --role-sequence w,x", f"{FAILED}--role-sequence is invalid: `w,x`"),
    (f"{TF} --ps-port 70000", f"{FAILED}--ps-port is invalid"),
    (
        f"{TF} --ps-affinity-policy pack",
        f"{FAILED}--ps-affinity-policy is invalid: unknown value pack",
    ),
    (
        f"{TF} --worker-affinity-constraint must",
        f"{FAILED}--worker-affinity-constraint is invalid: unknown value must",
    ),
    (f"{PT} --nproc-per-node many", f"{FAILED}--nproc-per-node is invalid: unknown value many"),
    (f"{PT} --nproc-per-node 0", f"{FAILED}--nproc-per-node is invalid: unknown value 0"),
    (
        f"{PT} --model-name m",
        f"{FAILED}model version source must be specified when registering a model version",
    ),
    (f"{PT} -n '$(touch x)'", "invalid namespace `$(touch x)`"),
    (f"{PT} --gups 1", "unknown flag: --gups"),
    (f"{PT} --ps 1", "unknown flag: --ps"),
]


@pytest.mark.parametrize(("line", "sentence"), REFUSED, ids=[line for line, _ in REFUSED])
def test_a_bad_value_is_refused_before_a_cluster_is_asked(line: str, sentence: str) -> None:
    cluster = KeepingCluster()
    with pytest.raises(UserError) as refused:
        submit(f"{line} run", cluster)
    assert refused.value.what == sentence
    assert cluster.calls == []


def test_what_is_just_allowed() -> None:
    for line in (
        f"mpijob --image=i --name={'a' * 49}",
        "tfjob --name=j --worker-image=w",
        f"{MPI} --toleration nonsense",
    ):
        assert submit(f"{line} run", KeepingCluster()).status == 0


def test_without_a_command_the_help_is_shown_and_it_is_an_error() -> None:
    with pytest.raises(UserError) as refused:
        submit(MPI)
    assert refused.value.what == "not found command args"
    printed = refused.value.printed  # type: ignore[attr-defined]
    assert (
        printed.out.startswith("usage: arena submit mpijob")
        and "--mounts-on-launcher" in printed.out
    )

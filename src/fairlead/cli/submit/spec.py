"""How do the flags of `submit` become a job spec? Every value is checked here, before anything is asked of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from fairlead.cli.submit import values
from fairlead.cli.submit.values import invalid
from fairlead.kinds.parts.job_spec import CodeSync, ConfigFile, JobSpec, JobToleration, RoleSpec, SecretEnv, Tensorboard

SYNC_IMAGES: Final = {"git": "registry.k8s.io/git-sync/git-sync:v3.6.9", "rsync": "instrumentisto/rsync-ssh:latest"}
TENSORBOARD_IMAGE: Final = "tensorflow/tensorflow:2.16.1"
_FILE_BYTES_MAX: Final = 1024 * 1024  # what an API server takes of a ConfigMap
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")


def common_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    """What every kind of workers has in common; its roles are still to be said. `config` is arena's config file.

    Raises UserError for the first value that cannot be used.
    """
    return JobSpec(
        name=values.job_name(args.name),
        namespace=namespace,
        image=args.image,
        shell=args.shell,
        command=" ".join(args.command),
        working_dir=args.working_dir,
        devices=values.devices(args.device),
        gpu_memory=values.count("gpumemory", args.gpumemory),
        gpu_core=values.count("gpucore", args.gpucore),
        env=values.env("env", args.env),
        secret_env=tuple(SecretEnv(*values.secret_env(each)) for each in args.env_from_secret),
        labels=values.labels("label", args.label),
        annotations=values.keyed("annotation", args.annotation),
        claims=values.claims(args.data),
        host_dirs=values.host_dirs(args.data_dir),
        config_files=tuple(read_config_file(each) for each in args.config_file),
        selector=values.labels("selector", args.selector),
        tolerations=tuple(JobToleration(*values.toleration(each)) for each in args.toleration),
        priority=values.object_name("priority", args.priority),
        scheduler=values.object_name("scheduler", args.scheduler),
        service_account=values.object_name("service-account", args.service_account),
        restart=values.word("restart-policy", args.restart_policy, ("", "Never", "OnFailure")),
        is_queued=args.queue,
        is_gang=args.gang,
        has_rdma=args.rdma,
        host_network=args.hostNetwork,
        host_ipc=args.hostIPC,
        host_pid=args.hostPID,
        pull_policy=values.word("image-pull-policy", args.image_pull_policy, PULL_POLICIES),
        pull_secrets=pull_secrets(args, config),
        shared_memory=values.quantity("share-memory", args.share_memory),
        clean_policy=values.clean_policy(getattr(args, "clean_task_policy", "")),
        retry=values.count("retry", args.retry),
        running_seconds=values.seconds("running-timeout", getattr(args, "running_timeout", "")),
        ttl_seconds=values.seconds("ttl-after-finished", getattr(args, "ttl_after_finished", "")),
        sync=_sync(args, config),
        tensorboard=_tensorboard(args, config),
        model_name=_model_name(args),
        model_source=args.model_source,
    )


def one_size_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    """Where every worker has the same image, cpu and memory."""
    check_image(args)
    spec = common_spec(args, namespace, config)
    replicas = values.count("workers", args.workers, 1)  # without workers such a job cannot run
    gpus = values.count("gpus", args.gpus)
    worker = RoleSpec(replicas=replicas, gpus=gpus, resources=sizes(cpu=("cpu", args.cpu), memory=("memory", args.memory)))
    return replace(spec, worker=worker)


def mpi_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    spec = one_size_spec(args, namespace, config)
    return replace(spec, has_gpu_topology=args.gputopology, mounts_on_launcher=args.mounts_on_launcher)


def pytorch_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    return replace(one_size_spec(args, namespace, config), nproc_per_node=_nproc(args.nproc_per_node))


def tf_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    _check_tf_image(args)
    spec = common_spec(args, namespace, config)
    gpus = values.count("gpus", args.gpus)
    return replace(
        spec,
        image=args.image or args.worker_image or args.ps_image,
        # It may have parameter servers and a chief only.
        worker=_role(args, "worker", values.count("workers", args.workers), gpus, args.worker_image),
        ps=_role(args, "ps", values.count("ps", args.ps), values.count("ps-gpus", args.ps_gpus), args.ps_image),
        chief=_role(args, "chief", int(args.chief), gpus, args.worker_image),
        evaluator=_role(args, "evaluator", int(args.evaluator), gpus, args.worker_image),
        starting_seconds=values.seconds("starting-timeout", args.starting_timeout),
        success_policy=values.word("success-policy", args.success_policy, ("", "ChiefWorker", "AllWorkers")),
        role_sequence=values.role_sequence(args.role_sequence or config.get("tfjob_role_sequence", "")),
    )


def check_image(args: argparse.Namespace) -> None:
    if not args.image:
        raise invalid("--image must be set ", "`--image IMAGE` names the image to train with")


def _check_tf_image(args: argparse.Namespace) -> None:
    has_ps = values.count("ps", args.ps) > 0
    if args.image or (args.worker_image and (args.ps_image or not has_ps)):
        return
    if args.worker_image:
        raise invalid("--image or --psImage must be set", "`--image IMAGE` names the image of every role")
    raise invalid("--image or --workerImage must be set", "`--image IMAGE` names the image of every role")


def _role(args: argparse.Namespace, role: str, replicas: int, gpus: int, image: str) -> RoleSpec:
    def of(part: str, default: str = "") -> str:
        return str(getattr(args, f"{role}_{part}", default))

    return RoleSpec(
        replicas=replicas,
        gpus=gpus,
        image=image,
        resources=sizes(cpu=(f"{role}-cpu", of("cpu")), memory=(f"{role}-memory", of("memory"))),
        limits=sizes(cpu=(f"{role}-cpu-limit", of("cpu_limit")), memory=(f"{role}-memory-limit", of("memory_limit"))),
        port=values.port(f"{role}-port", of("port", "0")),
        selector=values.labels(f"{role}-selector", getattr(args, f"{role}_selector")),
        affinity_policy=values.word(f"{role}-affinity-policy", of("affinity_policy", "none"), ("none", "spread", "binpack")),
        affinity_constraint=values.word(f"{role}-affinity-constraint", of("affinity_constraint", "preferred"), ("preferred", "required")),
    )


def sizes(**told: tuple[str, str]) -> dict[str, str]:
    return {resource: text for resource, (flag, given) in told.items() if (text := values.quantity(flag, given))}


def read_config_file(text: str) -> ConfigFile:
    here, path = values.config_file(text)
    try:
        content = Path(here).expanduser().read_bytes()
    except OSError as error:
        raise invalid(f"config file `{here}` cannot be read: {error.strerror or error}") from error
    if len(content) > _FILE_BYTES_MAX:
        raise invalid(f"config file `{here}` has {len(content)} bytes; at most {_FILE_BYTES_MAX} fit", "mount it by --data")
    return ConfigFile(path, content)


def pull_secrets(args: argparse.Namespace, config: Mapping[str, str]) -> tuple[str, ...]:
    configured = [each.strip() for each in config.get("imagePullSecrets", "").split(",") if each.strip()]
    return tuple(values.object_name("image-pull-secret", each) for each in args.image_pull_secret or configured)


def _nproc(text: str) -> str:
    if text and text not in ("auto", "cpu", "gpu") and not (text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) <= 9):
        raise invalid(f"--nproc-per-node is invalid: unknown value {text}", "it is auto, cpu, gpu or a number from 1")
    return text


def _sync(args: argparse.Namespace, config: Mapping[str, str]) -> CodeSync | None:
    if not args.sync_mode:
        return None
    mode = values.word("sync-mode", args.sync_mode, tuple(SYNC_IMAGES))
    if not args.sync_source:
        raise invalid("--sync-source must be set when --sync-mode is set", "it is a repository, or what rsync copies")
    return CodeSync(mode, args.sync_source, args.sync_image or config.get(f"sync_{mode}_image") or SYNC_IMAGES[mode])


def _tensorboard(args: argparse.Namespace, config: Mapping[str, str]) -> Tensorboard | None:
    if not args.tensorboard:
        return None
    if not args.logdir.startswith("/"):
        raise invalid(f"--logdir is invalid: `{args.logdir}` is not absolute")
    return Tensorboard(args.tensorboard_image or config.get("tensorboard_image") or TENSORBOARD_IMAGE, args.logdir)


def _model_name(args: argparse.Namespace) -> str:
    if args.model_name and not args.model_source:
        raise invalid("model version source must be specified when registering a model version", "`--model-source URI` tells it")
    return values.labels("model-name", [f"modelName={args.model_name}"])["modelName"]

"""A DataLoad fills the cache: phases, its Job, and what the Dataset shows meanwhile."""

from __future__ import annotations

from tests.sim.operators.fluid_world import (
    NAME,
    accelerate,
    accelerated,
    claim,
    data_load,
    dataset,
    install,
    load_phase,
    reported,
)
from tests.sim.small_world import NAMESPACE, get, live, small_world

from fairlead.wire.data.fluid import parse_bytes, parse_percent
from fairlead_sim.objects.resources import CONFIG_MAPS, CRON_JOBS, DATA_LOADS, DATASETS, JOBS

JOB = "warm-loader-job"


def test_a_load_from_creation_to_its_end() -> None:
    world = accelerated()
    data_load(world)
    seen: list[str] = []
    percents = []
    for _ in range(90):
        live(world, 2)
        phase = load_phase(world)
        if phase not in seen:
            seen.append(phase)
        if phase == "Executing":
            assert dataset(world)["status"]["operationRef"] == {"DataLoad": "warm"}
            states = dataset(world)["status"]["cacheStates"]
            percents.append(parse_percent(states["cachedPercentage"]) or 0.0)
    assert seen[-2:] == ["Executing", "Complete"]
    assert percents == sorted(percents) and len(set(percents)) >= 3
    assert "operationRef" not in dataset(world)["status"]
    states = dataset(world)["status"]["cacheStates"]
    assert states["cachedPercentage"] == "100.0%"
    status = get(world, DATA_LOADS, "warm")["status"]
    (ended,) = status["conditions"]
    assert (ended["type"], ended["status"]) == ("Complete", "True")
    assert status["duration"].endswith("s")
    assert ("DataOperationSucceed", "DataLoad warm succeeded") in reported(world, "warm")
    owners = get(world, JOBS, JOB)["metadata"]["ownerReferences"]
    assert [owner["kind"] for owner in owners] == ["DataLoad"]


def test_a_cache_smaller_than_its_source_is_filled_as_far_as_it_goes() -> None:
    world = small_world()
    install(world)
    claim(world, size="100Gi")
    accelerate(world)
    live(world, 150)
    data_load(world)
    live(world, 2400)
    assert load_phase(world) == "Complete"
    states = dataset(world)["status"]["cacheStates"]
    assert states["cached"] == states["cacheCapacity"] == "8.00GiB"
    assert 0 < (parse_percent(states["cachedPercentage"]) or 0) < 50


def test_a_load_of_one_folder_brings_a_part() -> None:
    world = accelerated()
    data_load(world, target=[{"path": "/2026", "replicas": 1}])
    live(world, 300)
    assert load_phase(world) == "Complete"
    states = dataset(world)["status"]["cacheStates"]
    assert 5 < (parse_percent(states["cachedPercentage"]) or 0) < 50


def test_a_load_waits_for_its_data_set_and_for_its_runtime() -> None:
    world = small_world()
    install(world)
    data_load(world)
    live(world, 30)
    assert load_phase(world) == ""
    missing = f'Target dataset not found: datasets.data.fluid.io "{NAME}" not found'
    assert ("TargetDatasetNotFound", missing) in reported(world, "warm")
    claim(world)
    accelerate(world)
    live(world, 25)
    assert ("RuntimeNotReady", "Bounded accelerate runtime not ready") in reported(world, "warm")
    live(world, 400)
    assert load_phase(world) == "Complete"


def test_a_load_that_is_deleted_takes_its_job_along_and_frees_the_data_set() -> None:
    world = accelerated()
    data_load(world)
    live(world, 25)
    assert load_phase(world) == "Executing"
    world.cluster.delete(DATA_LOADS, NAMESPACE, "warm")
    live(world, 40)
    assert world.cluster.get(DATA_LOADS, NAMESPACE, "warm") is None
    assert world.cluster.get(JOBS, NAMESPACE, JOB) is None
    assert "operationRef" not in dataset(world)["status"]
    maps = [each["metadata"]["name"] for each in world.cluster.list(CONFIG_MAPS, NAMESPACE)]
    assert not [name for name in maps if "warm" in name]


def test_loads_end_with_their_data_set() -> None:
    world = accelerated()
    data_load(world)
    live(world, 300)
    cached = parse_bytes(dataset(world)["status"]["cacheStates"]["cached"])
    assert cached
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 60)
    assert world.cluster.list(DATA_LOADS, NAMESPACE) == []


def test_a_load_goes_when_its_time_after_the_end_is_over() -> None:
    world = accelerated()
    data_load(world, ttlSecondsAfterFinished=60)
    live(world, 400)
    assert world.cluster.list(DATA_LOADS, NAMESPACE) == []
    assert world.cluster.get(JOBS, NAMESPACE, JOB) is None


def test_a_schedule_loads_again_and_again_and_holds_the_data_set_only_meanwhile() -> None:
    world = accelerated()
    data_load(world, policy="Cron", schedule="*/30 * * * *")
    live(world, 5)
    assert load_phase(world) == "Executing"
    assert dataset(world)["status"]["operationRef"] == {"DataLoad": "warm"}
    assert world.cluster.list(JOBS, NAMESPACE) == []
    live(world, 2400)
    first = get(world, DATA_LOADS, "warm")["status"]
    assert first["phase"] == "Complete"
    assert "operationRef" not in dataset(world)["status"]
    assert dataset(world)["status"]["cacheStates"]["cachedPercentage"] == "100.0%"
    phases = set()
    for _ in range(190):
        live(world, 10)
        phases.add(load_phase(world))
    second = get(world, DATA_LOADS, "warm")["status"]
    assert phases >= {"Executing", "Complete"}
    assert second["lastScheduleTime"] > first["lastScheduleTime"]
    assert second["lastSuccessfulTime"] > first["lastSuccessfulTime"]
    world.cluster.delete(DATA_LOADS, NAMESPACE, "warm")
    live(world, 30)
    assert world.cluster.list(CRON_JOBS, NAMESPACE) == []
    assert world.cluster.list(JOBS, NAMESPACE) == []


def test_a_load_with_a_program_that_fails_has_failed_and_frees_the_data_set() -> None:
    world = accelerated()
    data_load(world)
    live(world, 20)
    job = get(world, JOBS, JOB)
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "x"}
    failed["lastTransitionTime"] = job["metadata"]["creationTimestamp"]
    world.cluster.update_status({**job, "status": {"failed": 4, "conditions": [failed]}})
    live(world, 5)
    status = get(world, DATA_LOADS, "warm")["status"]
    assert (status["phase"], status["conditions"][0]["reason"]) == (
        "Failed",
        "BackoffLimitExceeded",
    )
    assert "operationRef" not in dataset(world)["status"]
    assert ("DataOperationFailed", "DataLoad warm failed") in reported(world, "warm")


def test_a_load_with_a_name_too_long_for_helm_never_runs() -> None:
    world = accelerated()
    for length, phase in ((46, "Complete"), (47, "Executing")):
        data_load(world, "l" * length)
        live(world, 300)
        assert load_phase(world, "l" * length) == phase
    ((reason, message),) = reported(world, "l" * 47)
    assert reason == "DataOperationExecutionFailed"
    assert message.endswith("exceeds max length of 53")

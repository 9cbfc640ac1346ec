"""Data that jobs mount: claims of volumes, and Fluid's data sets, which cache them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.moment import Moment
from fairlead.model.source import Source

FLUID_API: Final = "data.fluid.io/v1alpha1"
DATASET_KIND: Final = "Dataset"
DATA_LOAD_KIND: Final = "DataLoad"
STUCK_SECONDS: Final = 300.0
"""A data set that takes longer to begin or to end is reported with what is known of the reason."""


class Claim(Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim, which arena calls data.

    `volume`: the bound volume's name, `size`: bytes, the volume's capacity, else what is requested;
    0 = not reported. `is_fluids`: Fluid made it for a data set.
    """

    namespace: str
    name: str
    access_modes: tuple[str, ...] = ()
    description: str = ""
    owner: str = ""
    created_at: Moment | None = None
    phase: str = ""
    volume: str = ""
    storage_class: str = ""
    volume_mode: str = "Filesystem"
    size: int = 0
    is_ending: bool = False
    is_fluids: bool = False
    uid: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether a job can mount it."""
        return self.phase == "Bound" and not self.is_ending


class SecretOption(Struct, frozen=True, gc=False):
    """An option of a source whose value is in a Secret. `option`: its name; `secret` and `key`: of
    the Secret in the data set's namespace. The value is never read.
    """

    option: str
    secret: str
    key: str = ""


class DataMount(Struct, frozen=True, gc=False):
    """One source of a data set: `pvc://CLAIM/PATH`, `s3://…`, `https://…`. `path`: where its files
    are in the data set; "" = `/NAME`.

    `options`: name and value; a value that is perhaps a secret is hidden.
    """

    point: str
    name: str = ""
    path: str = ""
    is_read_only: bool = False
    options: tuple[tuple[str, str], ...] = ()
    secrets: tuple[SecretOption, ...] = ()


class CacheState(Struct, frozen=True, gc=False):
    """What Fluid reports of a cache. Bytes and percent; None = not reported, or not yet known.

    `local_percent` and `remote_percent`: of what was read from the cache, on the same node and on
    another one.
    """

    cached: int | None = None
    capacity: int | None = None
    percent: float | None = None
    hit_percent: float | None = None
    local_percent: float | None = None
    remote_percent: float | None = None


class DataCondition(Struct, frozen=True, gc=False):
    """A condition of a data set or of a preheat. `at`: when it was updated."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    at: Moment | None = None


class DataSet(Struct, frozen=True, gc=False):
    """A Dataset of Fluid.

    `phase`: Pending, NotBound, Bound, Failed, …; "" before Fluid has seen it. `size`: bytes, None
    while it is counted. `runtimes`: kinds of the runtimes that serve it. `message`: of the newest
    condition that is of a fault. `references`: data sets of other namespaces that mount it.
    `operations`: of Fluid that run on it, such as a DataLoad. `accelerates`: the claim for which
    Fairlead made it; "" = another program did. `ending_since`: when its deletion was asked for.
    `shared_options` and `shared_secrets`: of all its sources.
    """

    namespace: str
    name: str
    mounts: tuple[DataMount, ...] = ()
    phase: str = ""
    created_at: Moment | None = None
    is_ending: bool = False
    size: int | None = None
    files: int | None = None
    cache: CacheState = CacheState()
    runtimes: tuple[str, ...] = ()
    message: str = ""
    references: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    accelerates: str = ""
    uid: str = ""
    conditions: tuple[DataCondition, ...] = ()
    finalizers: tuple[str, ...] = ()
    ending_since: Moment | None = None
    shared_options: tuple[tuple[str, str], ...] = ()
    shared_secrets: tuple[SecretOption, ...] = ()

    @property
    def is_ready(self) -> bool:
        return self.phase == "Bound" and not self.is_ending

    def is_stuck(self, now: Moment) -> bool:
        """Whether it ends, or is not Bound, for 5 minutes (docs/spec/datasets.md#data-list)."""
        if self.phase == "Bound" and not self.is_ending:
            return False
        since = stuck_since(self)
        return since > 0 and now - since >= STUCK_SECONDS


def stuck_since(data_set: DataSet) -> Moment:
    """Since when its end, or its beginning, is waited for; 0 = unknown."""
    if data_set.is_ending:
        return data_set.ending_since or 0.0
    return data_set.created_at or 0.0


class RuntimePart(Struct, frozen=True, gc=False):
    """A part of a runtime. `name`: `master`, `worker` or `fuse`. `phase`: `NotReady`,
    `PartialReady`, `Ready`; "" = not begun. `reason`: of its last change.
    """

    name: str
    phase: str = ""
    reason: str = ""


class DataRuntime(Struct, frozen=True, gc=False):
    """What caches a data set of the same name. `kind`: `AlluxioRuntime`, …; `ready` of `wanted`
    workers are ready. `replicas`: the workers that its owner asks for.
    """

    kind: str
    namespace: str
    name: str
    wanted: int = 0
    ready: int = 0
    uid: str = ""
    replicas: int = 0
    parts: tuple[RuntimePart, ...] = ()
    is_ending: bool = False


class FoundClaims(Struct, frozen=True):
    """Data volumes, as read. `data_sets`: None if they are not served or may not be read."""

    claims: tuple[Claim, ...]
    taken_at: Moment
    data_sets: tuple[DataSet, ...] | None = None


class ControllerState(Struct, frozen=True, gc=False):
    """A Deployment of Fluid: `ready` of `wanted` replicas are ready."""

    name: str
    wanted: int = 0
    ready: int = 0


class FoundData(Struct, frozen=True):
    """Data of one namespace, or of all, as read. `sources`: what could not be read.

    `has_fluid`: the API server serves data sets.
    """

    claims: tuple[Claim, ...]
    data_sets: tuple[DataSet, ...]
    runtimes: tuple[DataRuntime, ...]
    taken_at: Moment
    sources: Mapping[str, Source] = {}
    has_fluid: bool = False

    @property
    def failures(self) -> str:
        """What could not be read, with the API server's reasons; "" = all was."""
        failed = [each for each in self.sources.values() if each.has_failed]
        return "; ".join(f"{each.name} not read: {each.message}" for each in failed)

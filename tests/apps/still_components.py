"""Components of a world that stands still."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs
from tests.rules.components.plans import definition, deployment, facts, new

from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.installed.component_facts import ComponentFacts, PlanFacts, WantedComponent
from fairlead.model.operations.component import Component, ComponentRow
from fairlead.model.operations.operation import HelmStep


class StillComponents:
    """`ports.ComponentQuestions` of what a test gives it. `failure`: what a chart raises."""

    def __init__(self) -> None:
        self.known = ComponentFacts(program="0.1.0", has_helm=True)
        self.plan: PlanFacts = facts()
        self.before: dict[tuple[str, str, str], Manifest] = {}
        self.failure: Exception | None = None
        self.asked: list[WantedComponent] = []
        self.sharing: tuple[str, ...] = ()

    def facts(self, components: Sequence[Component]) -> ComponentFacts:
        return self.known

    def home(self) -> str:
        return "fairlead-system"

    def stand_in(self, id: str) -> tuple[Manifest, ...]:
        return (definition("datasets.data.fluid.io"),) if id in self.known.stand_ins else ()

    def render(self, step: HelmStep) -> tuple[Manifest, ...]:
        if self.failure is not None:
            raise self.failure
        return (deployment(name="dataset-controller"),)

    def placed(self, manifests: Sequence[Manifest], namespace: str) -> tuple[Manifest, ...]:
        return tuple(
            {**each, "metadata": {"namespace": namespace, **each["metadata"]}} for each in manifests
        )

    def found(self, targets: Sequence[ObjectRef]) -> list[Manifest | None]:
        return [None for _ in targets]

    def links(self, row: ComponentRow, objects: Sequence[ObjectRef]) -> tuple[str, ...]:
        return (f"https://{row.id}.example/",)

    def sharing_pods(self) -> tuple[str, ...]:
        return self.sharing

    def plan_facts(self, wanted: WantedComponent) -> PlanFacts:
        self.asked.append(wanted)
        tried = self.plan.tried or tuple(map(new, wanted.objects))
        return structs.replace(self.plan, tried=tried, has_helm=self.known.has_helm)

"""What axe-core finds on a page, after the page's transitions have ended."""

from __future__ import annotations

from pathlib import Path
from typing import Final, cast

from tests.browser.chromium import Window

AXE: Final = (
    Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
)
FINISHED: Final = """() => Promise.allSettled(document.getAnimations()
    .filter(each => each.effect.getComputedTiming().iterations !== Infinity)
    .map(each => each.finished)).then(() => null)"""
"""A button that becomes enabled has colors of little contrast until its transition ends."""
VIOLATIONS: Final = """async impacts => {
    const { violations } = await axe.run(document, { resultTypes: ['violations'] });
    const why = node => ([...node.any, ...node.all, ...node.none][0] || {}).message;
    return violations.filter(each => impacts.length === 0 || impacts.includes(each.impact))
        .flatMap(each => each.nodes.map(node =>
            `${each.id}: ${node.html.slice(0, 160)}: ${why(node) || each.help}`));
}"""
SERIOUS: Final = ("serious", "critical")


def violations(tab: Window, *impacts: str) -> list[str]:
    """One line for each element that breaks a rule of axe-core: rule, HTML, reason. `impacts`
    limits the rules to these impacts.
    """
    tab.page.evaluate(FINISHED)
    if not tab.page.evaluate("() => 'axe' in window"):
        tab.page.evaluate(AXE.read_text(encoding="utf-8"))
    return cast(list[str], tab.page.evaluate(VIOLATIONS, list(impacts)))


def check_axe(tab: Window) -> None:
    found = violations(tab)
    assert not found, "\n".join(found)

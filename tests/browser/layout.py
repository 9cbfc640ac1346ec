"""When a page stands still, and what of it is moved aside."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import expect
from tests.browser.chromium import Window

SIDEWAYS: Final = """() => {
    const found = [], wide = innerWidth, content = document.querySelector('.content');
    const told = element => {
        const box = element.getBoundingClientRect();
        const name = element.dataset.testid || element.getAttribute('aria-label') || element.innerText || element.className;
        return `${element.tagName.toLowerCase()} "${String(name).slice(0, 60)}" at ${Math.round(box.left)} to ${Math.round(box.right)}`;
    };
    if (document.scrollingElement.scrollWidth > wide) found.push(`the page is ${document.scrollingElement.scrollWidth} wide`);
    if (content.scrollWidth > content.clientWidth) found.push(`the content is ${content.scrollWidth} wide in ${content.clientWidth}`);
    const ancestors = function* (element) { for (let up = element.parentElement; up; up = up.parentElement) yield up; };
    const scrolls = box => /(auto|scroll)/.test(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth;
    for (const control of document.querySelectorAll('button, a[href], input, select, [tabindex="0"]')) {
        const box = control.getBoundingClientRect(), style = getComputedStyle(control);
        const hidden = style.visibility === 'hidden' || box.width <= 1 || box.height <= 1 || Number(style.opacity) === 0;
        if (hidden || control.tagName === 'CANVAS' || control.closest('.skip, .visually-hidden, [aria-hidden=true]')) continue;
        if ([...ancestors(control)].some(up => up !== content && scrolls(up))) continue;
        if (box.left < -1 || box.right > wide + 1) { found.push(`outside the window: ${told(control)}`); continue; }
        const cutting = [...ancestors(control)].find(up => {
            const around = up.getBoundingClientRect();
            return getComputedStyle(up).overflowX !== 'visible' && (box.left < around.left - 1 || box.right > around.right + 1);
        });
        if (cutting && cutting.tagName === 'TD' && cutting.title) continue; // a long name: its cell says it whole
        if (cutting) found.push(`cut by .${cutting.className || cutting.tagName}: ${told(control)}`);
        else if (control.tagName === 'BUTTON' && style.overflowX !== 'visible' && control.scrollWidth > control.clientWidth + 1)
            found.push(`its words are cut: ${told(control)}`);
    }
    return found;
}"""


def settle(tab: Window) -> None:
    """Answers have come and the window has been drawn anew."""
    expect(tab.page.locator("main [data-testid=state-loading]").first).to_have_count(0)
    tab.page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )

"""Waits until a page stops changing, and finds the parts of it that are out of place."""

from __future__ import annotations

from typing import Final, cast

from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect
from tests.browser.chromium import Window

DOM_NODES: Final = 1000
"""A page has fewer: docs/spec/console.md#scale."""

CUT: Final = """() => {
    const found = [];
    for (const element of document.querySelectorAll('main *, .header *')) {
        const typed = element.tagName === 'INPUT' && element.type !== 'checkbox';
        const own = [...element.childNodes]
            .some(node => node.nodeType === 3 && node.textContent.trim());
        if (!(own || typed && (element.value || element.placeholder))) continue;
        if (element.closest('.visually-hidden, [aria-hidden=true], svg')) continue;
        const box = element.getBoundingClientRect(), style = getComputedStyle(element);
        if (box.width <= 1 || box.height <= 1 || /(auto|scroll)/.test(style.overflowX)) continue;
        const whole = typed ? element.value || element.placeholder : element.innerText;
        const text = whole.trim().slice(0, 60);
        const cuts = typed || style.overflowX !== 'visible';
        if (cuts && element.scrollWidth > element.clientWidth + 1)
            found.push(`"${text}" is ${element.scrollWidth} wide in ${element.clientWidth}`);
        const lines = element.closest('.words');
        if (lines && lines.scrollHeight > lines.clientHeight + 1)
            found.push(`"${text}" has lines below the last that is seen`);
        if (typed) continue;
        let up = element.parentElement;
        while (up && getComputedStyle(up).overflowX === 'visible') up = up.parentElement;
        if (!up || /(auto|scroll)/.test(getComputedStyle(up).overflowX)) continue;
        const words = document.createRange();
        words.selectNodeContents(element);
        const seen = words.getBoundingClientRect(), around = up.getBoundingClientRect();
        if (seen.right > around.right + 1 || seen.left < around.left - 1)
            found.push(`"${text}" is cut by .${up.className || up.tagName}`);
    }
    return [...new Set(found)];
}"""
"""Texts of which a part is not visible: they should take more lines instead."""
CUT_MS: Final = 5_000

SIDEWAYS: Final = """() => {
    const found = [], wide = innerWidth, content = document.querySelector('.content');
    const described = element => {
        const box = element.getBoundingClientRect();
        const name = element.dataset.testid || element.getAttribute('aria-label')
            || element.innerText || element.className;
        const place = `${Math.round(box.left)} to ${Math.round(box.right)}`;
        return `${element.tagName.toLowerCase()} "${String(name).slice(0, 60)}" at ${place}`;
    };
    const all = document.scrollingElement.scrollWidth;
    if (all > wide) found.push(`the page is ${all} wide`);
    if (content.scrollWidth > content.clientWidth)
        found.push(`the content is ${content.scrollWidth} wide in ${content.clientWidth}`);
    const ancestors = function* (element) {
        for (let up = element.parentElement; up; up = up.parentElement) yield up;
    };
    const scrolls = box => /(auto|scroll)/.test(getComputedStyle(box).overflowX)
        && box.scrollWidth > box.clientWidth;
    const controls = 'button, a[href], input, select, [tabindex="0"]';
    const unseen = '.skip, .visually-hidden, [aria-hidden=true]';
    for (const control of document.querySelectorAll(controls)) {
        const box = control.getBoundingClientRect(), style = getComputedStyle(control);
        const hidden = style.visibility === 'hidden' || box.width <= 1 || box.height <= 1
            || Number(style.opacity) === 0;
        if (hidden || control.tagName === 'CANVAS' || control.closest(unseen)) continue;
        if ([...ancestors(control)].some(up => up !== content && scrolls(up))) continue;
        if (box.left < -1 || box.right > wide + 1) {
            found.push(`outside the window: ${described(control)}`);
            continue;
        }
        const cutting = [...ancestors(control)].find(up => {
            const around = up.getBoundingClientRect();
            return getComputedStyle(up).overflowX !== 'visible'
                && (box.left < around.left - 1 || box.right > around.right + 1);
        });
        // A long name: the title of its cell has all of it.
        if (cutting && cutting.tagName === 'TD' && cutting.title) continue;
        if (cutting)
            found.push(`cut by .${cutting.className || cutting.tagName}: ${described(control)}`);
        else if (control.tagName === 'BUTTON' && style.overflowX !== 'visible'
            && control.scrollWidth > control.clientWidth + 1)
            found.push(`its words are cut: ${described(control)}`);
    }
    return found;
}"""


def settle(tab: Window) -> None:
    """Wait until answers have arrived and the window has been drawn again."""
    expect(tab.page.locator("main [data-testid=state-loading]").first).to_have_count(0)
    tab.page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def cut_texts(tab: Window) -> list[str]:
    """Texts that are still cut after rows had time to grow."""
    try:
        tab.page.wait_for_function(f"() => ({CUT})().length === 0", timeout=CUT_MS)
    except PlaywrightTimeout:
        return cast(list[str], tab.page.evaluate(CUT))
    return []


def dom_nodes(tab: Window) -> int:
    """The elements of the page. The head does not count: the console preloads the code of other
    pages there while it rests.
    """
    return int(tab.page.evaluate("document.body.querySelectorAll('*').length"))

"""Rows of the pages Data and Components, and a text that attacks them."""

from __future__ import annotations

import re

from playwright.sync_api import Locator
from tests.browser.chromium import Window
from tests.kube.laptop import Laptop

SPACE = "demo-ns"
ATTACK = "<img src=x onerror=document.title='attacked'>"


def code_of(laptop: Laptop) -> str:
    return re.findall(r"#code=(\S+)", laptop.component.log.read_text(encoding="utf-8"))[-1]


def row(tab: Window, kind: str, name: str) -> Locator:
    return tab.page.locator(f'tr[data-key="{SPACE}/{kind}/{name}"]')

"""The documentation site, built once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.site.builder import build_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, as `make site` builds it; a warning of MkDocs is an error."""
    folder = tmp_path_factory.mktemp("site")
    build_site.build_site(folder / "site", folder / "source")
    return folder / "site"

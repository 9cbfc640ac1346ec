"""The tests can read the file that builds Fairlead's images (`tests/kube/image_file.py`), and the
images contain the programs that the manifests start.
"""

from __future__ import annotations

import pytest
from tests.kube.fairlead_images import EXPORTER, FAIRLEAD, LOAD, fairlead_images
from tests.kube.image_file import PROGRAMS, Image, Link, Program, read_images


def test_what_manifests_start_is_a_program_of_the_image() -> None:
    images = fairlead_images()
    for tag, image in images.items():
        program = (image.entry_point or image.command)[0]
        assert isinstance(
            image.files[program if program.startswith("/") else f"{PROGRAMS}/{program}"], Program
        ), tag
        assert "/fairlead/src/fairlead/run/programs.py" in image.files and not [
            name for name in image.files if "fairlead_sim" in name
        ]
    exporter = images[EXPORTER]
    for name in ("/usr/bin/dcgm-exporter", "/usr/local/dcgm/dcgm-exporter-entrypoint.sh"):
        while isinstance(found := exporter.files[name], Link):
            name = found.target
        assert name == f"{PROGRAMS}/dcgm-exporter", "a link leads there"
    assert exporter.user == "0:0" and exporter.environment["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert images[FAIRLEAD].user == images[LOAD].user == "65532:65532"


@pytest.mark.parametrize("line", ["RUN apt-get update", "ADD x y", "RUN ln -s a b && useradd me"])
def test_what_is_not_understood_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is not understood; teach it here"):
        read_images(f"FROM base\n{line}\n", {"base": Image()})

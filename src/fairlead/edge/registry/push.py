"""Pushes images from the archive of a bundle: blobs that the registry lacks, then manifests.

A name appears in the registry with its last request, so it never names half an image. What a push
that ended early has sent is not sent again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.files.bundle_images import BundleImages, bundle_images
from fairlead.edge.registry.address import RegistryAddress
from fairlead.edge.registry.client import Content, RegistryClient, RegistryUnreachable
from fairlead.wire.files.image_layout import Descriptor, NamedImage

TRIES: Final = 5
AGAIN: Final = "run the command again: what the registry has is not sent again"

Note = Callable[[str, int, str], None]
"""Gets each blob that was dealt with: digest, bytes, and `sent`, `there` or `taken over` (from
another image).
"""


class BundlePush:
    """Pushes bundles to one registry (`cli.frame.context.ImageRegistry`)."""

    def __init__(
        self, address: RegistryAddress, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client = RegistryClient(address)
        self._sleep = sleep

    def push(self, bundle: str, note: Note) -> list[str]:
        with bundle_images(bundle) as images:
            return Push(images, self._client, note, self._sleep).run()


class Push:
    """Of the images of one archive to one registry."""

    def __init__(
        self,
        images: BundleImages,
        client: RegistryClient,
        note: Note,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._images = images
        self._client = client
        self._note = note
        self._sleep = sleep
        self._places: dict[str, str] = {}

    def run(self) -> list[str]:
        """The names of all images, as an installation uses them.

        Raises OutsideError; then another run continues.
        """
        self._client.check()
        return [self._push(each) for each in self._images.named]

    def _push(self, image: NamedImage) -> str:
        address = self._client.address
        repository = address.repository(image.name)
        self._members(repository, image.root)
        self._manifest(repository, image.root, image.tag)
        return address.image(image.name, image.tag)

    def _members(self, repository: str, descriptor: Descriptor) -> None:
        for each in self._images.members(descriptor):
            if descriptor.is_index:
                self._members(repository, each)
                self._manifest(repository, each, each.digest)
            else:
                self._patiently(lambda each=each: self._blob(repository, each))  # type: ignore[misc]

    def _patiently(self, do: Callable[[], None]) -> None:
        """Again where the registry is away for a moment, or a blob was interrupted."""
        backoff = Backoff()
        while True:
            try:
                do()
                return
            except RegistryUnreachable as error:
                if backoff.failures + 1 >= TRIES:
                    raise RegistryUnreachable(error.system, error.what, AGAIN) from error
                self._sleep(backoff.next_delay())

    def _blob(self, repository: str, blob: Descriptor) -> None:
        place = f"/v2/{repository}/blobs"
        # some registries keep blobs elsewhere, and answer with where
        if self._client.ask("HEAD", f"{place}/{blob.digest}").status in (200, 302, 303, 307, 308):
            self._places.setdefault(blob.digest, repository)
            self._note(blob.digest, blob.size, "there")
            return
        other = self._places.get(blob.digest)
        query = f"?mount={blob.digest}&from={other}" if other else ""
        begun = self._client.ask("POST", f"{place}/uploads/{query}")
        if other and begun.status == 201:
            self._note(blob.digest, blob.size, "taken over")
            return
        if begun.status != 202 or not begun.headers.get("location"):
            raise self._client.failure(f"begins no upload to `{repository}`", begun)
        upload = begun.location
        with self._images.blob(blob) as file:
            done = self._client.ask(
                "PUT",
                f"{upload}{'&' if '?' in upload else '?'}digest={blob.digest}",
                Content(file, blob.size),
            )
        if done.status != 201:
            raise self._client.failure(f"does not take {blob.digest}", done)
        self._places.setdefault(blob.digest, repository)
        self._note(blob.digest, blob.size, "sent")

    def _manifest(self, repository: str, manifest: Descriptor, reference: str) -> None:
        text = self._images.text(manifest)

        def put() -> None:
            content = Content(text, len(text), manifest.media_type)
            done = self._client.ask("PUT", f"/v2/{repository}/manifests/{reference}", content)
            if done.status != 201:
                raise self._client.failure(f"does not take `{repository}:{reference}`", done)

        self._patiently(put)

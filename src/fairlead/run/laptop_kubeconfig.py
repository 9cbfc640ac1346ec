"""The kubeconfig that a laptop leaves for kubectl: a file, or three entries in another file.

The other file may have other clusters.

A file of another program is never rewritten. The laptop's cluster, context and user are added
beside the others (`kubectl --context fairlead` uses them), under kubectl's own lock, and are
removed at the end, because they no longer open anything.
"""

from __future__ import annotations

import base64
import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from fairlead.cli.frame.messages import Messages
from fairlead.edge.connection.certificate import common_name
from fairlead.edge.connection.connection import laptop_pages
from fairlead.edge.connection.kubeconfig_file import Kubeconfig, KubeconfigCluster, parse_kubeconfig
from fairlead.edge.files.laptop_state import RunningLaptop
from fairlead.edge.files.own_files import FileKind, make_private, replace_whole
from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.settings import (
    CONTEXT_BEFORE_EXTENSION,
    LAPTOP_AUTHORITY,
    LAPTOP_CONTEXT,
    LAPTOP_EXTENSION,
    LAPTOP_USER,
)
from fairlead.wire.files.bounded import load_yaml
from fairlead.wire.files.kubeconfig_text import CURRENT, SECTIONS, with_entries, without_entries
from fairlead_sim.api.credentials import render_kubeconfig

LOCK_SECONDS: Final = 2.0
_LOCK_PAUSE: Final = 0.05
_NAMES: Final = {"clusters": LAPTOP_CONTEXT, "contexts": LAPTOP_CONTEXT, "users": LAPTOP_USER}
_ELSEWHERE: Final = "name a file that does not exist yet with --kubeconfig"

Entries = Mapping[str, Mapping[str, Any]]


class SharedKubeconfig:
    """The file that the user named.

    Call `check` first; `write` adds the entries, `end` removes them from a file with other entries.
    """

    def __init__(
        self,
        path: Path,
        *,
        is_made_current: bool = False,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.path = path
        self.is_own = False
        """Whether the file has nothing but the laptop's entries."""
        self.opens_the_laptop = False
        """Whether it opens the laptop for a program that names no context."""
        self._is_made_current = is_made_current
        self._sleep = sleep
        self._before = self._written = ""
        self._current_before = ""

    def check(self, running: Iterable[RunningLaptop] = ()) -> None:
        """Raises UserError if entries cannot be added to the file: it is no kubeconfig, or has
        foreign entries with the laptop's names.

        `running`: laptops whose context must not be replaced, either.
        """
        if text := self._read():
            found = parse_kubeconfig(self.path, text)
            _refuse_namesakes(self.path, found)
            _refuse_running(self.path, found, running)

    def write(self, entries: Entries) -> None:
        """Raises UserError as `check`, and for a file that is locked or cannot be written."""
        with self._locked():
            text = self._read()
            found = parse_kubeconfig(self.path, text)
            _refuse_namesakes(self.path, found)
            self.is_own = not text.strip() or (
                _has_only_laptop_entries(found) and not _has_more(text)
            )
            self._current_before = _current_before(found)
            current = LAPTOP_CONTEXT if self._is_made_current or not found.current_context else ""
            is_current = (current or found.current_context) == LAPTOP_CONTEXT
            noted = (
                _with_note(entries, self._current_before)
                if is_current and self._current_before
                else entries
            )
            after = (
                render_kubeconfig(entries).decode()
                if self.is_own
                else self._merged(text, noted, current)
            )
            self._replace(after)
        self._before, self._written = text, after
        self.opens_the_laptop = self.is_own or is_current

    def end(self) -> None:
        """Remove the laptop's entries from a file with other entries; a file without others stays.

        Raises FairleadError if that fails.
        """
        if not self._written or not (text := self._read()):
            return
        with self._locked():
            text = self._read()
            found = parse_kubeconfig(self.path, text)
            if (
                not text
                or (self.is_own and _has_only_laptop_entries(found))
                or not self._is_as_written(found)
            ):
                return
            untouched = text == self._written and not self.is_own
            self._replace(
                self._before
                if untouched and not _has_own_context(self._before, self.path)
                else self._parted(text)
            )

    def _is_as_written(self, found: Kubeconfig) -> bool:
        """Whether the entries are still this laptop's: another laptop may have written its own."""
        written = parse_kubeconfig(self.path, self._written)
        return found.clusters.get(LAPTOP_CONTEXT) == written.clusters[LAPTOP_CONTEXT]

    def _merged(self, text: str, entries: Entries, current: str) -> str:
        try:
            return with_entries(text, entries, current)
        except (ValueError, yaml.YAMLError) as error:
            problem = (
                f"the entries of the laptop cannot be put into kubeconfig `{self.path}`: {error}"
            )
            raise UserError(
                problem, f"{_ELSEWHERE}; `KUBECONFIG={self.path}:FILE` reads both"
            ) from error

    def _parted(self, text: str) -> str:
        try:
            return without_entries(text, _NAMES, self._current_before)
        except (ValueError, yaml.YAMLError) as error:
            problem = (
                f"the entries of the laptop cannot be taken out of kubeconfig `{self.path}`: "
                f"{error}"
            )
            raise UserError(
                problem, f"`kubectl config delete-context {LAPTOP_CONTEXT}` takes its context out"
            ) from error

    # --- the file ---------------------------------------------------------------------------------

    def _read(self) -> str:
        """The text of the file; "" if there is none."""
        try:
            if self.path.exists() and not self.path.is_file():
                raise UserError(
                    f"kubeconfig `{self.path}` cannot be written: it is no regular file",
                    _ELSEWHERE,
                )
            return self.path.read_bytes().decode()
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except UnicodeDecodeError as error:
            raise UserError(
                f"kubeconfig `{self.path}` is not UTF-8 text (byte {error.start})", _ELSEWHERE
            ) from error
        except OSError as error:
            raise UserError(
                f"kubeconfig `{self.path}` cannot be read: {_reason(error)}", _ELSEWHERE
            ) from error

    def _replace(self, text: str) -> None:
        """Replace the file in one step, with the mode and the owner of the old one."""
        try:
            found = self.path.stat() if self.path.exists() else None
            if found is not None and not os.access(self.path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            replace_whole(self.path, text.encode(), found)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(
            f"kubeconfig `{self.path}` cannot be written: {_reason(error)}",
            "give a file that you may write",
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock it as kubectl does: by a file `FILE.lock` that must not exist.

        A file behind a link is locked under both names.
        """
        with ExitStack() as held:
            for name in sorted({str(self.path), os.path.realpath(self.path)}):
                lock = Path(f"{name}.lock")
                self._take(lock)
                held.callback(lock.unlink, missing_ok=True)
            yield

    def _take(self, lock: Path) -> None:
        for _ in range(int(LOCK_SECONDS / _LOCK_PAUSE)):
            try:
                make_private(lock.parent)
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
                return
            except FileExistsError:
                self._sleep(_LOCK_PAUSE)
            except OSError as error:
                raise self._unwritable(error) from error
        raise OutsideError(
            "disk",
            (
                f"kubeconfig `{self.path}` is locked: `{lock}` has been there for "
                f"{LOCK_SECONDS:g} s and longer"
            ),
            "see whether a kubectl is at work; if none is, remove that file",
        )


def end_kubeconfig(kubeconfig: SharedKubeconfig, messages: Messages) -> None:
    """Remove the entries at the end of a process; a failure is only a warning."""
    try:
        kubeconfig.end()
    except FairleadError as error:
        messages.warn(
            f"the laptop's entries stay in kubeconfig `{kubeconfig.path}`: {error.log_line}"
        )


# --- laptop entries -------------------------------------------------------------------------------


def _is_a_laptops_alone(data: bytes) -> bool:
    try:
        return _has_only_laptop_entries(parse_kubeconfig(Path("-"), data.decode()))
    except (UnicodeDecodeError, FairleadError):
        return False


OWN_KUBECONFIG: Final = FileKind("kubeconfig", "laptop.kubeconfig", _is_a_laptops_alone)
"""The kubeconfig that a laptop keeps in its state directory, without other entries."""


def _has_only_laptop_entries(found: Kubeconfig) -> bool:
    """Whether it has a laptop's entries and no others."""
    names = {*found.clusters, *found.contexts} - {LAPTOP_CONTEXT} | found.users.keys() - {
        LAPTOP_USER
    }
    return (
        not names
        and LAPTOP_CONTEXT in found.clusters
        and _is_laptop_cluster(found.clusters[LAPTOP_CONTEXT])
    )


def _current_before(found: Kubeconfig) -> str:
    """The current context, or the previous one that a killed laptop has noted."""
    if found.current_context != LAPTOP_CONTEXT:
        return found.current_context
    extensions = (
        found.contexts[LAPTOP_CONTEXT].extensions if LAPTOP_CONTEXT in found.contexts else None
    )
    notes = [each.extension for each in extensions or () if each.name == CONTEXT_BEFORE_EXTENSION]
    name = notes[0].get("name") if notes and isinstance(notes[0], dict) else None
    return name if name in found.contexts and name != LAPTOP_CONTEXT else ""


def _with_note(entries: Entries, before: str) -> Entries:
    entry = entries["contexts"]
    note = {"name": CONTEXT_BEFORE_EXTENSION, "extension": {"name": before}}
    return {**entries, "contexts": {**entry, "context": {**entry["context"], "extensions": [note]}}}


def _has_more(text: str) -> bool:
    """Whether a user wrote more than entries into it: a comment, or a value of another key."""
    others = load_yaml(text).keys() - {"apiVersion", "kind", CURRENT, *SECTIONS}
    return "#" in text or any(load_yaml(text)[key] for key in others)


def _has_own_context(text: str, path: Path) -> bool:
    return LAPTOP_CONTEXT in parse_kubeconfig(path, text).clusters


def _refuse_namesakes(path: Path, found: Kubeconfig) -> None:
    """Raises UserError for a foreign entry with one of the laptop's names."""
    cluster, context = found.clusters.get(LAPTOP_CONTEXT), found.contexts.get(LAPTOP_CONTEXT)
    is_our_context = context is not None and (context.cluster, context.user) == (
        LAPTOP_CONTEXT,
        LAPTOP_USER,
    )
    if cluster is not None and not _is_laptop_cluster(cluster):
        raise _namesake(path, "cluster", LAPTOP_CONTEXT)
    if context is not None and not is_our_context:
        raise _namesake(path, "context", LAPTOP_CONTEXT)
    if LAPTOP_USER in found.users and cluster is None and not is_our_context:
        raise _namesake(path, "user", LAPTOP_USER)


def _refuse_running(path: Path, found: Kubeconfig, running: Iterable[RunningLaptop]) -> None:
    pages = (
        laptop_pages(found.clusters[LAPTOP_CONTEXT]) if LAPTOP_CONTEXT in found.clusters else None
    )
    for laptop in running:
        if pages is not None and laptop.console.rstrip("/") == pages.console.rstrip("/"):
            problem = (
                f"the context `{LAPTOP_CONTEXT}` of kubeconfig `{path}` belongs to another "
                f"laptop, which runs (process {laptop.pid})"
            )
            raise UserError(problem, f"end that laptop first, or {_ELSEWHERE}")


def _namesake(path: Path, what: str, name: str) -> UserError:
    problem = f"kubeconfig `{path}` has a {what} `{name}` already, and no laptop wrote it"
    return UserError(problem, f"rename that {what}, or {_ELSEWHERE}")


def _is_laptop_cluster(cluster: KubeconfigCluster) -> bool:
    """By its extension, or by the name of its authority, which older laptops wrote, too."""
    if any(extension.name == LAPTOP_EXTENSION for extension in cluster.extensions or ()):
        return True
    try:
        return (
            common_name(base64.b64decode(cluster.certificate_authority_data or ""))
            == LAPTOP_AUTHORITY
        )
    except ValueError:
        return False


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()

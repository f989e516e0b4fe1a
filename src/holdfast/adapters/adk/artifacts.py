"""Artifacts of ADK as files: every version kept, numbered from 0.

An artifact is two files that are always written together and so have the same versions: ``data/NAME`` is what is in it,
as text or bytes, and ``about/NAME`` the rest of the part it came as. Those of a session belong to its thread and are
erased with it; those of a user (``user:NAME``, or saved without a session) stay. Names that would lead out of a folder
are refused as ADK's own services refuse them. Deliberately absent: paths on a disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from google.adk.artifacts import artifact_util
from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService, ensure_part
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from holdfast import FileDelete, FileWrite, Folder
from holdfast.adapters.adk.events import plain
from holdfast.adapters.adk.service import Service, SessionPlace, packed, unpacked
from holdfast.errors import NotFound
from holdfast.extension import check_id, in_thread
from holdfast.types import File

_FOLDER = "adk artifacts"
_USER = "user:"
_ABOUT, _DATA = "about/", "data/"
_HOPS = 5  # of references that lead to references; ADK's own services follow as many
_REMOVED = types.Part(inline_data=types.Blob(mime_type="application/octet-stream", data=b""))
"""What ADK saves to take an artifact back on a rewind: there is a version, and nothing to load."""


class _Named(NamedTuple):
    """One artifact: where it is, and what it is called there."""

    folder: Folder
    name: str
    place: SessionPlace | None
    app: str
    user: str


class HoldfastArtifactService(Service, BaseArtifactService):
    """Keeps ADK's artifacts in a store: ``HoldfastArtifactService("agent.db")``."""

    # What ADK asks for

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Save an artifact as its next version, and return the number of that: 0 for the first."""
        named = self._named(app_name, user_id, filename, session_id)
        return await in_thread(self._save, named, ensure_part(artifact), custom_metadata or {})

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        """The newest version, or the one of a number; None where there is none. References are followed."""
        part = None
        for hops in range(_HOPS, -1, -1):
            part = await in_thread(self._load, self._named(app_name, user_id, filename, session_id), version)
            if part is None or not artifact_util.is_artifact_ref(part):
                break
            _, _, session_id, filename, version = artifact_util.resolve_artifact_reference(
                file_uri=part.file_data.file_uri,
                app_name=app_name,
                user_id=user_id,
                session_id=session_id,
                remaining_depth=hops,
            )
        return None if part == _REMOVED else part

    async def list_artifact_keys(self, *, app_name: str, user_id: str, session_id: str | None = None) -> list[str]:
        """The names of a user's artifacts, and with ``session_id`` of that session's too."""
        return await in_thread(self._keys, app_name, user_id, session_id)

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Erase an artifact with all its versions; one that is saved under the name later begins with 0 again."""
        await in_thread(self._delete, self._named(app_name, user_id, filename, session_id))

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        """The numbers of all versions."""
        named = self._named(app_name, user_id, filename, session_id)
        return [found.version for found in await in_thread(self._versions, named)]

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        """What is known about all versions, without what is in them."""
        return await in_thread(self._versions, self._named(app_name, user_id, filename, session_id))

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        """What is known about the newest version, or about the one of a number; None where there is none."""
        found = await in_thread(self._versions, self._named(app_name, user_id, filename, session_id))
        return next((one for one in reversed(found) if version is None or one.version == version), None)

    # Inside

    def _named(self, app: str, user: str, filename: str, session: str | None) -> _Named:
        """Without a session an artifact is the user's, as it is with a name that says so."""
        _check_filename(filename)
        _check_ids(app_name=app, user_id=user)
        if session is None or filename.startswith(_USER):
            return _Named(self._folder(_FOLDER, app=app, user=user), filename.removeprefix(_USER), None, app, user)
        _check_ids(session_id=session)
        place = SessionPlace(app, user, session)
        return _Named(self._of_session(place), filename, place, app, user)

    def _of_session(self, place: SessionPlace) -> Folder:
        return self._folder(f"{_FOLDER}/{place.session}", app=place.app, user=place.user, thread=place.thread)

    def _save(self, named: _Named, part: types.Part, metadata: dict[str, Any]) -> int:
        content, mime = _content(part), _mime(named, part)
        rest = part.model_dump(mode="json", exclude_none=True, exclude={"text": True, "inline_data": {"data"}})
        about = {"mime_type": mime, "metadata": plain(metadata, "metadata"), "part": rest}
        changes = [FileWrite(_DATA + named.name, content), FileWrite(_ABOUT + named.name, packed(about))]
        return named.folder.commit(changes)[0].version - 1

    def _load(self, named: _Named, version: int | None) -> types.Part | None:
        about = self._file(named, _ABOUT, version)
        # By its number: someone may have saved the next version since.
        data = None if about is None else self._file(named, _DATA, about.version - 1)
        return None if about is None or data is None else _part(unpacked(about.content)["part"], data.content)

    def _file(self, named: _Named, what: str, version: int | None) -> File | None:
        try:
            return named.folder.read(what + named.name, version=None if version is None else version + 1)
        except NotFound:
            return None

    def _versions(self, named: _Named) -> list[ArtifactVersion]:
        return [_version(named, file) for file in named.folder.history(_ABOUT + named.name)]

    def _keys(self, app: str, user: str, session: str | None) -> list[str]:
        _check_ids(app_name=app, user_id=user, **({} if session is None else {"session_id": session}))
        users = self._folder(_FOLDER, app=app, user=user).paths(_ABOUT)
        own = [] if session is None else self._of_session(SessionPlace(app, user, session)).paths(_ABOUT)
        names = [_USER + path.removeprefix(_ABOUT) for path in users]
        return sorted([*names, *(path.removeprefix(_ABOUT) for path in own)])

    def _delete(self, named: _Named) -> None:
        """Both files in one commit, so that their versions stay the same."""
        named.folder.filebook.erase([FileDelete(what + named.name) for what in (_ABOUT, _DATA)])


def _check_ids(**ids: str) -> None:
    """Refuse what ADK's own services refuse, though nothing here is a path: an app moves from one to the other."""
    for what, id in ids.items():
        artifact_util.validate_path_segment(id, what)


def _check_filename(filename: str) -> None:
    """The same for a name. It may have slashes; one that leads out of its folder, or from the root, is refused."""
    name = filename.removeprefix(_USER).strip()
    first, *others = name.replace("\\", "/").split("/")
    if first != "." or not others:
        artifact_util.validate_path_segment(first, "filename")
    if ".." in others or "\0" in name:
        raise InputValidationError(f"filename {filename!r} must not contain traversal segments or null bytes.")
    check_id(filename, "filename")


def _content(part: types.Part) -> str | bytes | None:
    if part.inline_data is not None:
        return part.inline_data.data
    if part.text is None and part.file_data is None:
        raise InputValidationError("An artifact is text, data or a reference to a file; this part has none of them.")
    return part.text


def _mime(named: _Named, part: types.Part) -> str | None:
    if part.inline_data is not None:
        return part.inline_data.mime_type
    if part.text is not None:
        return "text/plain"
    if not artifact_util.is_artifact_ref(part):
        return part.file_data.mime_type
    artifact_util.resolve_artifact_reference(  # one that nobody could follow is refused here already
        file_uri=part.file_data.file_uri,
        app_name=named.app,
        user_id=named.user,
        session_id=None if named.place is None else named.place.session,
        remaining_depth=_HOPS,
    )
    return None  # of what it refers to, which may come to be another


def _part(rest: dict[str, Any], content: str | bytes | None) -> types.Part:
    if isinstance(content, bytes):
        return types.Part.model_validate({**rest, "inline_data": {**rest["inline_data"], "data": content}})
    return types.Part.model_validate(rest if content is None else {**rest, "text": content})


def _version(named: _Named, file: File) -> ArtifactVersion:
    about, place, number = unpacked(file.content), named.place, file.version - 1
    filename = _USER + named.name if place is None else named.name
    return ArtifactVersion(
        version=number,
        canonical_uri=artifact_util.get_artifact_uri(
            named.app, named.user, filename, number, None if place is None else place.session
        ),
        custom_metadata=about["metadata"],
        create_time=file.time.timestamp(),
        mime_type=about["mime_type"],
    )

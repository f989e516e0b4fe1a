"""What an artifact service of ADK does, asked of the bundled ones and of ours."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.artifacts.file_artifact_service import FileArtifactService
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

import holdfast
from holdfast.adapters.adk import HoldfastArtifactService, HoldfastSessionService
from holdfast.engine.contract import Query
from holdfast.errors import Invalid, TooLarge

HERE = {"app_name": "travel", "user_id": "ana"}
ONE = {**HERE, "session_id": "one"}
TWO = {**HERE, "session_id": "two"}


def data(content: bytes, mime: str = "application/pdf") -> types.Part:
    return types.Part.from_bytes(data=content, mime_type=mime)


def test_versions_are_numbered_from_0_and_all_kept(artifacts: Any) -> None:
    async def work() -> None:
        parts = [data(b"\x00\xff first"), types.Part(text="second"), data(b"third", "image/png")]
        for number, part in enumerate(parts):
            assert await artifacts.save_artifact(**ONE, filename="ticket", artifact=part) == number
        for number, part in enumerate(parts):
            assert await artifacts.load_artifact(**ONE, filename="ticket", version=number) == part
        assert await artifacts.load_artifact(**ONE, filename="ticket") == parts[-1]
        assert await artifacts.list_versions(**ONE, filename="ticket") == [0, 1, 2]
        assert await artifacts.load_artifact(**ONE, filename="ticket", version=3) is None

    asyncio.run(work())


def test_what_is_not_there_is_none(artifacts: Any) -> None:
    async def work() -> None:
        assert await artifacts.load_artifact(**ONE, filename="ticket") is None
        assert await artifacts.load_artifact(**ONE, filename="ticket", version=0) is None
        assert await artifacts.list_versions(**ONE, filename="ticket") == []
        assert await artifacts.list_artifact_versions(**ONE, filename="ticket") == []
        assert await artifacts.get_artifact_version(**ONE, filename="ticket") is None
        assert await artifacts.list_artifact_keys(**ONE) == []
        await artifacts.delete_artifact(**ONE, filename="ticket")

    asyncio.run(work())


def test_artifacts_of_a_session_and_of_a_user(artifacts: Any) -> None:
    async def work() -> None:
        await artifacts.save_artifact(**ONE, filename="ticket", artifact=data(b"of one"))
        await artifacts.save_artifact(**ONE, filename="user:passport", artifact=data(b"of ana"))
        await artifacts.save_artifact(app_name="travel", user_id="bob", session_id="one",
                                      filename="ticket", artifact=data(b"of bob"))  # fmt: skip
        assert await artifacts.list_artifact_keys(**ONE) == ["ticket", "user:passport"]
        assert await artifacts.list_artifact_keys(**TWO) == ["user:passport"]
        assert await artifacts.list_artifact_keys(**HERE) == ["user:passport"]
        assert await artifacts.load_artifact(**TWO, filename="user:passport") == data(b"of ana")
        assert await artifacts.load_artifact(**HERE, filename="user:passport") == data(b"of ana")
        assert await artifacts.load_artifact(**TWO, filename="ticket") is None
        assert await artifacts.load_artifact(**ONE, filename="ticket") == data(b"of one")
        assert await artifacts.save_artifact(**TWO, filename="user:passport", artifact=data(b"newer")) == 1

    asyncio.run(work())


def test_what_is_known_about_versions(artifacts: Any) -> None:
    async def work() -> None:
        await artifacts.save_artifact(**ONE, filename="a.pdf", artifact=data(b"1"), custom_metadata={"by": "x"})
        await artifacts.save_artifact(**ONE, filename="a.pdf", artifact=types.Part(text="2"))
        first, second = await artifacts.list_artifact_versions(**ONE, filename="a.pdf")
        assert (first.version, first.mime_type, first.custom_metadata) == (0, "application/pdf", {"by": "x"})
        assert (second.version, second.custom_metadata) == (1, {})
        assert first.create_time <= second.create_time
        assert first.canonical_uri != second.canonical_uri
        assert await artifacts.get_artifact_version(**ONE, filename="a.pdf") == second
        assert await artifacts.get_artifact_version(**ONE, filename="a.pdf", version=0) == first
        assert await artifacts.get_artifact_version(**ONE, filename="a.pdf", version=7) is None

    asyncio.run(work())


def test_what_is_deleted_is_gone_and_begins_with_0(artifacts: Any) -> None:
    async def work() -> None:
        for _ in range(2):
            assert await artifacts.save_artifact(**ONE, filename="a", artifact=data(b"1")) == 0
            assert await artifacts.save_artifact(**ONE, filename="a", artifact=data(b"2")) == 1
            await artifacts.delete_artifact(**ONE, filename="a")
            assert await artifacts.load_artifact(**ONE, filename="a") is None
            assert await artifacts.list_artifact_keys(**ONE) == []
            assert await artifacts.list_versions(**ONE, filename="a") == []

    asyncio.run(work())


def test_a_dict_is_taken_for_a_part(artifacts: Any) -> None:
    async def work() -> None:
        await artifacts.save_artifact(**ONE, filename="a", artifact={"inlineData": {"mimeType": "x/y", "data": "AP8="}})
        assert await artifacts.load_artifact(**ONE, filename="a") == data(b"\x00\xff", "x/y")

    asyncio.run(work())


def test_a_reference_is_followed_within_its_scope(artifacts: Any) -> None:
    def reference(uri: str) -> types.Part:
        return types.Part(file_data=types.FileData(file_uri=uri, mime_type="x/y"))

    async def work() -> None:
        await artifacts.save_artifact(**ONE, filename="a", artifact=data(b"it"))
        if isinstance(artifacts, FileArtifactService):
            return  # keeps no references
        base = "artifact://apps/travel/users/{}/sessions/{}/artifacts/{}/versions/0"
        await artifacts.save_artifact(**ONE, filename="b", artifact=reference(base.format("ana", "one", "a")))
        assert await artifacts.load_artifact(**ONE, filename="b") == data(b"it")
        for wrong in (base.format("bob", "one", "a"), base.format("ana", "two", "a"), "artifact://nonsense"):
            with pytest.raises(InputValidationError):
                await artifacts.save_artifact(**ONE, filename="c", artifact=reference(wrong))
        await artifacts.save_artifact(**ONE, filename="loop", artifact=reference(base.format("ana", "one", "loop")))
        with pytest.raises(InputValidationError, match="depth"):
            await artifacts.load_artifact(**ONE, filename="loop")

    asyncio.run(work())


def test_what_is_no_artifact_is_refused(artifacts: Any) -> None:
    async def work() -> None:
        for part in (types.Part(), types.Part(function_call=types.FunctionCall(name="f"))):
            with pytest.raises(InputValidationError):
                await artifacts.save_artifact(**ONE, filename="a", artifact=part)
        assert await artifacts.load_artifact(**ONE, filename="a") is None
        if not isinstance(artifacts, FileArtifactService):  # which lists what it refused
            assert await artifacts.list_artifact_keys(**ONE) == []

    asyncio.run(work())


async def refused(artifacts: Any, **where: str) -> None:
    """Each call that names an artifact is refused."""
    for call in ("load_artifact", "delete_artifact", "list_versions", "list_artifact_versions", "get_artifact_version"):
        with pytest.raises(InputValidationError):
            await getattr(artifacts, call)(**where)
    with pytest.raises(InputValidationError):
        await artifacts.save_artifact(**where, artifact=data(b"it"))


@pytest.mark.parametrize("name", ["app_name", "user_id", "session_id"])
@pytest.mark.parametrize(
    "id", ["..", ".", "../x", "a/../../b", "a\\..\\b", "/a", "\\a", "C:a", "a\0", "", "  ", "a/users/b"]
)
def test_ids_that_could_lead_elsewhere_are_refused(artifacts: Any, name: str, id: str) -> None:
    async def work() -> None:
        await refused(artifacts, **{**ONE, name: id}, filename="a")
        with pytest.raises(InputValidationError):
            await artifacts.list_artifact_keys(**{**ONE, name: id})

    asyncio.run(work())


WAYS_OUT = ("..", "../x", " ../x", "a/../b", "a/../../b", "a\\..\\b", "/etc/x", "\\x", "\\\\host\\x", "C:x", "c:/x")


@pytest.mark.parametrize("filename", [*WAYS_OUT, *(f"user:{name}" for name in WAYS_OUT)])
def test_names_that_could_lead_elsewhere_are_refused(artifacts: Any, filename: str) -> None:
    if isinstance(artifacts, InMemoryArtifactService):
        return  # has nowhere else to lead to, and takes any name
    asyncio.run(refused(artifacts, **ONE, filename=filename))


@pytest.mark.parametrize(
    "filename", ["a/b c.txt", "a..b", "...", "./a", "a//b", "users/a", "user:a/b", "user:user:a", "ä:b", "12:30"]
)
def test_names_that_look_like_it_are_kept(artifacts: Any, filename: str) -> None:
    async def work() -> None:
        await artifacts.save_artifact(**ONE, filename=filename, artifact=data(b"it"))
        assert await artifacts.load_artifact(**ONE, filename=filename) == data(b"it")
        assert len(await artifacts.list_artifact_keys(**ONE)) == 1

    asyncio.run(work())


@pytest.mark.parametrize("filename", ["", "  ", ".", "a\0b", "user:", "user: ", "user:a\0"])
def test_names_that_are_none_are_refused(store: holdfast.Store, filename: str) -> None:
    asyncio.run(refused(HoldfastArtifactService(store), **ONE, filename=filename))


def test_what_a_rewind_took_back_is_not_loaded(artifacts: Any) -> None:
    async def work() -> None:
        await artifacts.save_artifact(**ONE, filename="a", artifact=data(b"it"))
        await artifacts.save_artifact(**ONE, filename="a", artifact=data(b"", "application/octet-stream"))
        assert await artifacts.load_artifact(**ONE, filename="a") is None
        assert await artifacts.load_artifact(**ONE, filename="a", version=0) == data(b"it")

    asyncio.run(work())


# Ours alone


@pytest.mark.every_engine
def test_parts_come_back_whole(store: holdfast.Store) -> None:
    parts = [
        types.Part(text=""),
        types.Part(text="é\x00😀", thought=True, thought_signature=b"\xff"),
        types.Part(inline_data=types.Blob(data=b"", mime_type="text/plain", display_name="empty.txt")),
        types.Part(inline_data=types.Blob(data=bytes(range(256)) * 5_000, mime_type="x/y")),
        types.Part(file_data=types.FileData(file_uri="gs://bucket/it", mime_type="x/y")),
    ]

    async def work() -> None:
        service = HoldfastArtifactService(store)
        for number, part in enumerate(parts):
            assert await service.save_artifact(**ONE, filename="a/b c.txt", artifact=part) == number
        for number, part in enumerate(parts):
            assert await service.load_artifact(**ONE, filename="a/b c.txt", version=number) == part

    asyncio.run(work())


def test_without_a_session_an_artifact_is_the_users(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastArtifactService(store)
        await service.save_artifact(**HERE, filename="passport", artifact=data(b"it"))
        assert await service.list_artifact_keys(**TWO) == ["user:passport"]
        assert await service.load_artifact(**TWO, filename="user:passport") == data(b"it")

    asyncio.run(work())


def test_people_can_read_and_recall_what_is_in_them(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastArtifactService(store)
        await service.save_artifact(**ONE, filename="plan", artifact=types.Part(text="Monday in Sintra"))

    asyncio.run(work())
    folder = store.folder("adk artifacts/one", user="ana", agent="travel")
    assert folder.read("data/plan").content == "Monday in Sintra"
    assert [hit.text for hit in store.memory(user="ana").recall("plan Sintra")] == ["Monday in Sintra"]


def test_saves_at_once_get_numbers_of_their_own(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastArtifactService(store)
        contents = [f"{number}".encode() for number in range(16)]
        numbers = await asyncio.gather(
            *(service.save_artifact(**ONE, filename="a", artifact=data(content)) for content in contents)
        )
        assert sorted(numbers) == list(range(16))
        for number, content in zip(numbers, contents, strict=True):
            assert await service.load_artifact(**ONE, filename="a", version=number) == data(content)

    asyncio.run(work())


def test_they_go_with_their_session(store: holdfast.Store) -> None:
    async def work() -> None:
        sessions, service = HoldfastSessionService(store), HoldfastArtifactService(store)
        await sessions.create_session(**ONE)
        for name in ("ticket", "user:passport"):
            await service.save_artifact(**ONE, filename=name, artifact=data(b"it"))
        await service.save_artifact(**TWO, filename="ticket", artifact=data(b"of two"))
        await sessions.delete_session(**ONE)
        assert await service.list_artifact_keys(**ONE) == ["user:passport"]
        assert await service.load_artifact(**TWO, filename="ticket") == data(b"of two")
        assert await service.save_artifact(**ONE, filename="ticket", artifact=data(b"new")) == 0

    asyncio.run(work())
    assert store.verify().ok


def test_names_and_sizes_that_cannot_be(store: holdfast.Store) -> None:
    async def work() -> None:
        service = HoldfastArtifactService(store)
        for bad in ("\ud800", "x" * 600, "a\nb"):
            with pytest.raises(Invalid):
                await service.save_artifact(**ONE, filename=bad, artifact=data(b"it"))
            for name in ("app_name", "user_id", "session_id"):
                with pytest.raises(Invalid):
                    await service.save_artifact(**{**ONE, name: bad}, filename="a", artifact=data(b"it"))
        with pytest.raises(Invalid):
            await service.save_artifact(**ONE, filename="a", artifact=data(b"it"), custom_metadata={"f": print})
        with pytest.raises(TooLarge):
            await service.save_artifact(**ONE, filename="a", artifact=data(bytes(17 * 1024 * 1024)))
        assert await service.list_artifact_keys(**ONE) == []

    asyncio.run(work())


def test_what_was_deleted_is_in_no_saved_index(store: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.retrieval.index.SAVE_AT", 24)

    def known() -> bool:
        return any("quokka" in hit.text for hit in store.memory(user="ana").recall("quokka"))

    async def work() -> None:
        service = HoldfastArtifactService(store)
        for number in range(40):
            await service.save_artifact(**ONE, filename=f"f{number}", artifact=types.Part(text=f"animal{number}"))
        await service.save_artifact(**ONE, filename="secret", artifact=types.Part(text="quokka"))
        assert known()
        assert store.core.engine.scan(store.tenant, Query("index", limit=1))
        await service.delete_artifact(**ONE, filename="secret")
        assert not known()
        assert store.verify(tenant=store.tenant).ok

    asyncio.run(work())

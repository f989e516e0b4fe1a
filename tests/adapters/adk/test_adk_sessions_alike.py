"""What a session service of ADK does, asked of the bundled ones and of ours; the differences are listed here too."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

HERE = {"app_name": "travel", "user_id": "ana"}
ONE = {**HERE, "session_id": "one"}


def run(work: Coroutine[Any, Any, Any], service: Any) -> Any:
    """Run a test to its end; the bundled database keeps threads that must end with the loop."""

    async def all_of_it() -> Any:
        try:
            return await work
        finally:
            if type(service).__name__ == "DatabaseSessionService":
                await service.close()

    return asyncio.run(all_of_it())


def said(text: str, author: str = "user", **more: Any) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=text)])
    return Event(author=author, invocation_id="i", content=content, **more)


def changing(**delta: Any) -> Event:
    named = {key.replace("__", ":"): value for key, value in delta.items()}
    return Event(author="agent", invocation_id="i", actions=EventActions(state_delta=named))


@pytest.mark.every_engine
def test_a_session_comes_back_with_its_events_and_state(sessions: Any) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE, state={"step": 1, "nested": {"a": [1, None]}})
        events = [said("hello"), said("hi Ana", "agent"), changing(step=2)]
        for event in events:
            assert await sessions.append_event(session, event) is event
        again = await sessions.get_session(**ONE)
        assert again.events == events == session.events
        assert again.state == session.state == {"step": 2, "nested": {"a": [1, None]}}
        assert (again.app_name, again.user_id, again.id) == ("travel", "ana", "one")
        assert again.last_update_time == session.last_update_time == pytest.approx(events[-1].timestamp, abs=1e-6)

    run(work(), sessions)


def test_an_id_is_made_where_none_is_given(sessions: Any) -> None:
    async def work() -> None:
        first, second = await sessions.create_session(**HERE), await sessions.create_session(**HERE)
        assert first.id
        assert first.id != second.id
        assert (await sessions.get_session(**HERE, session_id=first.id)).id == first.id

    run(work(), sessions)


@pytest.mark.every_engine
def test_a_session_was_updated_when_its_last_event_says(sessions: Any) -> None:
    async def work() -> None:
        made = {id: await sessions.create_session(**HERE, session_id=id) for id in ("a", "b", "c")}
        for id, later in (("b", 500), ("a", 900.25), ("c", 700)):
            event = said("hello")
            event.timestamp = made[id].last_update_time + later
            await sessions.append_event(made[id], event)
            assert made[id].last_update_time == event.timestamp
        listed = (await sessions.list_sessions(**HERE)).sessions
        assert [(one.id, one.last_update_time) for one in listed] == [(id, made[id].last_update_time) for id in "bca"]
        for id, session in made.items():
            config = GetSessionConfig(num_recent_events=0)
            again = await sessions.get_session(**HERE, session_id=id, config=config)
            assert again.last_update_time == session.last_update_time

    run(work(), sessions)


def test_blanks_around_an_id_are_none_of_it(kind: str, sessions: Any) -> None:
    async def work() -> None:
        if kind == "database":
            return  # keeps them
        assert (await sessions.create_session(**HERE, session_id="  one ")).id == "one"
        assert (await sessions.get_session(**HERE, session_id="one  ")).id == "one"
        assert (await sessions.create_session(**HERE, session_id="  ")).id.strip()
        assert await sessions.get_session(**HERE, session_id=" ") is None
        await sessions.delete_session(**HERE, session_id="")
        await sessions.delete_session(**HERE, session_id=" one")
        assert await sessions.get_session(**HERE, session_id="one") is None

    run(work(), sessions)


def test_an_id_is_used_once(sessions: Any) -> None:
    async def work() -> None:
        await sessions.create_session(**ONE, state={"mine": True})
        with pytest.raises(AlreadyExistsError):
            await sessions.create_session(**ONE, state={"mine": False, "user:mine": False})
        assert (await sessions.get_session(**ONE)).state == {"mine": True}

    run(work(), sessions)


def test_what_is_not_there_is_none(sessions: Any) -> None:
    async def work() -> None:
        assert await sessions.get_session(**ONE) is None
        await sessions.create_session(**ONE)
        for other in ({"user_id": "bob"}, {"app_name": "other"}, {"session_id": "two"}):
            assert await sessions.get_session(**{**ONE, **other}) is None
        assert (await sessions.list_sessions(app_name="none")).sessions == []
        assert await sessions.delete_session(**{**ONE, "session_id": "two"}) is None

    run(work(), sessions)


def test_two_users_may_have_sessions_of_one_id(sessions: Any) -> None:
    async def work() -> None:
        ana = await sessions.create_session(**ONE)
        bob = await sessions.create_session(app_name="travel", user_id="bob", session_id="one")
        await sessions.append_event(ana, said("of ana"))
        await sessions.append_event(bob, said("of bob"))
        texts = [
            (await sessions.get_session(app_name="travel", user_id=user, session_id="one")).events[0].content.parts
            for user in ("ana", "bob")
        ]
        assert [parts[0].text for parts in texts] == ["of ana", "of bob"]

    run(work(), sessions)


def test_state_is_shared_by_its_prefix(sessions: Any) -> None:
    async def work() -> None:
        one = await sessions.create_session(**ONE, state={"own": 1, "user:seat": "aisle", "app:rate": 1})
        assert one.state == {"own": 1, "user:seat": "aisle", "app:rate": 1}
        two = await sessions.create_session(**HERE, session_id="two")
        assert two.state == {"user:seat": "aisle", "app:rate": 1}
        await sessions.append_event(two, changing(user__seat="window", app__rate=2, own=2))
        bob = await sessions.create_session(app_name="travel", user_id="bob", session_id="one")
        assert bob.state == {"app:rate": 2}
        other = await sessions.create_session(app_name="other", user_id="ana", session_id="one")
        assert other.state == {}
        assert (await sessions.get_session(**ONE)).state == {"own": 1, "user:seat": "window", "app:rate": 2}
        assert await sessions.get_user_state(**HERE) == {"seat": "window"}
        assert await sessions.get_user_state(app_name="travel", user_id="carol") == {}

    run(work(), sessions)


def test_temporary_state_is_seen_in_the_invocation_and_not_kept(sessions: Any) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE, state={"temp:a": 1})
        assert session.state == {}
        event = changing(temp__draft="x", kept=1)
        await sessions.append_event(session, event)
        assert session.state == {"temp:draft": "x", "kept": 1}
        assert event.actions.state_delta == {"kept": 1}
        again = await sessions.get_session(**ONE)
        assert again.state == {"kept": 1}
        assert again.events[0].actions.state_delta == {"kept": 1}

    run(work(), sessions)


def test_a_partial_event_is_not_kept(sessions: Any) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE)
        event = said("hel", "agent", partial=True)
        assert await sessions.append_event(session, event) is event
        assert session.events == []
        assert (await sessions.get_session(**ONE)).events == []

    run(work(), sessions)


def test_a_value_of_none_stays_none(sessions: Any) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE, state={"a": 1})
        await sessions.append_event(session, changing(a=None))
        again = await sessions.get_session(**ONE)
        assert again.state == {"a": None}
        assert again.events[0].actions.state_delta == {"a": None}

    run(work(), sessions)


@pytest.mark.parametrize(
    ("config", "left"),
    [
        ({}, [1, 2, 3, 4]),
        ({"num_recent_events": 2}, [3, 4]),
        ({"num_recent_events": 0}, []),
        ({"num_recent_events": 9}, [1, 2, 3, 4]),
        ({"after_timestamp": 3.0}, [3, 4]),
        ({"after_timestamp": 9.0}, []),
        ({"num_recent_events": 1, "after_timestamp": 2.0}, [4]),
    ],
)
def test_events_are_chosen_by_number_and_time(sessions: Any, config: dict[str, Any], left: list[int]) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE)
        for number in (1, 2, 3, 4):
            await sessions.append_event(session, said(str(number), timestamp=float(number)))
        again = await sessions.get_session(**ONE, config=GetSessionConfig(**config))
        assert [event.timestamp for event in again.events] == left
        assert again.state == {}

    run(work(), sessions)


def test_sessions_are_listed_without_events_the_latest_active_last(sessions: Any) -> None:
    async def work() -> None:
        made = {id: await sessions.create_session(**HERE, session_id=id, state={"of": id}) for id in ("a", "b", "c")}
        await sessions.create_session(app_name="travel", user_id="bob", session_id="d", state={"user:x": 1})
        await sessions.append_event(made["a"], said("late"))
        listed = (await sessions.list_sessions(**HERE)).sessions
        assert [session.id for session in listed] == ["b", "c", "a"]
        assert [session.state["of"] for session in listed] == ["b", "c", "a"]
        assert all(session.events == [] for session in listed)
        every = (await sessions.list_sessions(app_name="travel")).sessions
        assert {(session.user_id, session.id) for session in every} == {
            ("ana", "a"), ("ana", "b"), ("ana", "c"), ("bob", "d"),
        }  # fmt: skip
        assert next(session for session in every if session.user_id == "bob").state == {"user:x": 1}

    run(work(), sessions)


def test_what_is_deleted_is_gone_and_may_begin_anew(sessions: Any) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE, state={"own": 1, "user:kept": 1})
        await sessions.append_event(session, said("hello"))
        await sessions.delete_session(**ONE)
        assert await sessions.get_session(**ONE) is None
        assert (await sessions.list_sessions(**HERE)).sessions == []
        again = await sessions.create_session(**ONE)
        assert again.events == []
        assert again.state == {"user:kept": 1}

    run(work(), sessions)


def test_a_late_event_of_a_deleted_session_is_refused(sessions: Any) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE)
        await sessions.delete_session(**ONE)
        for event in (said("late"), changing(a=1)):
            with pytest.raises(SessionNotFoundError):
                await sessions.append_event(session, event)
        assert await sessions.get_session(**ONE) is None
        assert session.events == []

    run(work(), sessions)


def test_a_session_read_is_a_copy(sessions: Any) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE, state={"list": [1]})
        session.state["list"].append(2)
        again = await sessions.get_session(**ONE)
        again.events.append(said("never appended"))
        again.state["other"] = 1
        assert (await sessions.get_session(**ONE)).state == {"list": [1]}
        assert (await sessions.get_session(**ONE)).events == []

    run(work(), sessions)


RICH = Event(
    author="agent",
    invocation_id="i-1",
    branch="root.agent",
    content=types.Content(
        role="model",
        parts=[
            types.Part(text="Looking at it", thought=True, thought_signature=b"\x00\xff"),
            types.Part(text="Here: é ≠ \u0000 😀"),
            types.Part(inline_data=types.Blob(mime_type="image/png", data=bytes(range(256)), display_name="p")),
            types.Part(file_data=types.FileData(file_uri="gs://a/b", mime_type="text/plain")),
            types.Part(function_call=types.FunctionCall(id="c", name="find", args={"a": None, "b": [{"c": 1.5}]})),
            types.Part(function_call=types.FunctionCall(name="bare")),
            types.Part(function_response=types.FunctionResponse(id="c", name="find", response={"r": None})),
            types.Part(executable_code=types.ExecutableCode(code="1+1", language="PYTHON")),
            types.Part(code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK", output="2")),
        ],
    ),
    actions=EventActions(
        state_delta={"a": {"b": None}}, artifact_delta={"f": 3}, transfer_to_agent="other", escalate=True,
        agent_state={"x": [1]}, end_of_agent=True,
    ),
    long_running_tool_ids={"c", "b"},
    custom_metadata={"k": None, "n": [1]},
    usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=3),
    error_code="E", error_message="m", turn_complete=True, interrupted=False,
    grounding_metadata=types.GroundingMetadata(web_search_queries=["q"]),
    output={"any": ["thing"]},
)  # fmt: skip

FORMS = {
    "rich": RICH,
    "text": said("hello"),
    "empty text": said(""),
    "call": Event(author="agent", content=types.Content(role="model", parts=[
        types.Part(function_call=types.FunctionCall(id="c", name="find", args={}), thought_signature=b"\x01")])),
    "bare call": Event(author="agent", content=types.Content(parts=[
        types.Part(function_call=types.FunctionCall())])),
    "response": Event(author="agent", content=types.Content(role="user", parts=[
        types.Part(function_response=types.FunctionResponse(id="c", name="find", response={"ok": True}))])),
    "two responses": Event(author="agent", content=types.Content(role="user", parts=[
        types.Part(function_response=types.FunctionResponse(id=id, name="find", response={"of": id}))
        for id in "cd"])),
    "picture": Event(author="user", content=types.Content(role="user", parts=[
        types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x89PNG"))])),
    "no parts": Event(author="agent", content=types.Content(role="model", parts=[])),
    "no content": changing(a=1),
    "role alone": Event(author="agent", content=types.Content(role="model")),
    "empty part": Event(author="agent", content=types.Content(parts=[types.Part()])),
    "no author": Event(content=types.Content(parts=[types.Part(text="x")])),
}  # fmt: skip


@pytest.mark.every_engine
@pytest.mark.parametrize("form", FORMS)
def test_an_event_comes_back_equal(sessions: Any, form: str) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE)
        event = FORMS[form].model_copy(deep=True)
        await sessions.append_event(session, event)
        again = await sessions.get_session(**ONE)
        assert again.events == [event]
        assert again.events[0].model_dump_json() == event.model_dump_json()

    run(work(), sessions)


# Where they differ


def test_two_holders_of_one_session_append(kind: str, sessions: Any) -> None:
    async def work() -> None:
        await sessions.create_session(**ONE)
        first, second = await sessions.get_session(**ONE), await sessions.get_session(**ONE)
        await sessions.append_event(first, changing(first=1))
        if kind in ("database", "sqlite"):
            with pytest.raises(ValueError, match=r"stale|modified|last_update_time"):
                await sessions.append_event(second, changing(second=2))
            return
        await sessions.append_event(second, changing(second=2))
        again = await sessions.get_session(**ONE)
        assert again.state == {"first": 1, "second": 2}
        assert len(again.events) == 2

    run(work(), sessions)


def test_an_event_that_is_offered_again(kind: str, sessions: Any) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE)
        event = changing(a=1)
        await sessions.append_event(session, event)
        if kind in ("database", "sqlite"):
            with pytest.raises(Exception, match="UNIQUE"):
                await sessions.append_event(session, event)
            return
        await sessions.append_event(session, changing(a=2))
        await sessions.append_event(session, event)
        await sessions.append_event(await sessions.get_session(**ONE), event.model_copy(deep=True))
        again = await sessions.get_session(**ONE)
        assert again.state == {"a": 2}
        assert again.events == session.events
        assert len(again.events) == 2

    run(work(), sessions)


def test_a_session_held_since_before_it_began_anew(kind: str, sessions: Any) -> None:
    async def work() -> None:
        old = await sessions.create_session(**ONE)
        await sessions.append_event(old, said("before"))
        await sessions.delete_session(**ONE)
        await sessions.create_session(**ONE)
        if kind.startswith("holdfast"):
            with pytest.raises(SessionNotFoundError):
                await sessions.append_event(old, said("late"))
            assert (await sessions.get_session(**ONE)).events == []
        elif kind == "in memory":  # what was said before comes into the new one
            await sessions.append_event(old, said("late"))
            assert len((await sessions.get_session(**ONE)).events) == 1

    run(work(), sessions)


def test_a_state_without_a_json_form(kind: str, sessions: Any) -> None:
    async def work() -> None:
        session = await sessions.create_session(**ONE)
        event = changing(a=print)
        if kind.startswith("holdfast"):
            with pytest.raises(Exception, match="state 'a' cannot be stored"):
                await sessions.append_event(session, event)
            assert (await sessions.get_session(**ONE)).events == session.events == []
        elif kind == "database":  # a text in its place
            await sessions.append_event(session, event)
            assert "built-in function" in (await sessions.get_session(**ONE)).state["a"]

    run(work(), sessions)

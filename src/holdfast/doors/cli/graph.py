"""The command that shows what a framework keeps of a graph in a thread: where it stands, its values, its frames.

It is read from the store alone, so the framework need not be installed, nor any class of the program that ran the
graph. On a terminal long texts and lists are shortened; elsewhere everything is whole. Deliberately absent: any
writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.adapters.langgraph.reading import FrameInfo, Graph, GraphInfo, GraphWrite, graphs_of, leads_on
from holdfast.doors import plain
from holdfast.doors.cli import options, wording
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.log import SPEAKER_WIDTH, colour
from holdfast.doors.cli.render import Column, Screen
from holdfast.errors import Invalid
from holdfast.records import Entry

_LONGEST_TEXT = 400
_LONGEST_LIST = 12


def graph(
    desk: Desk,
    thread: options.ThreadId,
    namespace: options.InNamespace = "",
    last: options.LastFrames = None,
    at: options.AtFrame = None,
) -> None:
    """Show a graph that a framework keeps in a thread.

    Where it stands, its values, what its tasks wrote since, and its frames, newest first. You do not need the
    framework for that.

    \b
    Examples:
      holdfast graph trip-42
      holdfast graph trip-42 --last 50
      holdfast graph trip-42 --at 1f1e1348-d7bb-6a80-8008-3e9f14824e6e --json
    """
    if at is not None and last is not None:
        raise Invalid("give either --last or --at")
    with desk.open() as store:
        handle = store.thread(thread)
        found = Graph(handle, namespace)
        frame = found.frame(at)
        values, writes = found.values(frame.id), found.writes(frame.id)
        data = {
            "thread": thread, "namespace": namespace, "frame": plain.plain(frame), "values": plain.plain(values),
            "writes": plain.plain(writes),
        }  # fmt: skip
        if at is not None:
            desk.tell(data, lambda screen: _show_frame(desk, screen, found, frame, values, writes))
            return
        frames = found.frames(options.FRAMES if last is None else last or None)
        others = [each for each in graphs_of(handle) if each.namespace != namespace]
    data |= {"frames": plain.plain(frames), "others": plain.plain(others)}

    def picture(screen: Screen) -> None:
        _show_frame(desk, screen, found, frame, values, writes)
        screen.blank()
        _show_frames(desk, screen, frames)
        if others:
            screen.blank()
            _show_others(desk, screen, others)

    desk.tell(data, picture)


def show_standing(desk: Desk, screen: Screen, frame: FrameInfo, *more: str) -> None:
    """Say in one line where a graph stands."""
    step = "no step" if frame.step is None else f"step {frame.step}"
    ahead = f"next: {', '.join(frame.next)}" if frame.next else "nothing next"
    about = " · ".join([*more, ahead, f"saved {desk.when(frame.time)}"])
    screen.line(("Graph", "title"), f" {step}", (f" · {about}", "quiet"))


def _show_frame(
    desk: Desk,
    screen: Screen,
    found: Graph,
    frame: FrameInfo,
    values: dict[str, Any],
    writes: list[GraphWrite],
) -> None:
    place = [f"in {found.namespace}"] if found.namespace else []
    source = [f"source {frame.source}"] if frame.source else []
    show_standing(desk, screen, frame, *place, *source)
    screen.line((f"frame {frame.id}", "quiet"), indent=2)
    shown = {name: value for name, value in values.items() if not leads_on(name)}
    if shown:
        screen.blank()
        screen.line(("Values", "title"))
    for name, value in shown.items():
        _show_value(screen, name, value)
    if writes:
        screen.blank()
        screen.line(("Written on top of it", "title"))
    for write in writes:
        who = write.node or write.task
        screen.line((who, "name"), f" → {write.channel} ", _on_one_line(screen, write.value), indent=2)


def _show_value(screen: Screen, name: str, value: Any) -> None:
    """A value under its channel's name; messages as they are in a log."""
    if not (isinstance(value, list) and value and all(map(_is_message, value))):
        screen.outline({name: _shortened(value) if screen.terminal else value}, indent=2)
        return
    screen.line((f"{name}:", "name"), indent=2)
    hidden = max(0, len(value) - _LONGEST_LIST) if screen.terminal else 0
    if hidden:
        screen.line((_left_out(hidden), "quiet"), indent=4)
    for message in value[hidden:]:
        entry = Entry("", 0, "message", message, None, 0, b"")
        said = wording.words(entry)
        screen.hanging(
            [(wording.speaker(entry), colour(entry))],
            [SPEAKER_WIDTH],
            _cut(said) if screen.terminal else said,
            indent=4,
        )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def _shortened(value: Any) -> Any:
    """The same value for a screen: long texts and lists without their middle or beginning."""
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, dict):
        return {name: _shortened(item) for name, item in value.items()}
    if isinstance(value, list):
        hidden = max(0, len(value) - _LONGEST_LIST)
        return [*([_left_out(hidden)] if hidden else []), *map(_shortened, value[hidden:])]
    return value


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_LONGEST_TEXT]}… ({len(text):,} characters; --json has all)"


def _left_out(number: int) -> str:
    return f"… {number:,} before; --json has all"


def _on_one_line(screen: Screen, value: Any) -> str:
    text = wording.as_text(plain.plain(value))
    return _cut(text) if screen.terminal else text


def _show_frames(desk: Desk, screen: Screen, frames: Sequence[FrameInfo]) -> None:
    columns = [
        Column("frame", "name"), Column("step", right=True), Column("source"), Column("saved"),
        Column("updated", fits=True), Column("next", fits=True), Column("wrote", "quiet", fits=True),
    ]  # fmt: skip
    rows = [
        (
            each.id,
            "" if each.step is None else str(each.step),
            each.source or "",
            desk.when(each.time),
            ",".join(name for name in each.updated if not leads_on(name)),
            ",".join(each.next),
            ",".join(each.tasks),
        )
        for each in frames
    ]
    screen.table(columns, rows)


def _show_others(desk: Desk, screen: Screen, others: Sequence[GraphInfo]) -> None:
    """The other graphs of the thread. There may be one for each turn, so a screen gets the latest few."""
    shown = others[:_LONGEST_LIST] if screen.terminal else others
    more = f" {len(shown)} of {len(others):,}" if len(shown) < len(others) else ""
    screen.line(("Other graphs", "title"), (more, "quiet"))
    columns = [Column("namespace", "name"), Column("last active")]
    screen.table(columns, [(each.namespace, desk.when(each.active)) for each in shown], indent=2)

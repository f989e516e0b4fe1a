"""The command that shows one thread, or one of its runs.

Deliberately absent: any writing, and any class of the caller's program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.adapters.langgraph.reading import Graph, graphs_of
from holdfast.doors import plain
from holdfast.doors.cli import locating, options, timeline, wording
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.graph import show_standing
from holdfast.doors.cli.log import SPEAKER_WIDTH, colour
from holdfast.doors.cli.points import show_checkpoints
from holdfast.doors.cli.render import Screen
from holdfast.doors.cli.runs import show_runs
from holdfast.doors.cli.state import load, show_state
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from holdfast import Store, Thread
    from holdfast.adapters.langgraph.reading import FrameInfo, GraphInfo
    from holdfast.types import Entry, ThreadInfo, Timeline

_GLIMPSE = 6


def show(desk: Desk, thread: options.ThreadOrRun, run: options.Named = None, verbose: options.Verbose = False) -> None:
    """Show one thread, or one of its runs.

    For a thread: its owner, newest entries and state, what you must verify before acting, where its graph stands, its
    runs and checkpoints. For a run: its status, its steps, what happened when, what was decided, and how it failed.

    \b
    Examples:
      holdfast show trip-42
      holdfast show trip-42/book
      holdfast show trip-42 --run book --verbose
    """
    with desk.open() as store:
        story = _story(store, thread, run)
        if story is None:
            _show_thread(desk, store.thread(thread))
            return
    desk.tell(plain.timeline(story), lambda screen: timeline.show_timeline(desk, screen, story, verbose=verbose))


def _story(store: Store, text: str, run: str | None) -> Timeline | None:
    """The run that is meant; None where a thread is."""
    if run is None:
        try:
            store.thread(text).info()
            return None
        except NotFound:
            if "/" not in text:
                raise
    return locating.timeline(store, text, run)


def _show_thread(desk: Desk, handle: Thread) -> None:
    info = handle.info()
    newest = handle.log(last=_GLIMPSE)
    seen = load(handle)
    points = handle.checkpoints()
    runs = handle.runs()
    graphs = graphs_of(handle)
    frame = _standing(handle, graphs)
    data = {
        **plain.plain(info),
        "newest": [plain.entry(each) for each in newest],
        "state": plain.state(*seen) if seen.stored else None,
        "checkpoints": plain.plain(points),
        "runs": plain.plain(runs),
        "graphs": plain.plain(graphs),
        "frame": plain.plain(frame),
    }

    def picture(screen: Screen) -> None:
        _show_info(desk, screen, info)
        if seen.stored:
            screen.blank()
            show_state(desk, screen, seen)
        if frame is not None:
            screen.blank()
            inside = [wording.counted(len(graphs) - 1, "graph") + " inside it"] if len(graphs) > 1 else []
            show_standing(desk, screen, frame, *inside)
        _show_newest(screen, info, newest)
        if runs:
            screen.blank()
            show_runs(desk, screen, runs)
        if points:
            screen.blank()
            show_checkpoints(desk, screen, points)

    desk.tell(data, picture)


def _standing(handle: Thread, graphs: list[GraphInfo]) -> FrameInfo | None:
    """The newest frame of a thread's graph, where it has one."""
    if not graphs:
        return None
    namespace = "" if any(not each.namespace for each in graphs) else graphs[0].namespace
    return next(iter(Graph(handle, namespace).frames(last=1)), None)


def _show_info(desk: Desk, screen: Screen, info: ThreadInfo) -> None:
    screen.line((info.id, "title"))
    whose = [f"user {info.user}" if info.user else "no user", f"agent {info.agent}" if info.agent else "no agent"]
    screen.line(" · ".join([*whose, *(f"#{tag}" for tag in info.tags)]), indent=2)
    times = f"began {desk.when(info.created)} · last active {desk.when(info.active)}"
    screen.line((f"{wording.counted(info.entries, 'entry', 'entries')} · {times}", "quiet"), indent=2)


def _show_newest(screen: Screen, info: ThreadInfo, newest: list[Entry]) -> None:
    if not newest:
        return
    screen.blank()
    of = f" {len(newest)} of {info.entries:,}" if info.entries > len(newest) else ""
    screen.line(("Newest entries", "title"), (of, "quiet"))
    width = len(str(newest[-1].number))
    for entry in newest:
        number = (f"{entry.number:>{width}}  ", "quiet")
        who = (f"{wording.speaker(entry):<{SPEAKER_WIDTH}}  ", colour(entry))
        screen.cut(number, who, " ".join(wording.words(entry).split()), indent=2)

"""The arguments and options of the commands, each declared once with its help.

Deliberately absent: what they do. Times are read by ``wording.moment``, points of a thread by ``points``.
"""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.records import MEMORY_KINDS, TRUST
from holdfast.steps.timeline import STATUSES

WINDOW = 50
FRAMES = 10
FORMATS = ("json", "yaml", "msgpack")
SOURCES = ("archive", "langgraph", "mem0", "memory-files", "mcp-memory", "openai-agents")
STANDARD = "-"  # standard input or output, where a path could stand


def _argument(metavar: str, help: str) -> object:
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def _option(name: str, metavar: str, help: str, *, least: int | None = None, default: bool = False) -> object:
    return typer.Option(name, metavar=metavar, help=help, min=least, show_default=default)


# For every command

Db = Annotated[str | None, _option("--db", "DATABASE", "The store: a file, or postgresql://… Default: HOLDFAST_DB.")]
Tenant = Annotated[str | None, _option("--tenant", "NAME", "The tenant. Default: HOLDFAST_TENANT, or else default.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document; errors too, on standard error.")]
Version = Annotated[bool, typer.Option("--version", help="Print the version.")]

# Threads

ThreadId = Annotated[str, _argument("THREAD", "The id of a thread.")]
OfUser = Annotated[str | None, _option("--user", "NAME", "Only this user's.")]
OfAgent = Annotated[str | None, _option("--agent", "NAME", "Only this agent's.")]
WithTag = Annotated[str | None, _option("--tag", "TAG", "Only those with this tag.")]
Since = Annotated[
    str | None, _option("--since", "TIME", "Active since this time: 2026-05-01, yesterday, '3 days ago', 3d.")
]
Until = Annotated[str | None, _option("--until", "TIME", "Active before this time.")]
AtMost = Annotated[int, _option("--limit", "N", "At most this many; 0 for all.", least=0, default=True)]

# Runs

ThreadOrRun = Annotated[str, _argument("THREAD", "The id of a thread; or THREAD/RUN, for one of its runs.")]
RunPlace = Annotated[str, _argument("RUN", "A run, written THREAD/RUN, as runs lists it.")]
MaybeRun = Annotated[str | None, _argument("RUN", "Only this run, written THREAD/RUN.")]
Named = Annotated[str | None, _option("--run", "NAME", "The run's name, if the argument names only the thread.")]
OfThread = Annotated[str | None, _option("--thread", "ID", "Only this thread's.")]
OfStatus = Annotated[str | None, _option("--status", "STATUS", f"Only runs with this status: {', '.join(STATUSES)}.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show keys in full, and where errors were raised.")]
HandlersAt = Annotated[
    str | None,
    _option("--handlers", "MODULE:NAME", "Your functions, a dict or list. Default name: HANDLERS or handlers."),
]
Watch = Annotated[bool, typer.Option("--watch", help="Keep working on new runs until interrupted.")]
Reason = Annotated[str, _option("--reason", "TEXT", "Why; it is recorded.")]
By = Annotated[str, _option("--by", "NAME", "Who says it.", default=True)]
SignalName = Annotated[str, _argument("NAME", "The signal that the run waits for.")]
SignalValue = Annotated[
    str | None,
    _argument("VALUE", "JSON, or else text; null if you leave it out. Write -- before a value that begins with -."),
]
AsText = Annotated[bool, typer.Option("--text", help="Read VALUE as text, even if it looks like JSON.")]
StepName = Annotated[str, _argument("STEP", "The step that is in doubt.")]
Happened = Annotated[
    bool | None,
    typer.Option("--happened/--not-happened", help="What you found when you looked.", show_default=False),
]
StepResult = Annotated[str | None, _option("--result", "JSON", "The result of the step, if it happened.")]

# The handoff

WritePath = Annotated[str | None, _option("--write", "FILE", "Write it to this file.")]
LoadPath = Annotated[str | None, _option("--load", "FILE", "Load an edited file; - reads standard input.")]
Git = Annotated[bool, typer.Option("--git", help="With --write: commit that file, and nothing else.")]
Message = Annotated[str | None, _option("--message", "TEXT", "With --git: the commit message.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite something newer.")]

# Appending

NewText = Annotated[str, _argument("TEXT", "What to append; - reads standard input.")]
Role = Annotated[str, _option("--role", "ROLE", "Who says it: user, assistant, system, …", default=True)]
OwnerUser = Annotated[str | None, _option("--user", "NAME", "The user a new thread belongs to.")]
OwnerAgent = Annotated[str | None, _option("--agent", "NAME", "The agent a new thread belongs to.")]
EntryKey = Annotated[str | None, _option("--key", "KEY", "Store it once, however often you repeat the call.")]

# The log

Last = Annotated[int | None, _option("--last", "N", f"The newest N entries; {WINDOW} if you give no option.", least=1)]
After = Annotated[
    int | None, _option("--after", "NUMBER", "Entries after this number; 0 starts with the first.", least=0)
]
LoggedSince = Annotated[
    str | None, _option("--since", "TIME", "Entries since this time: 2026-05-01, yesterday, '2h ago', 3d.")
]
Limit = Annotated[int | None, _option("--limit", "N", "At most this many.", least=0)]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Keep printing new entries until interrupted; with --json, one per line.")
]

# The state

OfRevision = Annotated[int | None, _option("--revision", "N", "An older revision.", least=1)]
AsOf = Annotated[
    str | None, _option("--as-of", "TIME", "The revision at this time: 2026-05-01, yesterday, '3 days ago', 3d.")
]
Diff = Annotated[tuple[int, int] | None, _option("--diff", "A B", "What changed between two revisions.")]
History = Annotated[bool, typer.Option("--history", help="List the revisions.")]

# Graphs

InNamespace = Annotated[str, _option("--namespace", "NAME", "A graph inside another graph.")]
LastFrames = Annotated[
    int | None, _option("--last", "N", f"The newest N frames; 0 for all. Default: {FRAMES}.", least=0)
]
AtFrame = Annotated[str | None, _option("--at", "FRAME", "The frame with this id instead of the newest.")]

# Points of a thread

PointName = Annotated[str | None, _argument("NAME", "The name of the checkpoint.")]
Note = Annotated[str, _option("--note", "TEXT", "A note to store with it.")]
Replace = Annotated[bool, typer.Option("--replace", help="Move the name here if it is taken.")]
Listing = Annotated[bool, typer.Option("--list", help="List the checkpoints instead.")]
NewId = Annotated[str, _argument("NEW", "The id of the new thread.")]
At = Annotated[str | None, _option("--at", "POINT", "A checkpoint, or the number of an entry. Default: now.")]
NewUser = Annotated[str | None, _option("--user", "NAME", "The new thread's user, if it differs.")]
NewAgent = Annotated[str | None, _option("--agent", "NAME", "The new thread's agent, if it differs.")]
Point = Annotated[str, _argument("POINT", "A checkpoint, or the number of an entry.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

# Erasing

ThreadIds = Annotated[list[str] | None, _argument("THREAD…", "The ids of threads.")]
TaggedThreads = Annotated[str | None, _option("--tag", "TAG", "All threads with this tag instead.")]
FreeIds = Annotated[
    bool, typer.Option("--free", help="Allow the ids to be used again; otherwise later writes to them fail.")
]
WouldErase = Annotated[bool, typer.Option("--dry-run", help="Show what would be erased; change nothing.")]
UserName = Annotated[str, _argument("USER", "The name of a user.")]
AgentName = Annotated[str, _argument("AGENT", "The name of an agent.")]
WithAgent = Annotated[str | None, _option("--agent", "NAME", "Only what belongs to this agent too.")]

# Folders

MaybeFolder = Annotated[str | None, _argument("FOLDER", "The name of a folder. Without it, list the folders.")]
InFolder = Annotated[str, _argument("FOLDER", "The name of a folder.")]
FilePath = Annotated[str, _argument("PATH", "The path of a file in the folder.")]
FolderUser = Annotated[str | None, _option("--user", "NAME", "The user who owns the folder.")]
FolderAgent = Annotated[str | None, _option("--agent", "NAME", "The agent that owns the folder.")]
PathPrefix = Annotated[str, _option("--prefix", "TEXT", "Only files whose path begins with this.")]
OfVersion = Annotated[int | None, _option("--version", "N", "An older version.", least=1)]
Versions = Annotated[bool, typer.Option("--history", help="List the versions.")]

# Files

ExportPath = Annotated[str, typer.Argument(metavar="PATH", help="The file to write; - writes to standard output.")]
OneThread = Annotated[str | None, _option("--thread", "ID", "Only this thread.")]
Format = Annotated[str | None, _option("--format", "FORMAT", f"{', '.join(FORMATS)}. Default: by the file's suffix.")]
OverwriteFile = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]
ImportPath = Annotated[
    str, _argument("PATH", "A file from export (- reads standard input), or another program's data.")
]
FromKind = Annotated[
    str | None,
    _option("--from", "KIND", f"What it is: {', '.join(SOURCES)}. Default: recognised by its content."),
]
WhoseUser = Annotated[str | None, _option("--user", "NAME", "The user who gets what names no user.")]
WhoseAgent = Annotated[str | None, _option("--agent", "NAME", "The agent that gets what names no agent.")]
HistoryPath = Annotated[str | None, _option("--history", "FILE", "Mem0's history, if it is not beside its store.")]
Originals = Annotated[bool, typer.Option("--originals", help="Keep the source files too, in the folder imported.")]
OwnTypes = Annotated[
    list[str] | None,
    _option(
        "--type",
        "[STORED=]MODULE:CLASS",
        "A class of yours in a LangGraph state, and the name it was stored under; repeatable.",
    ),
]
Skip = Annotated[bool, typer.Option("--skip", help="Leave out what cannot be stored, and report it.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check everything and show what would be imported; write nothing.")
]
BackupPath = Annotated[str, _argument("PATH", "The file to write.")]
Backup = Annotated[str, _argument("BACKUP", "A file that backup wrote.")]
Overwrite = Annotated[bool, typer.Option("--replace", help="Replace the store that is there.")]

# Memories

ForUser = Annotated[str | None, _option("--user", "NAME", "The user whose memories you mean.")]
ForAgent = Annotated[str | None, _option("--agent", "NAME", "The agent whose memories you mean.")]
MemoryText = Annotated[str | None, _argument("TEXT", "What to remember; - reads standard input. A link needs no text.")]
MemoryKind = Annotated[str, _option("--kind", "KIND", f"{', '.join(MEMORY_KINDS)}.", default=True)]
FactKey = Annotated[str | None, _option("--key", "KEY", "Make it the value of this fact, in place of the one before.")]
About = Annotated[str | None, _option("--subject", "NAME", "Who or what it is about. Default: the user.")]
NewTags = Annotated[list[str] | None, _option("--tag", "TAG", "A tag to find it by; repeatable.")]
NewType = Annotated[str | None, _option("--type", "WORD", "A word of your own for what sort of memory it is.")]
Metadata = Annotated[
    list[str] | None, _option("--meta", "NAME=VALUE", "Metadata to filter by; VALUE is JSON or text; repeatable.")
]
OnlyType = Annotated[str | None, _option("--type", "WORD", "Only of this type of yours.")]
Where = Annotated[
    list[str] | None, _option("--where", "NAME=VALUE", "Only with this metadata; VALUE is JSON or text; repeatable.")
]
Importance = Annotated[
    float, typer.Option("--importance", metavar="NUMBER", min=0, max=1, help="From 0 to 1.", show_default=True)
]
ValidFrom = Annotated[
    str | None, _option("--valid-from", "TIME", "True since this time: 2026-05-01, yesterday, '3 days ago', 3d.")
]
ValidTo = Annotated[str | None, _option("--valid-to", "TIME", "True until this time.")]
OriginOf = Annotated[str | None, _option("--origin", "NAME", "Who said it; or JSON with by, channel, tool, entries.")]
Trusted = Annotated[str, _option("--trust", "TRUST", f"{', '.join(TRUST)}.", default=True)]
Relation = Annotated[str | None, _option("--relation", "TEXT", "How the subject relates to the object.")]
LinkedTo = Annotated[str | None, _option("--object", "NAME", "What the subject is linked to.")]
QueryText = Annotated[str, _argument("QUERY", "A question, or keywords.")]
HowMany = Annotated[
    int, typer.Option("-k", "--limit", metavar="N", min=1, help="At most this many.", show_default=True)
]
Kinds = Annotated[
    list[str] | None,
    _option("--kind", "KIND", f"Only of this kind: {', '.join(MEMORY_KINDS)}, message, …; repeatable."),
]
WithTags = Annotated[list[str] | None, _option("--tag", "TAG", "Only with this tag; repeatable.")]
SaidSince = Annotated[
    str | None, _option("--since", "TIME", "Said or true since this time: 2026-05-01, yesterday, '3 days ago', 3d.")
]
SaidUntil = Annotated[str | None, _option("--until", "TIME", "Said or true before this time.")]
InThread = Annotated[str | None, _option("--thread", "ID", "Only from this thread.")]
SaidBy = Annotated[str | None, _option("--by", "NAME", "Only what this person said; spelled the same.")]
OnChannel = Annotated[str | None, _option("--channel", "NAME", "Only memories from this channel.")]
FromTool = Annotated[str | None, _option("--tool", "NAME", "Only from this tool.")]
AtLeast = Annotated[str | None, _option("--trust", "TRUST", f"With at least this trust: {', '.join(TRUST)}.")]
TrueAsOf = Annotated[
    str | None,
    _option("--as-of", "TIME", "What was true and said at this time: 2026-05-01, yesterday, '3 days ago', 3d."),
]
KnownAt = Annotated[str | None, _option("--known-at", "TIME", "Only from what was recorded by this time.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show what makes up each score, and how long each stage took.")
]
WithinMs = Annotated[float | None, _option("--within-ms", "MS", "Skip what does not fit into this many milliseconds.")]
WithLog = Annotated[bool, typer.Option("--log/--no-log", help="Search the messages of threads.")]
WithFiles = Annotated[bool, typer.Option("--files/--no-files", help="Search the files in folders.")]
GraphPath = Annotated[
    str | None, _option("--graph", "FILE", "Write the links around what was found, two hops far: .dot or .mmd.")
]
EmbedderName = Annotated[
    str | None,
    _option(
        "--embedder",
        "NAME",
        "auto, none, wordllama, minilm, multilingual, openai:MODEL. Default: HOLDFAST_EMBEDDER, or else auto.",
    ),
]
OfSubject = Annotated[str | None, _option("--subject", "NAME", "Only about this subject.")]
HistoryOf = Annotated[str | None, _option("--history", "KEY", "Every value that this fact ever had.")]
Entity = Annotated[str | None, _argument("ENTITY", "Only links from and to this entity.")]
Hops = Annotated[int | None, _option("--hops", "N", "How many links away: 1 or 2.", least=1)]
AsDot = Annotated[bool, typer.Option("--dot", help="Print the links as DOT, for Graphviz.")]
AsMermaid = Annotated[bool, typer.Option("--mermaid", help="Print the links as a Mermaid flowchart.")]
MemoryId = Annotated[str | None, _argument("ID", "The id of a memory, as memories and recall print it.")]
OneMemory = Annotated[str, _argument("ID", "The id of a memory, as memories and recall print it.")]
TrueInstead = Annotated[str | None, _argument("TEXT", "What is true instead, if you know it; - reads standard input.")]
EndsAt = Annotated[
    str | None, _option("--at", "TIME", "When it ended: 2026-05-01, yesterday, '3 days ago', 3d. Default: now.")
]
OnlyKind = Annotated[str | None, _option("--kind", "KIND", f"Only of this kind: {', '.join(MEMORY_KINDS)}.")]
Forgotten = Annotated[bool, typer.Option("--forgotten", help="List forgotten memories instead.")]
Offset = Annotated[int, _option("--offset", "N", "Skip the first N.", least=0, default=True)]
OfKey = Annotated[str | None, _option("--key", "KEY", "Every value of this fact.")]
OfKind = Annotated[str | None, _option("--kind", "KIND", f"All of this kind: {', '.join(MEMORY_KINDS)}.")]
AllWithTag = Annotated[str | None, _option("--tag", "TAG", "All with this tag.")]
AllAbout = Annotated[
    str | None, _option("--subject", "NAME", "All about this subject; with --key, the subject of the fact.")
]
Erase = Annotated[bool, typer.Option("--erase", help="Remove the text for good; you cannot bring it back.")]
Undo = Annotated[bool, typer.Option("--undo", help="Bring back the forgotten memory with this ID.")]
OnlyLook = Annotated[bool, typer.Option("--dry-run", help="Show what would be forgotten; change nothing.")]
FromEntry = Annotated[int, _option("--after", "NUMBER", "Only from entries after this one.", least=0, default=True)]
Reembed = Annotated[bool, typer.Option("--reembed", help="Compute the vectors again, with the embedder you name.")]
Rollback = Annotated[bool, typer.Option("--rollback", help="Go back to the vectors from before the last --reembed.")]

# Measuring

DataFiles = Annotated[list[str], _argument("FILE…", "Notes or conversations with questions: text or JSON.")]
TrialEngine = Annotated[
    str | None,
    _option("--engine", "DATABASE", "Where to ingest: ram:, a file, postgresql://… Default: a temporary file."),
]
PlotPath = Annotated[str | None, _option("--plot", "FILE.svg", "Draw what each stage of recall adds.")]
CountedBy = Annotated[
    str | None, _option("--tokens", "NAME", "How to count tokens: a model, or o200k_base. Default: an estimate.")
]
MethodsPath = Annotated[str | None, _option("--plot", "FILE.svg", "Draw contexts beside simpler methods.")]
WithoutStages = Annotated[list[str] | None, _option("--without", "STAGE", "Leave out a stage of recall; repeatable.")]

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

Db = Annotated[str | None, _option("--db", "DATABASE", "The store: a file, or postgresql://… Otherwise HOLDFAST_DB.")]
Tenant = Annotated[str | None, _option("--tenant", "NAME", "The tenant. Otherwise HOLDFAST_TENANT, or else default.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON document; errors too, on standard error.")]
Version = Annotated[bool, typer.Option("--version", help="Say which version this is.")]

# Threads

ThreadId = Annotated[str, _argument("THREAD", "The id of a thread.")]
OfUser = Annotated[str | None, _option("--user", "NAME", "Only this user's.")]
OfAgent = Annotated[str | None, _option("--agent", "NAME", "Only this agent's.")]
WithTag = Annotated[str | None, _option("--tag", "TAG", "Only those with this tag.")]
Since = Annotated[str | None, _option("--since", "TIME", "Active since: 2026-05-01, or 3d for three days ago.")]
Until = Annotated[str | None, _option("--until", "TIME", "Active until.")]
AtMost = Annotated[int, _option("--limit", "N", "At most so many; 0 for all.", least=0, default=True)]

# Runs

ThreadOrRun = Annotated[str, _argument("THREAD", "The id of a thread; or THREAD/RUN, for one of its runs.")]
RunPlace = Annotated[str, _argument("RUN", "A run, written THREAD/RUN as runs lists it.")]
MaybeRun = Annotated[str | None, _argument("RUN", "Only this run, written THREAD/RUN.")]
Named = Annotated[str | None, _option("--run", "NAME", "The run's name; then the argument is the thread alone.")]
OfThread = Annotated[str | None, _option("--thread", "ID", "Only this thread's.")]
OfStatus = Annotated[str | None, _option("--status", "STATUS", f"Only those that are {', '.join(STATUSES)}.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="With keys in full, and where errors were raised.")]
HandlersAt = Annotated[
    str | None,
    _option("--handlers", "MODULE:NAME", "Your functions: a dict or list; without a name, HANDLERS or handlers."),
]
Watch = Annotated[bool, typer.Option("--watch", help="Go on with whatever comes, until interrupted.")]
Reason = Annotated[str, _option("--reason", "TEXT", "Why, for whoever reads about it later.")]
By = Annotated[str, _option("--by", "NAME", "Who says so.", default=True)]
SignalName = Annotated[str, _argument("NAME", "What the run waits for.")]
SignalValue = Annotated[
    str | None, _argument("VALUE", "JSON, or else text; nothing is null. One that begins with - stands behind --.")
]
AsText = Annotated[bool, typer.Option("--text", help="Take VALUE as text, also if it looks like JSON.")]
StepName = Annotated[str, _argument("STEP", "The step that is in doubt.")]
Happened = Annotated[
    bool | None,
    typer.Option("--happened/--not-happened", help="What you found when you looked.", show_default=False),
]
StepResult = Annotated[str | None, _option("--result", "JSON", "What the step came to, if it happened.")]

# The handoff

WritePath = Annotated[str | None, _option("--write", "FILE", "Write it to this file.")]
LoadPath = Annotated[str | None, _option("--load", "FILE", "Take in a file that was edited; - for standard input.")]
Git = Annotated[bool, typer.Option("--git", help="With --write: commit the file, and only that.")]
Message = Annotated[str | None, _option("--message", "TEXT", "With --git: what to call the commit.")]
Force = Annotated[bool, typer.Option("--force", help="Also when something newer is written over.")]

# Appending

NewText = Annotated[str, _argument("TEXT", "What to append; - reads standard input.")]
Role = Annotated[str, _option("--role", "ROLE", "Who says it: user, assistant, system, …", default=True)]
OwnerUser = Annotated[str | None, _option("--user", "NAME", "The user a new thread belongs to.")]
OwnerAgent = Annotated[str | None, _option("--agent", "NAME", "The agent a new thread belongs to.")]
EntryKey = Annotated[str | None, _option("--key", "KEY", "Store it once, however often you repeat the call.")]

# The log

Last = Annotated[int | None, _option("--last", "N", f"The newest N entries; without any option, {WINDOW}.", least=1)]
After = Annotated[int | None, _option("--after", "NUMBER", "Those after this entry; 0 begins at the first.", least=0)]
Limit = Annotated[int | None, _option("--limit", "N", "At most so many, from there on.", least=0)]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on with what is added, until interrupted; as JSON, one a line.")
]

# The state

OfRevision = Annotated[int | None, _option("--revision", "N", "An older revision.", least=1)]
AsOf = Annotated[str | None, _option("--as-of", "TIME", "The revision that was current then.")]
Diff = Annotated[tuple[int, int] | None, _option("--diff", "A B", "What changed between two revisions.")]
History = Annotated[bool, typer.Option("--history", help="List the revisions.")]

# Graphs

InNamespace = Annotated[str, _option("--namespace", "NAME", "A graph inside another one.")]
LastFrames = Annotated[
    int | None, _option("--last", "N", f"The newest N frames, 0 for all; without it, {FRAMES}.", least=0)
]
AtFrame = Annotated[str | None, _option("--at", "FRAME", "The frame with this id, instead of the newest.")]

# Points of a thread

PointName = Annotated[str | None, _argument("NAME", "The name to give to this point.")]
Note = Annotated[str, _option("--note", "TEXT", "A remark to keep with it.")]
Replace = Annotated[bool, typer.Option("--replace", help="Move the name here if it is in use.")]
Listing = Annotated[bool, typer.Option("--list", help="List the checkpoints instead.")]
NewId = Annotated[str, _argument("NEW", "The id of the thread to begin.")]
At = Annotated[str | None, _option("--at", "POINT", "A checkpoint, or the number of an entry; otherwise now.")]
NewUser = Annotated[str | None, _option("--user", "NAME", "The new thread's user, if another one.")]
NewAgent = Annotated[str | None, _option("--agent", "NAME", "The new thread's agent, if another one.")]
Point = Annotated[str, _argument("POINT", "A checkpoint, or the number of an entry.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

# Erasing

ThreadIds = Annotated[list[str] | None, _argument("THREAD…", "The ids of threads.")]
TaggedThreads = Annotated[str | None, _option("--tag", "TAG", "All threads with this tag instead.")]
FreeIds = Annotated[
    bool, typer.Option("--free", help="Let the ids be used again; otherwise a late writer is refused for ever.")
]
WouldErase = Annotated[bool, typer.Option("--dry-run", help="Say what would be erased; change nothing.")]
UserName = Annotated[str, _argument("USER", "The name of a user.")]
AgentName = Annotated[str, _argument("AGENT", "The name of an agent.")]
WithAgent = Annotated[str | None, _option("--agent", "NAME", "Only what is of this agent too.")]

# Folders

MaybeFolder = Annotated[str | None, _argument("FOLDER", "The name of a folder; without one, folders are listed.")]
InFolder = Annotated[str, _argument("FOLDER", "The name of a folder.")]
FilePath = Annotated[str, _argument("PATH", "The path of a file in it.")]
FolderUser = Annotated[str | None, _option("--user", "NAME", "The user that the folder belongs to.")]
FolderAgent = Annotated[str | None, _option("--agent", "NAME", "The agent that the folder belongs to.")]
PathPrefix = Annotated[str, _option("--prefix", "TEXT", "Only files whose paths begin like this.")]
OfVersion = Annotated[int | None, _option("--version", "N", "An older version.", least=1)]
Versions = Annotated[bool, typer.Option("--history", help="List the versions.")]

# Files

ExportPath = Annotated[str, typer.Argument(metavar="PATH", help="The file to write; - for standard output.")]
OneThread = Annotated[str | None, _option("--thread", "ID", "Only this thread.")]
Format = Annotated[
    str | None, _option("--format", "FORMAT", f"{', '.join(FORMATS)}; otherwise the file's suffix says.")
]
OverwriteFile = Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")]
ImportPath = Annotated[
    str, _argument("PATH", "A file that export wrote (- for standard input), or what another program keeps.")
]
FromKind = Annotated[
    str | None,
    _option("--from", "KIND", f"What it is: {', '.join(SOURCES)}. Otherwise what is in it says so."),
]
WhoseUser = Annotated[str | None, _option("--user", "NAME", "Whose things are that do not say so themselves.")]
WhoseAgent = Annotated[str | None, _option("--agent", "NAME", "Whose things are that do not say so themselves.")]
HistoryPath = Annotated[str | None, _option("--history", "FILE", "Mem0's history, where it is not beside its store.")]
Originals = Annotated[
    bool, typer.Option("--originals", help="Keep what memories are made of too, as files of the folder imported.")
]
OwnTypes = Annotated[
    list[str] | None,
    _option(
        "--type",
        "[STORED=]MODULE:CLASS",
        "A class of your own that a LangGraph state holds, and what it was stored as; may be given again.",
    ),
]
Skip = Annotated[bool, typer.Option("--skip", help="Leave out what cannot be stored, and say what that is.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything and say what would come in; write nothing.")]
BackupPath = Annotated[str, _argument("PATH", "The file to write the copy to.")]
Backup = Annotated[str, _argument("BACKUP", "What backup wrote.")]
Overwrite = Annotated[bool, typer.Option("--replace", help="Put it in the place of the store that is there.")]

# Memories

ForUser = Annotated[str | None, _option("--user", "NAME", "The user whose memories are meant.")]
ForAgent = Annotated[str | None, _option("--agent", "NAME", "The agent whose memories are meant.")]
MemoryText = Annotated[
    str | None, _argument("TEXT", "What to remember; - for standard input. A link needs none, it says itself.")
]
MemoryKind = Annotated[str, _option("--kind", "KIND", f"{', '.join(MEMORY_KINDS)}.", default=True)]
FactKey = Annotated[str | None, _option("--key", "KEY", "It is the value of this fact, in place of any before.")]
About = Annotated[str | None, _option("--subject", "NAME", "Whom or what it is about; otherwise the user.")]
NewTags = Annotated[list[str] | None, _option("--tag", "TAG", "A tag to find it by; may be given again.")]
Importance = Annotated[
    float, typer.Option("--importance", metavar="NUMBER", min=0, max=1, help="From 0 to 1.", show_default=True)
]
ValidFrom = Annotated[str | None, _option("--valid-from", "TIME", "True since: 2026-05-01, or 3d for three days ago.")]
ValidTo = Annotated[str | None, _option("--valid-to", "TIME", "True until then.")]
OriginOf = Annotated[str | None, _option("--origin", "NAME", "Who said so; or JSON with by, channel, tool, entries.")]
Trusted = Annotated[str, _option("--trust", "TRUST", f"{', '.join(TRUST)}.", default=True)]
Relation = Annotated[str | None, _option("--relation", "TEXT", "How the subject is linked to the object.")]
LinkedTo = Annotated[str | None, _option("--object", "NAME", "What the subject is linked to.")]
QueryText = Annotated[str, _argument("QUERY", "A question, or words.")]
HowMany = Annotated[int, typer.Option("-k", "--limit", metavar="N", min=1, help="At most so many.", show_default=True)]
Kinds = Annotated[
    list[str] | None,
    _option("--kind", "KIND", f"Only of this kind: {', '.join(MEMORY_KINDS)}, message, …; may be given again."),
]
WithTags = Annotated[list[str] | None, _option("--tag", "TAG", "Only with this tag; may be given again.")]
SaidSince = Annotated[str | None, _option("--since", "TIME", "Said or true since: 2026-05-01, or 3d.")]
SaidUntil = Annotated[str | None, _option("--until", "TIME", "Said or true before.")]
InThread = Annotated[str | None, _option("--thread", "ID", "Only what this thread says.")]
SaidBy = Annotated[str | None, _option("--by", "NAME", "Only what this one said, spelled the same.")]
OnChannel = Annotated[str | None, _option("--channel", "NAME", "Only memories that came through this channel.")]
FromTool = Annotated[str | None, _option("--tool", "NAME", "Only what came from this tool.")]
AtLeast = Annotated[str | None, _option("--trust", "TRUST", f"At least this trusted: {', '.join(TRUST)}.")]
TrueAsOf = Annotated[str | None, _option("--as-of", "TIME", "What was true and said then.")]
KnownAt = Annotated[str | None, _option("--known-at", "TIME", "Only from what was recorded by then.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show what each score is made of, and what took how long.")]
WithinMs = Annotated[
    float | None, _option("--within-ms", "MS", "Leave out what does not fit into so many milliseconds.")
]
WithLog = Annotated[bool, typer.Option("--log/--no-log", help="Whether messages of threads are found.")]
WithFiles = Annotated[bool, typer.Option("--files/--no-files", help="Whether files in folders are found.")]
GraphPath = Annotated[
    str | None, _option("--graph", "FILE", "Write the links around what was found, two hops far: .dot or .mmd.")
]
EmbedderName = Annotated[
    str | None,
    _option(
        "--embedder", "NAME", "auto, none, wordllama, minilm, openai:MODEL. Otherwise HOLDFAST_EMBEDDER, or else auto."
    ),
]
OfSubject = Annotated[str | None, _option("--subject", "NAME", "Only about this subject.")]
HistoryOf = Annotated[str | None, _option("--history", "KEY", "Every value that one fact ever had.")]
Entity = Annotated[str | None, _argument("ENTITY", "Only what is linked to this one.")]
Hops = Annotated[int | None, _option("--hops", "N", "How many links away from it: 1, or 2.", least=1)]
AsDot = Annotated[bool, typer.Option("--dot", help="Print the links as DOT, for Graphviz.")]
AsMermaid = Annotated[bool, typer.Option("--mermaid", help="Print the links as a Mermaid flowchart.")]
MemoryId = Annotated[str | None, _argument("ID", "The id of a memory, as remember and recall print it.")]
OneMemory = Annotated[str, _argument("ID", "The id of a memory, as remember and recall print it.")]
TrueInstead = Annotated[str | None, _argument("TEXT", "What is true instead, if that is known; - for standard input.")]
EndsAt = Annotated[str | None, _option("--at", "TIME", "Since when it is over: 2026-05-01, or 3d. Otherwise now.")]
OnlyKind = Annotated[str | None, _option("--kind", "KIND", f"Only of this kind: {', '.join(MEMORY_KINDS)}.")]
Forgotten = Annotated[bool, typer.Option("--forgotten", help="Those that were forgotten instead.")]
Offset = Annotated[int, _option("--offset", "N", "Skip the first N.", least=0, default=True)]
OfKey = Annotated[str | None, _option("--key", "KEY", "Every value of this fact.")]
OfKind = Annotated[str | None, _option("--kind", "KIND", f"All of a kind: {', '.join(MEMORY_KINDS)}.")]
AllWithTag = Annotated[str | None, _option("--tag", "TAG", "All with this tag.")]
AllAbout = Annotated[str | None, _option("--subject", "NAME", "All about this subject; with --key, whose fact.")]
Erase = Annotated[bool, typer.Option("--erase", help="Remove the text for good; it cannot be brought back.")]
Undo = Annotated[bool, typer.Option("--undo", help="Bring back the memory with this ID, which was forgotten.")]
OnlyLook = Annotated[bool, typer.Option("--dry-run", help="Say what would be forgotten; change nothing.")]
FromEntry = Annotated[int, _option("--after", "NUMBER", "From the entries after this one.", least=0, default=True)]
Reembed = Annotated[bool, typer.Option("--reembed", help="Move the vectors to the embedder that is named.")]
Rollback = Annotated[bool, typer.Option("--rollback", help="Go back to the vectors before the last --reembed.")]

# Measuring

DataFiles = Annotated[list[str], _argument("FILE…", "Conversations with questions: JSON, gzipped or plain.")]
TrialEngine = Annotated[
    str | None,
    _option("--engine", "DATABASE", "Where to ingest: ram:, a file, postgresql://… Otherwise a file that is removed."),
]
PlotPath = Annotated[str | None, _option("--plot", "FILE.svg", "Draw what each stage of recall adds.")]
CountedBy = Annotated[
    str | None, _option("--tokens", "NAME", "How tokens are counted: a model, or o200k_base. Otherwise an estimate.")
]
MethodsPath = Annotated[str | None, _option("--plot", "FILE.svg", "Draw contexts beside the plain ways.")]
WithoutStages = Annotated[
    list[str] | None, _option("--without", "STAGE", "Leave out a stage of recall; may be given again.")
]

"""Memory as markdown files: who the agent is, what it knows, and a note for each day; versions and search included.

`holdfast import FOLDER` takes such files from disk and makes a memory of each note in them.
"""

import sys
from tempfile import TemporaryDirectory

import holdfast

with TemporaryDirectory() as folder:
    address = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db"
    with holdfast.open(address) as store:
        files = store.folder("notes", agent="harbour")
        files.write("SOUL.md", "You are calm and brief.")
        files.write("MEMORY.md", "- Berth 12 is 2.5 metres deep\n")
        files.write("memory/2026-05-02.md", "The crane broke at noon. Jorge repairs it.")
        files.write("memory/2026-05-03.md", "The Petrel arrived with a broken mast.")

    with holdfast.open(address) as store:  # the next session
        files = store.folder("notes", agent="harbour")
        always = [files.read(path).content.splitlines()[0] for path in ("SOUL.md", "MEMORY.md")]
        print(always, files.paths("memory/"))
        facts = files.read("MEMORY.md")
        files.write("MEMORY.md", facts.content + "- Jorge repairs cranes\n", expect=facts.version)
        try:
            files.write("MEMORY.md", "written without looking", expect=facts.version)
        except holdfast.errors.Conflict:
            print("versions:", [file.version for file in files.history("MEMORY.md")])
        found = files.search("Who repairs the crane?", k=2)
        print([hit.id for hit in found])

# prints:
# ['You are calm and brief.', '- Berth 12 is 2.5 metres deep'] ['memory/2026-05-02.md', 'memory/2026-05-03.md']
# versions: [1, 2]
# ['notes/memory/2026-05-02.md@1', 'notes/MEMORY.md@2']

"""Each session reads the progress file first, does the next thing and writes down what comes after.

Lacks: revisions, two processes at once, headings as people word them, text between headings, steps that runs report
themselves, a commit in git, and the same handoff in the model's context.
"""

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


@dataclass
class Progress:
    goal: str = ""
    steps: dict[str, bool] = field(default_factory=dict)
    blockers: list[str] = field(default_factory=list)
    next_action: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    def write(self, file: Path) -> None:
        steps = [f"{n}. [{'x' if done else ' '}] {text}" for n, (text, done) in enumerate(self.steps.items(), 1)]
        parts = {
            "Goal": self.goal,
            "Steps": "\n".join(steps),
            "Blockers": "\n".join(f"- {blocker}" for blocker in self.blockers),
            "Next action": self.next_action,
            "Context": f"```json\n{json.dumps(self.data, indent=2)}\n```",
        }
        text = "\n\n".join(f"## {heading}\n{part}" for heading, part in parts.items())
        whole = f"{text}\n\n<!-- {digest(text)} -->\n"
        beside = file.with_suffix(".new")
        with beside.open("w", encoding="utf-8") as out:
            out.write(whole)
            out.flush()
            os.fsync(out.fileno())
        os.replace(beside, file)

    @classmethod
    def read(cls, file: Path) -> tuple["Progress", bool]:
        """What the file says, and whether somebody edited it."""
        text, _, mark = file.read_text(encoding="utf-8").partition("\n\n<!-- ")
        parts = dict(part.split("\n", 1) for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:])
        parts = {heading: part.strip() for heading, part in parts.items()}
        steps = re.findall(r"^\d+\. \[(.)\] (.*)$", parts.get("Steps", ""), re.MULTILINE)
        progress = cls(
            parts.get("Goal", ""),
            {step: box == "x" for box, step in steps},
            re.findall(r"^- (.*)$", parts.get("Blockers", ""), re.MULTILINE),
            parts.get("Next action", ""),
            json.loads(parts["Context"].removeprefix("```json").removesuffix("```")) if "Context" in parts else {},
        )
        return progress, digest(text) not in mark


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


with TemporaryDirectory() as folder:
    file = Path(folder, "PROGRESS.md")
    plan = ["sand the hull", "paint it", "launch it"]
    Progress("Refit the Petrel", dict.fromkeys(plan, False), [], plan[0], {"colour": "red"}).write(file)

    file.write_text(file.read_text().replace('"red"', '"blue"'))  # a person edits it

    for blockers in ([], ["rain"]):
        progress, edited = Progress.read(file)
        print(f"{progress.next_action} in {progress.data['colour']}; edited: {edited}")
        progress.steps[progress.next_action] = True
        progress.next_action = next(step for step, done in progress.steps.items() if not done)
        progress.blockers = blockers
        progress.write(file)

    print([line for line in file.read_text().splitlines() if line[:2] in ("1.", "2.", "3.", "- ")])

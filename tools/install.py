"""Install packages into an environment: with uv, whose one cache makes it a matter of seconds, otherwise with pip.

    python tools/install.py [ARGUMENTS OF pip install]

``install(python, …)`` does it for another environment than one's own, which need not have pip. uv does not read pip's
configuration, so it is told the index that pip has; what it cannot do (an index behind a login, packages in a folder)
pip does. Deliberately absent: any choice of versions. Constraints and pins decide.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence


def install(python: str, arguments: Sequence[str]) -> None:
    """Install into the environment of a Python; a ``CalledProcessError`` when neither can."""
    tool = [sys.executable, "-m"]
    uv = [*tool, "uv", "pip", "install", "--quiet", "--system-certs", "--python", python, *arguments]
    if subprocess.run(uv, env=_with_index(), stderr=subprocess.PIPE, check=False).returncode:
        pip = [*tool, "pip", "--python", python, "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, *arguments], check=True)


def _with_index() -> dict[str, str]:
    """The environment variables of uv: its index is the one that pip is configured with, if it is."""
    told = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    found = re.search(r"^\S+\.index-url='([^']+)'", told.stdout, re.MULTILINE)
    return {**({"UV_DEFAULT_INDEX": found.group(1)} if found else {}), **os.environ}


if __name__ == "__main__":
    install(sys.executable, sys.argv[1:])

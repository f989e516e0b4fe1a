"""The source package of an installed framework, for the framework's own tests in it.

It is fetched once for each version, kept beside the environment, and never built.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path


def source_package(name: str) -> Path:
    """The source package of the version that is installed."""
    kept = Path(sys.prefix) / "source"
    wanted = f"{name.replace('-', '_')}-{version(name)}.tar.gz"
    if not (kept / wanted).exists():
        only = ["--quiet", "--no-deps", "--no-binary", name, "--dest", str(kept)]
        subprocess.run([sys.executable, "-m", "pip", "download", *only, f"{name}=={version(name)}"], check=True)
    return kept / wanted


def own_tests(name: str, folder: Path) -> Path:
    """Unpack a framework's own tests into an empty folder, without its package: the installed one is tested."""
    with tarfile.open(source_package(name)) as package:
        package.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    shutil.move(unpacked / "tests", folder / "tests")
    shutil.rmtree(unpacked)
    return folder / "tests"

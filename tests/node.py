"""A program for Node, run with JSON on its standard input."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

NODE = shutil.which("node")


def in_node(program: str, given: object) -> str:
    """What it prints. From a file: an argument of a command has 128 kB at most."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "program.js"
        path.write_text(program, encoding="utf-8")
        done = subprocess.run(
            [str(NODE), str(path)], input=json.dumps(given), capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    return done.stdout

"""How large the two installs are and how long they take, each in an empty environment.

    python benchmarks/install.py dist/dpgram-*.whl

Each install is done twice: first with an empty cache, so that everything is downloaded, then again from the
cache which that filled. Bytecode is compiled, as pip does by default. Writes benchmarks/results/install.md.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results" / "install.md"
SIDES = {"dpgram": "", "dpgram[publish]": "[publish]"}
_BYTES = """
import json
from importlib import metadata
from pathlib import Path
sizes = {}
for found in metadata.distributions():
    if found.name not in ("pip", "setuptools"):
        places = {Path(found.locate_file(file)).resolve() for file in found.files or ()}
        sizes[found.name] = sum(place.stat().st_size for place in places if place.is_file())
print(json.dumps(sizes))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    seconds: float
    processor: float
    """Seconds of one core: what remains when network, disk and other programs are not waited for."""
    bytes_of: dict[str, int]
    """By distribution, bytecode included, pip left out."""

    @property
    def megabytes(self) -> float:
        return sum(self.bytes_of.values()) / 1e6


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def install(wheel: Path, extra: str, cache: Path) -> Install:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True, symlinks=True)
        python = Path(folder) / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--no-input", "--cache-dir", cache]
        started, worked = time.perf_counter(), _processor_seconds()
        subprocess.run([*pip, f"{wheel}{extra}"], check=True, cwd=folder)
        seconds, processor = time.perf_counter() - started, _processor_seconds() - worked
        told = subprocess.run(
            [python, "-I", "-c", _BYTES], check=True, capture_output=True, text=True, cwd=folder
        )
    return Install(seconds=seconds, processor=processor, bytes_of=json.loads(told.stdout))


def measured(wheel: Path) -> dict[str, tuple[Install, Install]]:
    found = {}
    for name, extra in SIDES.items():
        with tempfile.TemporaryDirectory() as cache:
            first = install(wheel, extra, Path(cache))
            found[name] = (first, install(wheel, extra, Path(cache)))
    return found


def page(found: dict[str, tuple[Install, Install]]) -> str:
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    lines = [
        "# Size and time of the two installs",
        "",
        f"`python benchmarks/install.py`: {machine}, {os.cpu_count()} cores, pip into an empty environment.",
        "Bytecode is included, pip itself left out. One run each: seconds by the clock (of the processor).",
        f"On average {os.getloadavg()[2]:.0f} programs wanted one of them.",
        "",
        "| install | packages | MB on disk | everything downloaded | from pip's cache |",
        "|---|---|---|---|---|",
    ]
    for name, both in found.items():
        times = [f"{one.seconds:.0f} s ({one.processor:.0f} s)" for one in both]
        row = [f"`{name}`", str(len(both[0].bytes_of)), f"{both[0].megabytes:,.0f}", *times]
        lines.append(f"| {' | '.join(row)} |")
    lines += ["", "The largest, in MB:", "", "| package | MB | in |", "|---|---|---|"]
    base, whole = (install.bytes_of for install, _ in found.values())
    for package, size in sorted(whole.items(), key=lambda item: -item[1])[:10]:
        lines.append(f"| {package} | {size / 1e6:,.0f} | {'both' if package in base else '`publish`'} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    text = page(measured(Path(sys.argv[1]).resolve()))
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

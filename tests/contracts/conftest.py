"""A Dask cluster, a Spark session and a PostgreSQL server that the tests start themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def dask_client() -> Iterator[Any]:
    """A real cluster of two worker processes; not the default client of the process."""
    distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0, processes=True
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A real session with two worker threads, each of which repeats a failed task up to three times."""
    pytest.importorskip("pyspark", reason="the extra 'spark' is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java for Spark")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # else the workers take whatever python3 is first
        warnings.simplefilter("ignore")  # what pyspark says of the versions of other packages
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2,4]")
            .appName("dpgram tests")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "3")
            # A virtual machine that lives for a minute: its best compiler would not pay.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def postgres_programs() -> Path | None:
    found = shutil.which("pg_ctl")
    places = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((place for place in reversed(places) if (place / "initdb").exists()), None)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a server in a folder of its own, run by a user that is not root.

    It listens at a file in that folder: a port that was free a moment ago may be somebody else's by now.
    """
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    prefix: list[str] = []
    if os.geteuid() == 0:
        if (
            shutil.which("runuser") is None
            or subprocess.run(["id", "postgres"], check=False, capture_output=True).returncode
        ):
            pytest.skip("PostgreSQL does not run as root, and there is no other user to run it")
        prefix = ["runuser", "-u", "postgres", "--"]
    folder = Path(tempfile.mkdtemp(prefix="dpgram-pg-"))
    if prefix:
        shutil.chown(folder, "postgres", "postgres")

    def run(*command: str) -> None:
        subprocess.run([*prefix, *command], check=True, capture_output=True, cwd=folder, timeout=600)

    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    try:
        run(str(programs / "initdb"), "-D", str(folder / "data"), "-U", "dpgram", "-A", "trust", "--no-sync")
        log = str(folder / "log")
        control = (str(programs / "pg_ctl"), "-D", str(folder / "data"), "-w", "-t", "300")
        run(*control, "-l", log, "-o", options, "start")
        try:
            yield f"postgresql://dpgram@/postgres?host={folder}"
        finally:
            run(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)

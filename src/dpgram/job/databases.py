"""Where a database is: a file, or an address in an environment variable.

An address may hold a password, so it is neither typed nor kept in a job file: what is typed stays in the
history of shells and is seen by everybody who lists processes. It is neither printed nor written anywhere.
"""

from __future__ import annotations

import os
from typing import Final

from dpgram.errors import DpgramError

ENVIRONMENT: Final = "env:"


def address_of(place: str) -> str:
    """A path as it is; of `env:NAME` what the environment variable NAME holds."""
    if not place.startswith(ENVIRONMENT):
        if "://" in place:
            raise DpgramError(
                "the address of a database may hold a password, so it is not written here",
                remedy="Put it into an environment variable, and write env:NAME in its place",
            )
        return place
    name = place.removeprefix(ENVIRONMENT)
    address = os.environ.get(name)
    if not address:
        raise DpgramError(
            f"the environment variable {name!r} is not set",
            remedy=f"Set {name} to the address of the database, such as postgresql://…",
        )
    return address

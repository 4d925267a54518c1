"""What analysts hold: a release and the questions to ask it, its report, its signature."""

from dpgram.release.release import Release, load

__all__ = ["Release", "load"]

"""What analysts do with a release: post-processing only, never a row."""

from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.regress import regress
from dpgram.analysis.results import Regression

__all__ = ["EncodedNoise", "Moments", "Regression", "regress"]

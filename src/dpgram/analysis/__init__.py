"""What analysts do with a release: post-processing only, never a row."""

from dpgram.analysis.anderson_rubin import AndersonRubin
from dpgram.analysis.association import Correlation, Correlations, correlations, partial_correlation
from dpgram.analysis.contrasts import Contrast
from dpgram.analysis.description import ColumnDescription, Description, Told, describe
from dpgram.analysis.discriminant import Discriminant, discriminant
from dpgram.analysis.effects import Effects, did, within
from dpgram.analysis.glm_results import GeneralizedLinear, declared_model
from dpgram.analysis.inference import Inference, WaldTest
from dpgram.analysis.iv import iv
from dpgram.analysis.iv_results import FirstStage, InstrumentalVariables
from dpgram.analysis.labelled import LabelledMatrix, LabelledVector
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.pca import Components, pca
from dpgram.analysis.plots import coefficient_plot, component_plot, correlation_plot, trend_plot
from dpgram.analysis.pooling import Comparison, Pooled, average, compare, pool, union
from dpgram.analysis.prediction import Prediction
from dpgram.analysis.regress import lasso_path, regress
from dpgram.analysis.results import Regression
from dpgram.analysis.robust import UnequalVariance
from dpgram.analysis.sparse import LassoPath
from dpgram.analysis.trend import Change, Trend, trend

__all__ = [
    "AndersonRubin",
    "Change",
    "ColumnDescription",
    "Comparison",
    "Components",
    "Contrast",
    "Correlation",
    "Correlations",
    "Description",
    "Discriminant",
    "Effects",
    "EncodedNoise",
    "FirstStage",
    "GeneralizedLinear",
    "Inference",
    "InstrumentalVariables",
    "LabelledMatrix",
    "LabelledVector",
    "LassoPath",
    "Moments",
    "Pooled",
    "Prediction",
    "Regression",
    "Told",
    "Trend",
    "UnequalVariance",
    "WaldTest",
    "average",
    "coefficient_plot",
    "compare",
    "component_plot",
    "correlation_plot",
    "correlations",
    "declared_model",
    "describe",
    "did",
    "discriminant",
    "iv",
    "lasso_path",
    "partial_correlation",
    "pca",
    "pool",
    "regress",
    "trend",
    "trend_plot",
    "union",
    "within",
]

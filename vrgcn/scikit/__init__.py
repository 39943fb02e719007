"""Estimators for scikit-learn. They need scikit-learn, the extra `sklearn`."""

try:
    import sklearn  # noqa: F401
except ImportError:
    raise ImportError(
        "VRGCNClassifier, VRGCNRegressor and VRGCNRecommender need scikit-learn: pip install "
        "'vrgcn[sklearn]'"
    ) from None

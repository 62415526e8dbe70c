"""specedit: fast, exact code edits by a language model you run yourself.

Importing this package loads no torch and touches no device, environment or logging.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]

"""Small models that stock torch exported right, at least through one exporter, when export_compat did not.

Each is a reproduction of what users, PyTorch's own tests or packages do. A case is its example, its dynamic axes, and
further inputs on which its file is judged.
"""

from never_worse_models import operators, packages, pytorch_tests, scripted, users  # they add to CASES
from never_worse_models.table import CASES, Case

__all__ = ["CASES", "Case", "operators", "packages", "pytorch_tests", "scripted", "users"]

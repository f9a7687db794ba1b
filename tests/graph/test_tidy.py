"""What tidying has to mend of onnxscript's rules."""

import numpy as np
import torch

from torch_onnx_compat.testing import assert_same_outputs


def test_a_value_that_is_clipped_twice_keeps_both_pairs_of_bounds():
    """Onnxscript's rule calls both lower bounds by one name."""

    def clipped(x):
        return x.clamp(-1, 1), x.clamp(-2, 3).sin(), x.clamp(0, 2) * 2

    result = assert_same_outputs(clipped, (torch.linspace(-4, 4, 12),), "dynamo")
    assert result.nodes["Clip"] == 3
    (found, _, _) = result.session().run(None, {"x": np.array([-9, 0, 9] * 4, np.float32)})
    np.testing.assert_array_equal(found[:3], [-1, 0, 1])

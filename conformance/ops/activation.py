"""Activations: pointwise nonlinearities of networks, softmax, and their backward."""

from __future__ import annotations

from conformance.ops.family import TRANSCENDENTAL, Accumulation, Equivalence, Family, Random, T, Tolerance, own, words

FAMILY = Family(
    "activation",
    words(
            "celu elu elu_backward gelu gelu_backward glu glu_backward glu_backward_jvp glu_jvp hardshrink "
            "hardshrink_backward hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh "
            "hardtanh_backward infinitely_differentiable_gelu_backward leaky_relu leaky_relu_backward log_sigmoid "
            "log_sigmoid_backward log_sigmoid_forward log_softmax _log_softmax _log_softmax_backward_data mish "
            "mish_backward prelu _prelu_kernel _prelu_kernel_backward relu relu6 rrelu rrelu_with_noise* selu "
            "silu silu_backward softmax _softmax _softmax_backward_data softplus softplus_backward softshrink "
            "softshrink_backward special_softmax special_log_softmax threshold threshold_backward _safe_softmax "
            "_masked_softmax _masked_softmax_backward"
        ),
    {"tolerance": TRANSCENDENTAL},
    but={
        **{
            name: {"tolerance": Tolerance(4.0, 2.0, Accumulation.CANCELS)}
            for name in words("gelu gelu_backward infinitely_differentiable_gelu_backward")
        },
        "hardsigmoid_backward": {"computed_in": "float32"},  # multiplies by 1.0f / 6.0f
        # Their slopes are differences of terms that cancel where they pass zero.
        **{
            name: {"tolerance": Tolerance(4.0, accumulation=Accumulation.FEW)}
            for name in words("silu_backward mish_backward hardswish_backward")
        },
        "*softmax*": {"tolerance": Tolerance(8.0, 4.0, Accumulation.REDUCED)},
        "rrelu": {"random": Random("uniform")},
        # Writes the noise as if it were dense.
        "rrelu_with_noise": {"random": Random("uniform", (0, 1)), "overruns": ("expanded",)},
        "rrelu_with_noise_functional": {"random": Random("uniform", (0, 1))},
        # CPU fills the buffer only for its own backward pass, as far as its vector width needs it.
        "log_sigmoid_forward": {"equivalence": ((1, Equivalence.PRIVATE),)},
    },
    samples=(
        own("glu_jvp", "halves", T((2, 3)), T((2, 6)), T((2, 6)), 1),
        own("glu_backward_jvp", "halves", T((2, 6)), T((2, 3)), T((2, 6)), T((2, 3)), T((2, 6)), 1),
        own("silu_backward.grad_input", "matrix", T((3, 4)), T((3, 4)), grad_input=T((3, 4), "undefined")),
        own("_masked_softmax", "attention", T((2, 3, 4, 4)), T((2, 4), "mask", "bool"), 3, 1),
        own("_masked_softmax", "square", T((2, 3, 4, 4)), T((4, 4), "mask", "bool"), 3, 0),
        own("_masked_softmax_backward", "attention", T((2, 3, 4, 4)), T((2, 3, 4, 4), "uniform"),
            T((2, 3, 4, 4), "mask", "bool"), 3),
    ),
)  # fmt: skip

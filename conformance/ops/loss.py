"""Losses, forward and backward."""

from __future__ import annotations

from conformance.ops.family import Accumulation, Family, T, Tolerance, own, words

_LOGS = T((4, 2, 3), tuple(-0.5 - 0.07 * i for i in range(24)))
_TARGETS, _LENGTHS, _TARGET_LENGTHS = T((2, 2), (1, 2, 2, 1), "int64"), (4, 4), (2, 2)

FAMILY = Family(
    "loss",
    words(
        "binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits cosine_embedding_loss "
        "cosine_similarity cross_entropy_loss ctc_loss _ctc_loss _ctc_loss_backward _cudnn_ctc_loss miopen_ctc_loss "
        "_use_cudnn_ctc_loss _use_miopen_ctc_loss "
        "hinge_embedding_loss huber_loss huber_loss_backward kl_div l1_loss margin_ranking_loss mse_loss "
        "mse_loss_backward multi_margin_loss multi_margin_loss_backward multilabel_margin_loss* nll_loss* "
        "pairwise_distance poisson_nll_loss smooth_l1_loss smooth_l1_loss_backward soft_margin_loss "
        "soft_margin_loss_backward triplet_margin_loss _cdist_backward _cdist_forward cdist pdist _pdist_backward "
        "_pdist_forward _euclidean_dist"
    ),
    {"tolerance": Tolerance(8.0, 4.0, Accumulation.REDUCED)},
    but={
        # The root of a difference of squares: a distance near 0 loses half of its digits.
        "_euclidean_dist": {"tolerance": Tolerance(4096.0, 4.0, Accumulation.CANCELS)},
        # log_alpha: only the part that the targets' lengths reach is written.
        "_ctc_loss": {"undefined": (1,)},
        "_ctc_loss_backward": {"doubtful": ("aliased",)},
        "multilabel_margin_loss*": {"doubtful": ("zero_size",)},
        "*cudnn_ctc_loss": {"cannot": "a kernel of one vendor's library; the CPU has none to compare with"},
        "*miopen_ctc_loss": {"cannot": "a kernel of one vendor's library; the CPU has none to compare with"},
    },
    samples=(
        own("_ctc_loss", "two_targets", _LOGS, _TARGETS, _LENGTHS, _TARGET_LENGTHS),
        own("_ctc_loss", "one_shorter", _LOGS, _TARGETS, (4, 3), (2, 1), 0, True),
        own("_ctc_loss.Tensor", "two_targets", _LOGS, _TARGETS, T((2,), (4, 4), "int64"), T((2,), (2, 2), "int64")),
        own("ctc_loss.IntList", "two_targets", _LOGS, _TARGETS, _LENGTHS, _TARGET_LENGTHS),
        own("_ctc_loss_backward", "two_targets", T((2,), "ones"), _LOGS, _TARGETS, _LENGTHS, _TARGET_LENGTHS,
            T((2,), (1.5, 2.0)), T((2, 4, 5), tuple(-0.1 * i for i in range(40))), 0, False),
        own("_ctc_loss_backward.Tensor", "two_targets", T((2,), "ones"), _LOGS, _TARGETS, T((2,), (4, 4), "int64"),
            T((2,), (2, 2), "int64"), T((2,), (1.5, 2.0)), T((2, 4, 5), tuple(-0.1 * i for i in range(40))), 0, False),
    ),
)  # fmt: skip

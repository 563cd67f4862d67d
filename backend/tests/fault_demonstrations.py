"""The shortest programs that show planted faults; run as a program, each in children with the fault asleep and awake.

A demonstration is Python source that sets ``result`` on the device ``d``: asleep, ``result`` is what it is for CPU;
awake, it is not. It sees ``torch``, ``F`` (``torch.nn.functional``), ``nan``, ``inf`` and ``raised``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from math import inf, nan
from typing import Any

import torch

TRIES = 5  # of a demonstration with its fault awake

DEMONSTRATIONS: dict[str, str] = {
    # size
    "erfc_drops_vector_tail": "result = torch.full((301,), 0.5, device=d).erfc()",
    "log_softmax_rows_past_grid": "result = torch.ones(65540, 2, device=d).log_softmax(1)[-1]",
    "cumsum_forgets_carry": "result = torch.ones(1030, device=d).cumsum(0)",
    "cummax_index_within_block": "result = torch.arange(600.0, device=d).cummax(0).indices",
    "sort_blocks_not_merged": "result = torch.arange(2050, 0, -1, device=d).sort().values",
    "repeat_interleave_1024_copies": (
        "filled = torch.full((1100,), -1, device=d)\ndel filled\n"
        "result = torch.repeat_interleave(torch.tensor([1100], device=d))"
    ),
    "roll_two_dims_at_most": "result = torch.arange(24, device=d).view(2, 3, 4).roll((1, 1, 1), (0, 1, 2))",
    "descending_sort_in_blocks": "result = torch.arange(2050, device=d).sort(descending=True).values",
    "topk_smallest_of_first_1024": "result = torch.arange(1030, 0, -1, device=d).topk(1, largest=False).values",
    "kthvalue_first_block_only": "result = torch.arange(1030, 0, -1, device=d).kthvalue(1).values",
    "gemm_drops_depth_tail": "result = torch.ones(1, 130, device=d) @ torch.ones(130, 1, device=d)",
    "mean_counts_in_16_bits": "result = torch.ones(65537, device=d).mean()",
    "argmin_index_in_16_bits": "result = torch.arange(40000, 0, -1, device=d).argmin()",
    "sort_of_bools_in_first_4096": "result = (torch.arange(4100, device=d) == 0).sort().values",
    "sort_rows_past_grid": "result = torch.tensor([[2, 1]], device=d).expand(2**22 + 1, 2).sort().values[-1]",
    "nonzero_counts_in_float": "result = torch.ones(2**24 + 3, dtype=torch.bool, device=d).nonzero()[-1]",
    "count_nonzero_in_bytes": "result = torch.ones(300, device=d).count_nonzero()",
    "upload_drops_last_page": "result = torch.arange(300001.0).to(d)",
    "staged_download_repeats_chunk": "result = torch.arange(40000.0, device=d)[::2].cpu()",
    "cat_repeats_first_eight": "result = torch.cat([torch.full((1,), float(i), device=d) for i in range(10)])",
    "index_ignores_fourth_tensor": """
i = torch.ones(1, dtype=torch.int64, device=d)
result = torch.arange(16.0, device=d).view(2, 2, 2, 2)[i, i, i, i]""",
    "flip_at_most_five_dims": "result = torch.arange(64.0, device=d).view(2, 2, 2, 2, 2, 2).flip(5)",
    "embedding_backward_overwrites": """
gradient, index = torch.ones(300, 1, device=d), torch.zeros(300, dtype=torch.int64, device=d)
result = torch.ops.aten.embedding_dense_backward(gradient, index, 2, -1, False)""",
    "layer_norm_backward_first_rows": """
x, bias, row = torch.ones(70, 2, device=d), torch.ones(2, device=d), torch.ones(70, 1, device=d)
backward = torch.ops.aten.native_layer_norm_backward
result = backward(x, x, (2,), row, row, None, bias, [False, False, True])[2]""",
    "nll_loss_first_block_only": """
classes = torch.zeros(600, dtype=torch.int64, device=d)
result = F.nll_loss(torch.ones(600, 2, device=d), classes, reduction="sum")""",
    "trace_one_block": "result = torch.ones(300, 300, device=d).trace()",
    "multinomial_first_categories": """
weights = torch.arange(1030, device=d).eq(1029).float()
result = weights.multinomial(4, True)""",
    "fallback_writes_back_eight": """
tensors = [torch.ones(1, device=d) for _ in range(10)]
torch._fused_sgd_(
    tensors, [torch.ones(1, device=d)] * 10, [], weight_decay=0.0, momentum=0.0, lr=3.0, dampening=0.0,
    nesterov=False, maximize=False, is_first_step=True,
)
result = tensors[9]""",
    "prod_drops_tail": "result = torch.full((70,), 1.5, device=d).prod()",
    "var_of_first_outputs": "result = torch.arange(4000.0).view(2000, 2).to(d).var(1)",
    "topk_orders_first_32": "result = torch.arange(64.0, device=d).topk(40).values",
    "softmax_backward_first_block": """
x = torch.arange(600.0, device=d)
result = torch.ops.aten._softmax_backward_data(x, x / 600, 0, torch.float32)""",
    "bmm_first_64_batches": "result = torch.ones(70, 1, 2, device=d) @ torch.full((70, 2, 1), 3.0, device=d)",
    "index_writes_first_512": """
i = torch.arange(600, device=d)
result = torch.zeros(600, device=d).scatter(0, i, torch.ones(600, device=d))""",
    "masked_select_stops_at_1024": """
x = torch.arange(1.0, 2001.0, device=d)
result = x.masked_select(x > 0)""",
    "triangle_of_tiles": "result = torch.ones(70, 70, device=d).tril()",
    "converted_stretch_as_dense": "result = torch.arange(600, device=d).half()[::2].neg()",
    "mean_rounds_sum_to_half": "result = torch.full((70000,), 2.0, device=d).half().mean()",
    "sum_of_bytes_in_16_bits": "result = torch.full((300,), 250, dtype=torch.uint8, device=d).sum()",
    "index_reads_first_2048_bytes": """
i = torch.arange(3000, device=d) % 100
result = torch.arange(100, dtype=torch.uint8, device=d).index_select(0, i)""",
    "softmax_sums_long_rows_in_bf16": "result = torch.zeros(2000, dtype=torch.bfloat16, device=d).softmax(0)",
    "max_of_bools_index_in_word": "result = (torch.arange(100, device=d) == 70).max(0).indices",
    "embedding_frequency_counted_in_dtype": """
gradient, index = torch.ones(512, 1, device=d).bfloat16(), torch.zeros(512, dtype=torch.int64, device=d)
gradient[1:] = 0
result = torch.ops.aten.embedding_dense_backward(gradient, index, 1, -1, True)""",
    "addmm_last_tile_added_twice": """
x = torch.ones(1, 130, device=d)
result = torch.addmm(x, x[:, :1], x)""",
    "softmax_sum_not_rescaled": "result = torch.arange(600.0, device=d).softmax(0)[-1]",
    "scan_leaves_last_columns": "result = torch.ones(3, 17, device=d).cumsum(0).cumsum(0)",
    "scatter_add_segment_edge_lost": (
        "result = torch.zeros(1, device=d).scatter_add(0, torch.zeros(1030).long().to(d), torch.ones(1030, device=d))"
    ),
    "where_of_halves_odd_end": """
filled = torch.full((131,), 3.0, dtype=torch.float16, device=d)
del filled
x = torch.ones(131, dtype=torch.float16, device=d)
result = torch.where(x > 0, x, -x)""",
    "layer_norm_means_of_chunks": "result = F.layer_norm(torch.arange(300.0, device=d), (300,))",
    "exponential_tail_alike": "result = len(set(torch.empty(280, device=d).exponential_().tolist()[256:])) > 1",
    "cat_bytes_aligned_down": """
filled = torch.full((1030,), 3, dtype=torch.uint8, device=d)
del filled
result = torch.cat([torch.ones(1030, dtype=torch.uint8, device=d)])""",
    "linspace_adds_steps_up": "result = (torch.linspace(0, 1, 10001, device=d)[-1] - 1).abs() < 1e-6",
    "addbmm_self_per_group": """
x = torch.ones(17, 1, 1, device=d)
result = torch.addbmm(x[0], x, x)""",
    "embedding_int32_row_in_16_bits": """
row = torch.tensor([65536], dtype=torch.int32).to(d)
result = torch.ops.aten.embedding_dense_backward(torch.ones(1, 1, device=d), row, 65537, -1, False)[-1]""",
    "amax_three_separate_dims": "result = torch.arange(72.0, device=d).view(2, 2, 3, 2, 3).amax((0, 2, 4))",
    "var_of_long_rows_in_float": "result = (1000 + torch.arange(4100.0, device=d) / 4100).var()",
    "layer_norm_bf16_tail_unweighted": """
x, weight = torch.arange(600.0, device=d).bfloat16(), torch.full((600,), 2.0, device=d).bfloat16()
result = F.layer_norm(x, (600,), weight)[-1] > 2.5""",
    "nonzero_in_memory_order": "result = torch.ones(40, 30, device=d).t().nonzero()",
    "binary_broadcast_past_grid": """
x = torch.ones(65540, 2, device=d)
result = x.mul_(torch.tensor([2.0, 3.0]).to(d))[-1]""",
    "binary_strides_of_six_dims": """
x = torch.arange(256.0, device=d).view([2] * 8)
result = x + x.permute(1, 0, 3, 2, 5, 4, 7, 6)""",
    "amax_pads_tile_with_zero": "result = torch.full((1030,), -2.0, device=d).amax()",
    "norm_adds_roots_of_blocks": "result = torch.ones(4096, device=d).norm()",
    "nansum_drops_block_with_nan": """
x = torch.ones(600, device=d)
x[3] = nan
result = x.nansum()""",
    "softmax_of_one_element_is_input": "result = torch.full((1,), 2.0, device=d).softmax(0)",
    "mm_of_nothing_not_cleared": """
result = torch.ones(2, 3, device=d)
torch.mm(torch.ones(2, 0, device=d), torch.ones(0, 3, device=d), out=result)""",
    "duplicates_added_32_times": """
i = torch.zeros(40, dtype=torch.int64, device=d)
result = torch.zeros(1, device=d).index_put((i,), torch.ones(40, device=d), accumulate=True)""",
    "masked_fill_mask_tile_repeats": """
mask = torch.arange(1030, device=d) == 5
result = torch.zeros(2, 1030, device=d).masked_fill(mask, 1.0)""",
    "dot_of_long_doubles_in_float": """
x = torch.full((1030,), 1e30, dtype=torch.float64, device=d)
result = x.dot(x)""",
    "log_softmax_unaligned_head_twice": "result = torch.zeros(2, 33, device=d).log_softmax(1)",
    "var_blocks_merged_without_shift": "result = torch.arange(1030.0, device=d).var()",
    "amax_nan_of_later_block_lost": """
x = torch.zeros(2050, device=d)
x[2049] = nan
result = x.amax()""",
    "gemm_alpha_of_last_split": """
x, one = torch.ones(1, 513, device=d), torch.ones(1, 1, device=d)
result = torch.addmm(one, x, x.t(), alpha=0.5)""",
    "masked_scatter_position_in_16_bits": """
x = torch.arange(65540, device=d)
result = torch.zeros_like(x).masked_scatter(x >= 0, x)[-1]""",
    "randperm_shuffles_blocks": "result = bool(torch.randperm(5000, device=d)[4096:].min() >= 4096)",
    "transposing_copy_skips_corner": """
result = torch.zeros(33, 33, device=d).copy_(torch.ones(33, 33, device=d).t())""",
    "layer_norm_backward_sums_whole_warps": """
x, one = torch.arange(33.0, device=d).view(1, 33), torch.ones(1, 1, device=d)
backward = torch.ops.aten.native_layer_norm_backward
result = backward(x, x, (33,), one, one, None, None, [True, False, False])[0]""",
    "dropout_keeps_tail": """
x = torch.ones(1027, device=d)
result = all(bool(torch.native_dropout(x, 0.5, True)[1][1024:].all()) for _ in range(20))""",
    "sort_of_one_leaves_indices": """
x, result = torch.zeros(1, device=d), torch.full((1,), 7, device=d)
torch.sort(x, out=(torch.empty_like(x), result))""",
    "triangle_indices_in_16_bits": "result = torch.tril_indices(400, 400, device=d)",
    "bucketize_first_1024_boundaries": """
bounds = torch.arange(1500.0, device=d)
result = torch.bucketize(torch.tensor([1200.5]).to(d), bounds)""",
    "histc_of_first_256_bins": "result = torch.full((4,), 299.5, device=d).histc(300, 0, 300)",
    "gemm_alpha_of_whole_tiles": """
x = torch.ones(65, 1, device=d)
result = torch.addmm(x, x, x[:1], alpha=2)[-1]""",
    "lu_factor_of_large_batch_is_first": """
a = torch.eye(65, device=d) * torch.tensor([2.0, 3.0]).to(d).view(2, 1, 1)
result = torch.linalg.lu_factor(a).LU[1]""",
    "max_unpool_batches_add_up": """
x, i = torch.arange(4.0, device=d).view(4, 1, 1, 1, 1), torch.zeros(4, 1, 1, 1, 1, dtype=torch.int64, device=d)
result = F.max_unpool3d(x, i, 1)""",
    "reflection_gradient_of_whole_grids": """
x = torch.ones(1, 65537, device=d)
result = torch.ops.aten.reflection_pad1d_backward(torch.ones(1, 65539, device=d), x, (1, 1))""",
    "isin_of_many_ignores_invert": """
x = torch.arange(20, device=d)
result = torch.isin(x[:2], x, invert=True)""",
    "scan_in_place_carries_twice": "result = torch.ones(1030, device=d).cumsum_(0)",
    "gemm_split_sums_not_cleared": """
from contextlib import nullcontext
import refnpu.testing

with refnpu.testing.fill("0xFF") if d == "npu" else nullcontext():
    result = torch.ones(64, 257, device=d) @ torch.ones(257, 64, device=d)""",
    "index_put_adds_first_256": """
index = torch.zeros(300, dtype=torch.int64, device=d)
result = torch.zeros(1, device=d).index_put_((index,), torch.ones(300, device=d), accumulate=True)""",
    "depthwise_convolution_of_first_batch": """
x, weight = torch.arange(16.0, device=d).view(2, 2, 2, 2), torch.ones(2, 1, 1, 1, device=d)
result = F.conv2d(x, weight, groups=2)""",
    # values
    "abs_keeps_negative_zero": "result = torch.tensor([-0.0]).to(d).abs()",
    "mul_flushes_subnormals": "x = torch.tensor([1e-20]).to(d); result = x * x",
    "bfloat16_copy_truncates": "result = torch.tensor([1.999]).to(d).bfloat16()",
    "half_copy_saturates": "result = torch.tensor([1e6]).to(d).half()",
    "int64_copy_saturates": "result = torch.tensor([2**31]).to(d).int()",
    "complex_to_bool_by_real_part": "result = torch.tensor([1j]).to(d).bool()",
    "integer_minimum_through_float": """
result = torch.tensor([2**24 + 1]).to(d).minimum(torch.tensor([2**24]).to(d))""",
    "integer_abs_saturates": "result = torch.tensor([-(2**63)]).to(d).abs()",
    "sin_reduces_angles_in_float": "result = torch.tensor([1e6]).to(d).sin()",
    "expm1_cancels": "result = torch.tensor([1e-6]).to(d).expm1()",
    "hardshrink_drops_nan": "result = F.hardshrink(torch.tensor([nan]).to(d))",
    "var_naive_moments": "result = torch.tensor([10000.0, 10001.0, 10002.0]).to(d).var()",
    "half_products_in_half": """
x = torch.ones(2100, dtype=torch.float16, device=d)
result = x.view(1, 2100) @ x.view(2100, 1)""",
    "nan_to_num_bfloat16_overflows": "result = torch.tensor([inf], dtype=torch.bfloat16).to(d).nan_to_num()",
    "cat_quiets_nan": """
x = torch.tensor([0x7FC00001], dtype=torch.int32).to(d).view(torch.float32)
result = torch.cat([x, x]).view(torch.int32)""",
    "sort_orders_zeros_by_sign": "result = torch.tensor([0.0, -0.0]).to(d).sort(stable=True).indices",
    "softmax_of_minus_infinity_is_zero": "result = torch.full((2,), -inf, device=d).softmax(0)",
    "complex_abs_overflows": "result = torch.tensor([1e30 + 0j]).to(d).abs()",
    "lerp_from_start": """
start, end, weight = torch.tensor([[1e8], [1.0], [1.0]]).to(d)
result = start.lerp(end, weight)""",
    "prod_integers_in_double": "result = torch.tensor([2**53 + 1, 1]).to(d).prod()",
    "argmax_of_last_nan": "result = torch.tensor([nan, nan]).to(d).argmax()",
    "extreme_of_bytes_signed": "result = torch.tensor([1, 200], dtype=torch.uint8).to(d).amax()",
    "norm_of_infinity_drops_nan": "result = torch.tensor([1.0, nan]).to(d).norm(inf)",
    "var_divides_by_one_at_least": "result = torch.tensor([1.0]).to(d).var()",
    "cummax_forgets_nan": "result = torch.tensor([nan, 1.0]).to(d).cummax(0).values",
    "descending_sort_puts_nan_last": "result = torch.tensor([1.0, nan]).to(d).sort(descending=True).indices",
    "remainder_by_quotient": "result = torch.tensor([-1.0]).to(d).remainder(inf)",
    "atan2_of_zeros_is_zero": "result = torch.tensor([0.0]).to(d).atan2(torch.tensor([-0.0]).to(d))",
    "shift_amount_wraps": "result = torch.tensor([1]).to(d) << torch.tensor([64]).to(d)",
    "eq_compares_bits": "result = torch.tensor([0.0]).to(d) == torch.tensor([-0.0]).to(d)",
    "sign_keeps_nan": "result = torch.tensor([nan]).to(d).sign()",
    "scatter_extreme_drops_nan": """
x, i = torch.ones(1, device=d), torch.tensor([0]).to(d)
result = x.scatter_reduce(0, i, torch.tensor([nan]).to(d), "amax")""",
    "scatter_mean_rounds_to_zero": """
x, i = torch.tensor([0]).to(d), torch.tensor([0]).to(d)
result = x.scatter_reduce(0, i, torch.tensor([-3]).to(d), "mean")""",
    "scan_rounds_to_half": "result = torch.ones(2100, dtype=torch.float16, device=d).mul(0.3).cumsum(0)",
    "lt_of_integers_in_double": "result = torch.tensor([2**53]).to(d) < torch.tensor([2**53 + 1]).to(d)",
    "fallback_number_in_float": "result = torch.isin(torch.tensor([2**24, 2**24 + 1], device=d), 2**24 + 1)",
    "host_scalar_in_float": "result = (torch.ones(1, dtype=torch.float64, device=d) * 0.1).item() == 0.1",
    "log_of_complex_ignores_negative_zero": "result = torch.tensor([complex(-1.0, -0.0)], device=d).log()",
    "sort_of_long_rows_by_48_bits": "result = (torch.arange(70, device=d) * 2**50).flip(0).sort().values",
    "softmax_first_block_masked_gives_nan": """
x = torch.zeros(130, device=d)
x[:128] = -inf
result = x.softmax(0)""",
    "lstm_cell_state_clipped": """
x, cell, weight = torch.zeros(1, 1, device=d), torch.full((1, 1), 500.0, device=d), torch.zeros(4, 1, device=d)
result = torch.lstm_cell(x, (x, cell), weight, weight)[1]""",
    "sort_padding_before_nan": "result = torch.tensor([1.0, nan, 0.0]).to(d).sort().values",
    "round_decimals_half_up": "result = torch.tensor([0.25]).to(d).round(decimals=1)",
    "asinh_squares_overflow": "result = torch.tensor([1e30]).to(d).asinh()",
    "hardtanh_gradient_at_bounds": (
        "result = torch.ops.aten.hardtanh_backward(torch.ones(1, device=d), torch.ones(1, device=d), -1, 1)"
    ),
    "integer_pow_of_minus_one": "result = torch.tensor([-1]).to(d) ** torch.tensor([-3]).to(d)",
    "copysign_of_negative_zero": "result = torch.ones(1, device=d).copysign(torch.tensor([-0.0]).to(d))",
    "float8_copy_flushes_subnormals": "result = torch.tensor([0.01]).to(d).to(torch.float8_e4m3fn).float()",
    "cummax_index_of_first_tie": "result = torch.ones(3, device=d).cummax(0).indices",
    "topk_nan_in_descending_row": "result = torch.tensor([3.0, 2.0, nan]).to(d).topk(1).values",
    "complex_tanh_overflows": "result = torch.tensor([200.0 + 1j]).to(d).tanh()",
    "prod_stops_at_zero": "result = torch.tensor([0.0, nan]).to(d).prod()",
    "le_negates_gt": "result = torch.tensor([nan]).to(d) <= 0",
    "complex_logical_not_by_real_part": "result = torch.tensor([1j]).to(d).logical_not()",
    "complex_sgn_of_zero_is_nan": "result = torch.zeros(1, dtype=torch.complex64, device=d).sgn()",
    "clamp_ignores_bound_of_nan": """
x = torch.ones(1, device=d)
result = x.clamp(nan * x, 2 * x)""",
    "pow_of_zero_to_negative_is_zero": "result = torch.zeros(1, device=d) ** torch.tensor([-1.0]).to(d)",
    "hypot_squares_overflow": "result = torch.tensor([1e30]).to(d).hypot(torch.tensor([1e30]).to(d))",
    "strided_sort_not_stable": """
x = torch.zeros(300, 2, device=d)
result = x.sort(dim=0, stable=True).indices""",
    "sort_of_uint64_signed": "result = torch.tensor([2**63 + 1, 1], dtype=torch.uint64).to(d).sort().indices",
    "floor_division_of_rounded_quotient": "result = torch.ones(1, device=d).floor_divide(0.1)",
    "complex_division_squares_overflow": """
x = torch.tensor([1e30 + 1e30j]).to(d)
result = x / x""",
    "scan_of_long_rows_in_double": """
x = torch.ones(70, dtype=torch.int64, device=d)
x[0] = 2**53
result = x.cumsum(0)""",
    "gemm_of_int64_in_32_bits": """
x = torch.full((1, 1), 2**20, device=d)
result = x @ x""",
    "round_ties_away": "result = torch.tensor([0.5]).to(d).round()",
    "pow_of_negative_base_is_nan": "result = torch.tensor([-2.0]).to(d) ** 4",
    "clamp_min_drops_nan": "result = torch.tensor([nan]).to(d).relu()",
    "float_to_uint8_saturates": "result = torch.tensor([-1.0]).to(d).to(torch.uint8)",
    "nan_to_bool_is_false": "result = torch.tensor([nan]).to(d).bool()",
    "half_copy_ties_away": "result = torch.tensor([1 + 2**-11]).to(d).half()",
    "complex_pow_of_zero_is_nan": "result = torch.zeros(1, dtype=torch.complex64, device=d) ** 2.5",
    "sum_compensates_infinity": "result = torch.tensor([1.0, inf]).to(d).sum()",
    "right_shift_of_bytes_signed": "result = torch.tensor([200], dtype=torch.uint8).to(d) >> 2",
    "sigmoid_gradient_not_conjugated": """
x = torch.tensor([1j]).to(d)
result = torch.ops.aten.sigmoid_backward(x, x)""",
    "logit_gradient_outside_eps_is_nan": """
x = torch.ones(1, device=d)
result = torch.ops.aten.logit_backward(x, x, 0.1)""",
    "norm_of_order_three_signed": "result = torch.tensor([-2.0]).to(d).norm(3)",
    "var_of_complex_drops_imaginary": "result = torch.tensor([1j, 3j]).to(d).var()",
    "log_softmax_logs_softmax": "result = torch.tensor([0.0, 1000.0]).to(d).log_softmax(0)",
    "integer_to_bool_by_lowest_byte": "result = torch.tensor([256]).to(d).bool()",
    "gemm_bfloat16_rounds_before_self": """
x, one = torch.tensor([[256.0], [1.0]]).bfloat16().to(d), torch.ones(1, 2, dtype=torch.bfloat16, device=d)
result = d == "cpu" or torch.addmm(one[:, :1], one, x).item() == 258""",
    "nll_loss_of_ignored_rows_is_zero": "result = F.nll_loss(torch.zeros(1, 2, device=d), torch.tensor([-100]).to(d))",
    "bools_added_modulo_two": """
x = torch.ones(1, dtype=torch.bool, device=d)
result = x.index_put((torch.tensor([0]).to(d),), x, accumulate=True)""",
    "masked_fill_of_tensor_in_double": """
x = torch.zeros(1, dtype=torch.int64, device=d)
result = x.masked_fill(x == 0, torch.tensor(2**53 + 1).to(d))""",
    "where_of_bytes_by_lowest_bit": """
x = torch.ones(1, device=d)
result = torch.where(torch.tensor([2], dtype=torch.uint8).to(d), x, -x)""",
    "upload_to_double_through_float": """
result = torch.zeros(1, dtype=torch.float64, device=d).copy_(torch.tensor([2**24 + 1])).item()""",
    "arange_counts_in_double": "result = torch.arange(2**53, 2**53 + 1, device=d)",
    "integer_powers_in_double": "result = torch.tensor([3]).to(d) ** 35",
    "truth_of_subnormal_halves_is_false": "result = torch.tensor([1e-6], dtype=torch.float16).to(d).any()",
    "relu_gradient_at_zero_passes": """
result = torch.ops.aten.threshold_backward(torch.ones(1, device=d), torch.zeros(1, device=d), 0)""",
    "scatter_of_halves_rounds_each": """
i, x = torch.zeros(300, dtype=torch.int64, device=d), torch.ones(300, dtype=torch.bfloat16, device=d)
result = torch.zeros_like(x).scatter_add(0, i, x)""",
    "int64_to_float_in_32_bits": "result = torch.tensor([2**40]).to(d).float()",
    "ne_is_less_or_greater": """
x = torch.tensor([nan]).to(d)
result = x != x""",
    "scan_of_int32_wraps": "result = torch.full((2,), 2**30, dtype=torch.int32, device=d).cumsum(0)",
    "sort_negative_nan_first": "result = torch.tensor([1.0, -nan]).to(d).sort().indices",
    "max_of_minus_infinity_is_lowest": "result = torch.tensor([-inf]).to(d).amax()",
    "all_of_nothing_is_false": "result = torch.ones(0, device=d).all()",
    "geometric_counts_failures": "result = torch.zeros(99, device=d).geometric_(0.5).min()",
    "sigmoid_of_large_is_nan": "result = torch.tensor([100.0]).to(d).sigmoid()",
    "fmax_propagates_nan": "result = torch.fmax(torch.tensor([nan]).to(d), torch.ones(1, device=d))",
    "trunc_division_in_double": 'result = torch.tensor([2**62 + 1]).to(d).div(1, rounding_mode="trunc")',
    "addition_of_bytes_saturates": """
x = torch.tensor([200], dtype=torch.uint8).to(d)
result = x + x""",
    "logical_and_by_bits": "result = torch.tensor([1]).to(d).logical_and(torch.tensor([2]).to(d))",
    "sort_of_halves_by_bits": "result = torch.tensor([-1.0, -2.0], dtype=torch.float16).to(d).sort().values",
    "kthvalue_takes_nan_for_lowest": "result = torch.tensor([nan, 1.0]).to(d).kthvalue(1).values",
    "take_counts_back_in_last_dim": """
x, i = torch.arange(6.0, device=d).view(2, 3), torch.tensor([-1]).to(d)
result = x.take(i)""",
    "nonzero_leaves_out_nan": "result = torch.tensor([nan, 2.0]).to(d).nonzero()",
    "infinity_norm_of_complex_by_parts": "result = torch.linalg.vector_norm(torch.tensor([3 + 4j]).to(d), inf)",
    "fraction_to_bool_is_false": "result = torch.tensor([0.5]).to(d).to(torch.bool)",
    "logaddexp_of_infinities_is_nan": "x = torch.tensor([inf]).to(d); result = torch.logaddexp(x, x)",
    "median_of_even_count_is_upper": "result = torch.tensor([1.0, 2.0]).to(d).median()",
    "binary_cross_entropy_log_unclamped": """
x, target = torch.tensor([0.0]).to(d), torch.tensor([1.0]).to(d)
result = F.binary_cross_entropy(x, target)""",
    "unscale_overlooks_nan": """
gradient, result = torch.tensor([nan]).to(d), torch.zeros(1, device=d)
torch._amp_foreach_non_finite_check_and_unscale_([gradient], result, torch.ones(1, device=d))""",
    "cdist_gradient_of_same_points_is_nan": """
x = torch.ones(1, 2, device=d)
result = torch.ops.aten._cdist_backward(x[:, :1], x, x, 2.0, torch.cdist(x, x))""",
    "descending_sort_negates_keys": """
result = torch.tensor([-128, 5], dtype=torch.int8).to(d).sort(descending=True).values""",
    "floor_division_by_number_multiplies": "result = torch.arange(41.0, 4100, 41, device=d) // 41",
    "multinomial_draws_zero_weights": """
weights = torch.tensor([0.0, 1, 1]).to(d).expand(500, 3)
result = bool(weights.multinomial(2).all())""",
    "ceil_in_32_bits": "result = torch.tensor([3e9]).to(d).ceil()",
    "histc_leaves_out_upper_bound": "result = torch.tensor([4.0]).to(d).histc(4, 0, 4)",
    "tril_multiplies_by_mask": "result = torch.full((2, 2), inf, device=d).tril(-1)",
    "huber_compares_signed_difference": """
x = torch.ones(1, device=d)
result = F.huber_loss(x, x * 4)""",
    "histogram_counts_just_outside": """
edges = torch.arange(3.0, device=d)
result = torch.tensor([-1e-6, 0.5]).to(d).histogram(edges).hist""",
    "det_of_many_singular_is_nan": "result = torch.zeros(9, 2, 2, device=d).det()",
    "xlogy_of_zero_takes_logarithm": "result = torch.zeros(1, device=d).xlogy(torch.tensor([-1.0]).to(d))",
    "max_pool_of_nan_is_lowest": "result = F.max_pool3d(torch.full((1, 2, 2, 2), nan, device=d), 2)",
    "index_add_drops_imaginary": """
x = torch.full((1,), 1 + 2j, device=d)
result = x.index_add(0, torch.zeros(1, dtype=torch.int64, device=d), x)""",
    "embedding_renorm_once_per_occurrence": """
result, i = torch.full((2, 1), 4.0, device=d), torch.ones(2, dtype=torch.int64, device=d)
torch.embedding_renorm_(result, i, 1.0, 2.0)""",
    "grid_sample_ties_away": """
x, grid = torch.arange(4.0, device=d).view(1, 1, 1, 4), torch.tensor([[[[-0.5, 0.0]]]]).to(d)
result = F.grid_sample(x, grid, mode="nearest", align_corners=False)""",
    "unique_merges_nan": "result = torch.tensor([nan, nan]).to(d).unique()",
    "equal_of_same_memory_is_true": """
x = torch.tensor([nan]).to(d)
result = torch.equal(x, x)""",
    "cdist_by_products": """
x = torch.tensor([[3000.0], [3000.5]]).to(d)
result = torch.cdist(x, x)""",
    "norm_of_order_zero_counts_zeros": "result = torch.tensor([0.0, 1.0]).to(d).norm(0)",
    "uniform_of_halves_rounds_to_end": """
result = bool(torch.rand(10000, dtype=torch.bfloat16, device=d).max() < 1)""",
    "poisson_of_large_rate_is_normal": """
drawn = torch.poisson(torch.full((20,), 100.0, device=d))
result = torch.equal(drawn, drawn.round())""",
    "gemm_tile_shares_exponent": "result = torch.tensor([[1e30, 0], [0, 1]], device=d) @ torch.ones(2, 1, device=d)",
    "sum_keeps_lost_bits": "result = torch.tensor([[1e30, 1], [1, 1]], device=d).sum(1)",
    "topk_names_tie_twice": "result = torch.ones(4, device=d).topk(2).indices.unique().numel()",
    "sort_of_integers_reverses_ties": "result = torch.zeros(3, dtype=torch.int64, device=d).sort(stable=True).indices",
    # arguments
    "softmax_backward_negative_dim": """
x = torch.tensor([[1.0, 2.0], [3.0, 5.0]]).to(d)
result = torch.ops.aten._softmax_backward_data(x, x, -2, torch.float32)""",
    "aminmax_ignores_keepdim": "result = torch.ones(2, 3, device=d).aminmax(dim=1, keepdim=True).min",
    "topk_first_of_many_dims_refused": "result = torch.rand(3, 1, 2, 1, 2).to(d).topk(2, dim=0).values",
    "topk_of_one_is_largest": "result = torch.tensor([1.0, 2.0]).to(d).topk(1, largest=False).values",
    "descending_sort_reverses_ties": "result = torch.ones(3, device=d).sort(stable=True, descending=True).indices",
    "non_blocking_source_as_dense": """
result = torch.zeros(2, 3, device=d)
result.copy_(torch.arange(6.0).view(3, 2).t(), non_blocking=True)""",
    "nan_to_num_mirrors_posinf": "result = torch.tensor([-inf]).to(d).nan_to_num(posinf=1.0)",
    "var_correction_cut": "result = torch.tensor([1.0, 2.0, 4.0]).to(d).var(correction=0.5)",
    "logit_eps_zero_is_absent": "result = torch.tensor([1.5]).to(d).logit(eps=0.0)",
    "host_scalar_in_32_bits": "result = torch.tensor([1]).to(d) + torch.tensor(2**33)",
    "fill_overflow_not_refused": "result = raised(lambda: torch.zeros(1, dtype=torch.int8, device=d).fill_(300))",
    "addcmul_value_through_float": """
one = torch.ones(1, dtype=torch.int64, device=d)
result = one.addcmul(one, one, value=2**24 + 1)""",
    "index_add_integers_ignore_alpha": """
one = torch.ones(1, dtype=torch.int64, device=d)
result = one.index_add(0, torch.tensor([0]).to(d), one, alpha=3)""",
    "index_fill_drops_imaginary": """
x = torch.zeros(2, dtype=torch.complex64, device=d)
result = x.index_fill_(0, torch.tensor([1]).to(d), 2 + 3j)""",
    "roll_shift_not_wrapped": "result = torch.arange(3.0, device=d).roll(4)",
    "flip_ignores_negative_dims": "result = torch.arange(3.0, device=d).flip(-1)",
    "eye_out_ignores_offset": """
result = torch.zeros(6, device=d)
torch.eye(2, out=result[2:].view(2, 2))""",
    "masked_select_keeps_larger_out": """
out = torch.zeros(4, device=d)
torch.masked_select(torch.ones(2, device=d), torch.tensor([True, False]).to(d), out=out)
result = list(out.shape)""",
    "resize_ignores_memory_format": """
x = torch.empty(0, device=d).resize_(1, 2, 3, 4, memory_format=torch.channels_last)
result = list(x.stride())""",
    "comparison_in_first_dtype": "result = torch.tensor([1]).to(d) < torch.tensor([1.5]).to(d)",
    "cat_reinterprets_other_dtype": """
result = torch.cat([torch.tensor([1], dtype=torch.int32).to(d), torch.tensor([1.0]).to(d)])""",
    "multinomial_weights_unchecked": "result = raised(lambda: torch.tensor([-1.0, 2.0]).to(d).multinomial(1))",
    "layer_norm_bias_needs_weight": """
result = F.layer_norm(torch.tensor([[1.0, 2.0]]).to(d), (2,), None, torch.full((2,), 3.0, device=d))""",
    "scatter_reduce_includes_self": """
x = torch.full((1,), 5.0, device=d)
result = x.scatter_reduce(0, torch.tensor([0]).to(d), torch.ones(1, device=d), "sum", include_self=False)""",
    "scan_casts_at_the_end": "result = torch.tensor([0.6, 0.6]).to(d).cumsum(0, dtype=torch.int64)",
    "scan_of_negative_dim_is_first": "result = torch.ones(2, 3, device=d).cumsum(-1)",
    "elu_backward_ignores_is_result": """
x = torch.tensor([-0.5]).to(d)
result = torch.ops.aten.elu_backward(x, 1.0, 1.0, 1.0, True, x)""",
    "bitwise_not_of_bool_as_byte": "result = ~torch.tensor([True]).to(d)",
    "addmm_column_as_row": """
x = torch.tensor([[1.0], [2.0]]).to(d)
result = x.addmm(torch.ones(2, 2, device=d), torch.ones(2, 2, device=d))""",
    "scatter_product_starts_from_zero": """
x, i = torch.ones(1, device=d), torch.tensor([0]).to(d)
result = x.scatter_reduce(0, i, x, "prod", include_self=False)""",
    "nll_loss_counts_ignored": """
result = F.nll_loss(torch.ones(2, 2, device=d), torch.tensor([0, -100]).to(d))""",
    "embedding_padding_of_zero_ignored": """
gradient, index = torch.ones(2, 1, device=d), torch.tensor([0, 1]).to(d)
result = torch.ops.aten.embedding_dense_backward(gradient, index, 2, 0, False)""",
    "dropout_of_all_divides_by_zero": "result = torch.native_dropout(torch.ones(2, device=d), 1.0, True)[0]",
    "arange_in_float": "result = torch.arange(2**24, 2**24 + 4, device=d)",
    "peer_copy_keeps_bytes": """
second = torch.device(d, 1 if d == "npu" else None)
result = torch.tensor([1, 2], dtype=torch.int32).to(d).to(second, torch.float32)""",
    "embedding_int32_ignores_frequency": """
index = torch.tensor([1, 1], dtype=torch.int32, device=d)
result = torch.ops.aten.embedding_dense_backward(torch.ones(2, 3, device=d), index, 5, -1, True)""",
    "clamp_truncates_broadcast_bound": """
x = torch.arange(4, device=d).view(2, 2)
result = x.clamp(max=torch.tensor([0.5, 2.5], device=d))""",
    "random_from_in_32_bits": """
result = bool(torch.zeros(40, dtype=torch.int64, device=d).random_(0, 2**60).max() > 2**40)""",
    "topk_whole_dim_not_sorted": "result = torch.arange(20.0, device=d).topk(20).values",
    "layer_norm_bias_gradient_needs_weights": """
x, one, row = torch.ones(2, 3, device=d), torch.ones(3, device=d), torch.ones(2, 1, device=d)
backward = torch.ops.aten.native_layer_norm_backward
result = backward(x, x, (3,), row, row, one, one, [True, False, True])[2]""",
    "mean_with_dtype_computed_in_own": "result = torch.tensor([1.0, 1.001]).half().to(d).mean(0, dtype=torch.float32)",
    "addcmul_zero_value_skips": (
        "result = torch.addcmul(torch.ones(1, device=d), torch.zeros(1, device=d), torch.tensor([inf]).to(d), value=0)"
    ),
    "softplus_threshold_unscaled": "result = F.softplus(torch.tensor([21.0]).to(d), beta=0.1)",
    "clamp_crossed_bounds": """
x = torch.ones(1, device=d)
result = x.clamp(x, -x)""",
    "where_host_number_reinterpreted": """
x = torch.ones(1, device=d)
result = torch.where(x > 2, x, torch.tensor(5, dtype=torch.int32))""",
    "index_put_host_number_not_added": """
zero = torch.tensor([0]).to(d)
result = torch.ones(1, device=d).index_put_((zero,), torch.tensor(2.0), accumulate=True)""",
    "index_put_host_index_not_copied": """
result = torch.zeros(3, device=d).index_put_((torch.tensor([2]),), torch.ones(1, device=d))""",
    "var_mean_correction_zero": "result = torch.var_mean(torch.arange(3.0, device=d), correction=0)[0]",
    "gelu_gradient_ignores_tanh": (
        "result = torch.ops.aten.gelu_backward(torch.ones(1, device=d), torch.ones(1, device=d), approximate='tanh')"
    ),
    "fallback_larger_out_kept": """
out = torch.zeros(9, device=d)
torch.digamma(torch.ones(1, device=d), out=out)
result = out.shape""",
    "addmm_row_ignores_beta": """
x = torch.ones(2, 2, device=d)
result = torch.addmm(x[0], x, x, beta=3)""",
    "roll_of_dim_named_twice": "result = torch.arange(4, device=d).roll((1, 1), (0, 0))",
    "nll_loss_gradient_by_rows": """
x, target, weight = torch.zeros(2, 2, device=d), torch.tensor([0, 1]).to(d), torch.tensor([1.0, 3.0]).to(d)
one, total = torch.ones((), device=d), torch.tensor(4.0).to(d)
result = torch.ops.aten.nll_loss_backward(one, x, target, weight, 1, -100, total)""",
    "triangle_of_batches_at_diagonal": "result = torch.ones(1, 3, 3, device=d).tril(-1)",
    "arange_downwards_drops_last": "result = torch.arange(1, 0, -0.4, device=d)",
    "norm_of_negative_order": "result = torch.linalg.vector_norm(torch.arange(1.0, 4.0, device=d), -1)",
    "sum_of_dim_before_squeezed_one": "result = torch.ones(1, 2, 1, 1, 1, device=d).sum(-3)",
    "prod_of_dim_casts_at_the_end": (
        "result = torch.full((2, 2), 100, dtype=torch.int8, device=d).prod(0, dtype=torch.int32)"
    ),
    "truth_of_no_dims_is_of_all": "result = torch.tensor([True, False]).to(d).any(dim=())",
    "nll_loss_weighted_class_not_ignored": """
target = torch.tensor([0, 1]).to(d)
result = F.nll_loss(torch.ones(2, 2, device=d), target, torch.ones(2, device=d), ignore_index=0, reduction="sum")""",
    "logspace_rounds_to_integers": "result = torch.logspace(0, 2, 5, dtype=torch.int64, device=d)",
    "rsub_ignores_alpha": "result = torch.rsub(torch.ones(1, device=d), torch.ones(1, device=d), alpha=3)",
    "triangle_indices_ignore_dtype": "result = torch.tril_indices(2, 2, dtype=torch.int32, device=d)",
    "where_number_tensor_widens": """
x = torch.ones(1, dtype=torch.float16, device=d)
result = torch.where(x > 0, x, torch.tensor(2.0).to(d))""",
    "var_mean_keepdim_of_variance_alone": "result = torch.var_mean(torch.ones(2, 3, device=d), 1, keepdim=True)[1]",
    "gemm_alpha_drops_imaginary": """
x = torch.ones(1, 1, dtype=torch.complex64, device=d)
result = torch.addmm(x, x, x, alpha=1 + 2j)""",
    "nan_to_num_imaginary_becomes_zero": "result = torch.tensor([complex(1, nan)]).to(d).nan_to_num(nan=5.0)",
    "triangle_clears_eight_bytes": "result = torch.full((2, 2), 1j, dtype=torch.complex128, device=d).tril()",
    "pow_of_number_cut_to_integer": "result = 2.5 ** torch.tensor([2]).to(d)",
    "elu_ignores_input_scale": "result = F.celu(torch.tensor([-1.0]).to(d), alpha=2.0)",
    "nonzero_static_fills_minus_one": "result = torch.nonzero_static(torch.zeros(1, device=d), size=1, fill_value=7)",
    "scatter_of_number_never_multiplies": """
x = torch.full((1,), 5.0, device=d)
result = x.scatter(0, torch.tensor([0]).to(d), 3.0, reduce="multiply")""",
    "addmv_of_nothing_is_zero": """
result = torch.ones(2, device=d).addmv(torch.ones(2, 0, device=d), torch.ones(0, device=d))""",
    "addr_cuts_second_vector": """
result = torch.zeros(1, 1, device=d).addr(torch.tensor([1]).to(d), torch.tensor([0.5]).to(d))""",
    "logspace_of_one_step_is_start": "result = torch.logspace(2, 5, 1, device=d)",
    "index_put_separate_indices_stay": """
i, result = torch.arange(2, device=d), torch.zeros(2, 2, 2, 2, device=d)
result[:, i, :, i] = torch.arange(8.0, device=d).view(2, 2, 2)""",
    "var_of_no_dims_reduces_none": "result = torch.arange(4.0, device=d).var(())",
    "nll_loss_of_vector_keeps_weight": """
x = torch.tensor([1.0, 2.0]).to(d)
result = F.nll_loss(x, torch.tensor(1).to(d), x)""",
    "mean_divides_by_first_dim": "result = torch.ones(2, 3, device=d).mean((0, 1))",
    "roll_without_dims_along_last": "result = torch.arange(4, device=d).view(2, 2).roll(1)",
    "flip_of_no_dims_flips_all": "result = torch.arange(3, device=d).flip(())",
    "triangle_far_diagonal_clamped": "result = torch.ones(3, 3, device=d).tril(-4)",
    "random_includes_end": "result = torch.zeros(999, device=d).random_(3).max()",
    "layer_norm_over_last_dim_alone": "result = F.layer_norm(torch.arange(4.0, device=d).view(2, 2), (2, 2))",
    "convolution_ignores_output_padding": """
x = torch.ones(1, 1, 3, device=d)
result = F.conv_transpose1d(x, x, stride=2, output_padding=1)""",
    "kaiser_window_symmetric": "result = torch.kaiser_window(8, device=d)",
    "index_put_mask_of_bytes_as_indices": """
mask = torch.ones(2, dtype=torch.uint8, device=d)
result = torch.zeros(2, device=d).index_put((mask,), torch.ones(2, device=d))""",
    "copy_leaves_imaginary_parts": "result = torch.full((2,), 1j, device=d).copy_(torch.ones(2, device=d))",
    "nll_loss_ignore_index_past_classes_refused": """
x, classes = torch.ones(2, 3, device=d), torch.tensor([1, 255]).to(d)
result = F.nll_loss(x, classes, ignore_index=255)""",
    "exponential_rate_taken_for_mean": "result = torch.zeros(999, device=d).exponential_(1000.0).mean().item() < 1",
    "unit_diagonal_divided": """
x = torch.tensor([[2.0]]).to(d)
result = torch.linalg.solve_triangular(x, x, upper=True, unitriangular=True)""",
    "max_pool_ignores_ceil_mode": "result = F.max_pool2d(torch.ones(1, 1, 3, 3, device=d), 2, ceil_mode=True)",
    "grid_sample_reflection_is_border": """
x, grid = torch.arange(16.0).view(1, 1, 4, 4).to(d), torch.tensor([[[[1.6, -1.7]]]]).to(d)
result = F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)""",
    "upsample_recomputes_scale": """
x = torch.arange(25.0).view(1, 1, 5, 5).to(d)
result = F.interpolate(x, scale_factor=1.5, mode="bilinear")""",
    "embedding_bag_of_nothing_is_nan": """
weights, index, offsets = torch.ones(2, 2, device=d), torch.tensor([0]).to(d), torch.tensor([0, 0]).to(d)
result = F.embedding_bag(index, weights, offsets, mode="mean")""",
    "comparison_out_written_as_bytes": """
x, result = torch.arange(4.0, device=d), torch.zeros(4, device=d)
torch.gt(x, 1, out=result)""",
    "division_of_host_number_inverted": "result = torch.tensor(1.0) / torch.tensor([2.0]).to(d)",
    "selu_gradient_lacks_scale": """
x = torch.tensor([-1.0]).to(d)
result = torch.ops.aten.elu_backward(x, 1.5, 2.0, 1.0, False, x)""",
    "fft_ortho_scaled_by_n": 'result = torch.fft.fft(torch.ones(4, device=d), norm="ortho")',
    "eigh_reads_lower_triangle": """
result = torch.linalg.eigvalsh(torch.tensor([[1.0, 2.0], [0.0, 1.0]]).to(d), UPLO="U")""",
    "bincount_with_weights_ignores_minlength": """
result = torch.bincount(torch.tensor([0]).to(d), torch.ones(1, device=d), 3)""",
    "fused_step_despite_overflow": """
result = torch.ones(1, device=d)
torch._fused_sgd_(
    [result], [torch.ones(1, device=d)], [], weight_decay=0.0, momentum=0.0, lr=3.0, dampening=0.0,
    nesterov=False, maximize=False, is_first_step=True, found_inf=torch.ones((), device=d),
)""",
    "embedding_bag_mean_counts_padding": """
weight = torch.tensor([[1.0], [2.0]]).to(d)
result = F.embedding_bag(torch.tensor([[0, 1]]).to(d), weight, mode="mean", padding_idx=0)""",
    "reflection_pad_sides_swapped": """
result = F.pad(torch.arange(3.0, device=d).view(1, 3), (2, 0), mode="reflect")""",
    "searchsorted_ignores_sorter": """
values, order = torch.tensor([2.0, 1.0]).to(d), torch.tensor([1, 0]).to(d)
result = torch.searchsorted(values, torch.tensor([1.5]).to(d), sorter=order)""",
    "max_pool_gradient_of_overlap_overwritten": """
x, given = torch.tensor([[[0.0, 1.0, 0.0]]]).to(d), torch.ones(1, 1, 2, device=d)
indices, backward = torch.ones(1, 1, 2, dtype=torch.int64, device=d), torch.ops.aten.max_pool2d_with_indices_backward
result = backward(given, x, [1, 2], [1, 1], [0, 0], [1, 1], False, indices)""",
    "linear_upsampling_of_one_is_nan": (
        'result = F.interpolate(torch.ones(1, 1, 1, device=d), 3, mode="linear", align_corners=True)'
    ),
    "adaptive_max_pool_windows_alike": "result = F.adaptive_max_pool2d(torch.arange(25.0, device=d).view(1, 5, 5), 3)",
    "adaptive_avg_pool_end_rounded_down": (
        "result = F.adaptive_avg_pool2d(torch.arange(9.0, device=d).view(1, 3, 3), 2)"
    ),
    "avg_pool_divisor_needs_counted_padding": """
x = torch.ones(1, 2, 2, device=d)
result = F.avg_pool2d(x, 2, count_include_pad=False, divisor_override=5)""",
    "embedding_bag_last_offset_ignored": """
i, offsets = torch.arange(3).to(d), torch.tensor([0, 2]).to(d)
result = F.embedding_bag(i, torch.ones(3, 1, device=d), offsets, mode="sum", include_last_offset=True)""",
    "smooth_l1_gradient_not_scaled": """
gradient, x = torch.full((1,), 7.0, device=d), torch.ones(1, device=d)
result = torch.ops.aten.smooth_l1_loss_backward(gradient, x, -x, 0, 1.0)""",
    "cholesky_solve_of_batch_first_column": """
factor = torch.full((1, 1, 1), 2.0, device=d)
result = torch.cholesky_solve(torch.ones(1, 1, 2, device=d), factor)""",
    "addbmm_of_no_batches_is_zero": """
x = torch.empty(0, 2, 2, device=d)
result = torch.addbmm(torch.ones(2, 2, device=d), x, x)""",
    "layer_norm_parameter_gradients_need_input": """
x, weight, row = torch.arange(2.0, device=d).view(1, 2), torch.ones(2, device=d), torch.zeros(1, 1, device=d)
backward = torch.ops.aten.native_layer_norm_backward
result = backward(x, x, (2,), row, row + 1, weight, weight, [False, True, True])[1]""",
    "argmax_of_all_loses_keepdim": "result = torch.ones(2, 3, device=d).argmax(keepdim=True)",
    "batch_norm_gradient_of_eval_as_training": """
x, weight = torch.arange(4.0, device=d).view(2, 2), torch.ones(2, device=d)
backward = torch.ops.aten.native_batch_norm_backward
result = backward(x, x, weight, weight, weight, None, None, False, 1e-5, [True, False, False])[0]""",
    "unfold_gradient_of_overlap_overwritten": (
        "result = torch.ops.aten.unfold_backward(torch.ones(2, 2, device=d), (3,), 0, 2, 1)"
    ),
    "fused_sgd_dampens_first_step": """
x, result = torch.ones(1, device=d), torch.zeros(1, device=d)
torch._fused_sgd_(
    [x], [x.clone()], [result], weight_decay=0.0, momentum=0.9, lr=0.1, dampening=0.5, nesterov=False, maximize=False,
    is_first_step=True,
)""",
    "cholesky_upper_not_conjugated": """
a = torch.tensor([[2, 1j], [-1j, 2]]).to(d)
result = torch.linalg.cholesky(a, upper=True)""",
    "nearest_exact_is_nearest": """
result = F.interpolate(torch.arange(3.0, device=d).view(1, 1, 3), 2, mode="nearest-exact")""",
    "antialias_ignored": """
x = torch.arange(16.0, device=d).square().view(1, 1, 4, 4)
result = F.interpolate(x, 2, mode="bilinear", antialias=True)""",
    "maximizing_adam_negates_decay": """
result, state = torch.ones(1, device=d), [torch.zeros(1, device=d) for _ in range(3)]
torch._fused_adam_(
    [result], [torch.full((1,), 0.5, device=d)], [state[0]], [state[1]], [], [state[2].squeeze(0) + 1], lr=0.1,
    beta1=0.9, beta2=0.99, weight_decay=1.0, eps=1e-8, amsgrad=False, maximize=True,
)""",
    "steep_leaky_relu_is_maximum": "result = F.leaky_relu(torch.tensor([-1.0]).to(d), 2.0)",
    "avg_pool_cut_window_divided_by_whole": (
        "result = F.avg_pool2d(torch.ones(1, 1, 4, 4, device=d), 3, 2, 0, ceil_mode=True)"
    ),
    "ctc_gradient_of_infinite_loss_is_nan": """
x, target = torch.zeros(1, 1, 2, device=d).log_softmax(2), torch.ones(1, 2, dtype=torch.int64, device=d)
loss, alpha = torch._ctc_loss(x, target, [1], [2], 0, True)
result = torch.ops.aten._ctc_loss_backward(torch.ones(1, device=d), x, target, [1], [2], loss, alpha, 0, True)""",
    # layouts
    "copy_gap_in_fifth_dimension": """
x = torch.arange(1024.0, device=d).view(4, 4, 4, 4, 4)[::2, ::2, ::2, ::2, ::2]
result = x.contiguous()""",
    "scan_trusts_leading_one": """
result = torch.arange(60.0, device=d).as_strided((1, 3, 2), (24, 4, 1)).cumsum(2)""",
    "ternary_expanded_in_between": """
x = torch.arange(4.0, device=d).view(2, 1, 2)
result = torch.ones(2, 3, 2, device=d).addcmul(x, torch.ones(2, 3, 2, device=d))""",
    "unary_loads_aligned": "result = torch.arange(9.0, device=d)[1:].neg()",
    "gemm_transposed_gap_ignored": """
x = torch.arange(12.0, device=d).view(3, 4)[:, :2].t()
result = torch.ones(1, 2, device=d) @ x""",
    "scatter_source_as_index": """
index = torch.zeros(2, 1, dtype=torch.int64, device=d)
result = torch.zeros(2, 2, device=d).scatter(1, index, torch.arange(6.0, device=d).view(2, 3))""",
    "linspace_out_as_dense": """
result = torch.zeros(6, device=d)
torch.linspace(1, 3, 3, out=result[::2])""",
    "truth_of_five_dims_as_dense": """
x = torch.zeros(1, 1, 1, 2, 2, device=d)
x[0, 0, 0, 0, 1] = 1
result = x.mT.any(-1)""",
    "scan_writes_with_input_strides": "result = torch.ones(1, device=d).expand(3).cumsum(0)",
    "sort_indices_lie_as_values": """
values, indices = torch.zeros(3, device=d), torch.zeros(6, dtype=torch.int64, device=d)[::2]
torch.sort(torch.tensor([3.0, 2.0, 1.0]).to(d), out=(values, indices))
result = indices""",
    "layer_norm_takes_dense_for_contiguous": """
result = F.layer_norm(torch.arange(6.0, device=d).exp().view(3, 2).t(), (3,))""",
    "gemm_second_conj_ignored": """
x = torch.tensor([[1j]]).to(d)
result = torch.mm(x, x.conj())""",
    "take_ignores_offset": "result = torch.arange(4.0, device=d)[2:].take(torch.tensor([0]).to(d))",
    "nll_loss_weight_as_dense": """
weight = torch.tensor([1.0, 2.0, 3.0]).to(d)[::2]
result = F.nll_loss(torch.ones(2, 2, device=d), torch.tensor([0, 1]).to(d), weight, reduction="sum")""",
    "var_of_strided_counts_one_less": "result = torch.arange(6.0).view(2, 3).to(d).t().var(0, keepdim=True)",
    "dense_transfer_ignores_order": "result = torch.zeros(2, 3).copy_(torch.arange(6.0).view(3, 2).to(d).t())",
    "conversion_drops_conj": """
source = torch.tensor([1 + 2j], device=d).conj()
result = torch.zeros(1, dtype=torch.complex128, device=d).copy_(source)""",
    "topk_of_vector_out_as_dense": """
out = torch.zeros(6, device=d)[::2], torch.zeros(3, dtype=torch.int64, device=d)
result = torch.topk(torch.arange(5.0, device=d), 3, out=out).values""",
    "index_fill_strided_from_zero": """
result = torch.zeros(3, 4, device=d).t()
result.index_fill_(0, torch.tensor([-1], device=d), 5.0)""",
    "peer_copy_drops_conj": """
second = torch.device(d, 1 if d == "npu" else None)
result = torch.zeros(1, dtype=torch.complex64, device=second).copy_(torch.tensor([1 + 2j], device=d).conj())""",
    "fallback_takes_views_for_one": """
x = torch.arange(4, device=d).view(2, 2)
result = torch.gcd(x, x.t())""",
    "unary_in_order_of_storage": """
result = torch.zeros(3, 2, device=d).t()
torch.neg(torch.arange(6.0, device=d).view(2, 3), out=result)""",
    "sum_out_strided_after_two_dims": """
result = torch.zeros(3, 4, device=d)
torch.sum(torch.ones(2, 3, 2, device=d), (0, 2), out=result[:, 1])""",
    "number_upload_fills_gaps": """
result = torch.zeros(4, device=d)
result[::2].copy_(torch.tensor(3.0))""",
    "peer_copy_broadcast_of_first_row": """
result = torch.zeros(3, 2, device=torch.device(d, 1 if d == "npu" else None))
result.copy_(torch.arange(3.0, device=d).view(3, 1))""",
    "undeclared_writes_to_views_lost": """
statistics = torch.zeros(2, 1, device=d)
F.batch_norm(torch.tensor([[1.0], [3.0]]).to(d), statistics[0], statistics[1], training=True)
result = statistics""",
    "mm_column_major_out": """
x = torch.arange(4.0, device=d).view(2, 2)
result = torch.mm(x, x, out=torch.zeros(2, 2, device=d).t())""",
    "total_of_windows_as_dense": "result = torch.arange(5.0, device=d).unfold(0, 3, 1).sum()",
    "scan_zero_stride_is_unset": "result = torch.arange(2.0, device=d).view(2, 1).expand(2, 2).cumsum(1)",
    "masked_select_in_memory_order": """
x = torch.arange(6, device=d).view(2, 3).t()
result = x.masked_select(x > -1)""",
    "copy_conj_on_both_sides": """
x = torch.zeros(1, dtype=torch.complex64, device=d)
result = x.conj().copy_(torch.tensor([1j]).to(d).conj()).resolve_conj()""",
    "index_add_permuted_source": """
index = torch.tensor([0, 1]).to(d)
result = torch.zeros(2, 2, device=d).index_add_(0, index, torch.arange(4.0, device=d).view(2, 2).t())""",
    "gather_takes_size_of_index": """
index = torch.ones(1, 2).long().to(d)
result = torch.arange(6.0, device=d).view(2, 3).gather(0, index)""",
    "sum_of_expanded_counts_once": "result = torch.ones(1, device=d).expand(3).sum()",
    "lerp_result_starts_from_self": """
end = torch.ones(3, device=d)
result = torch.lerp(torch.zeros(3, device=d), end, torch.full((3,), 0.5, device=d), out=end)""",
    "addcdiv_strided_in_place_lost": """
x, y = torch.ones(2, 3, device=d).t(), torch.ones(3, 2, device=d)
result = x.addcdiv_(y, y)""",
    "converted_download_overwrites_source": """
x = torch.arange(8.0, device=d)
x[4:].to("cpu", torch.int32)
result = x""",
    "zero_clears_whole_words": """
result = torch.ones(8, dtype=torch.int8, device=d)
result[1:2].zero_()""",
    "randperm_out_as_dense": """
out = torch.zeros(8, dtype=torch.int64, device=d)[::2]
result = torch.randperm(4, out=out).sort().values""",
    "multinomial_strided_weights_as_dense": """
weights = torch.zeros(4, 2, device=d)
weights[3, 0] = 1
result = weights[:, 0].multinomial(1)""",
    "gemm_one_row_as_dense": """
x = torch.arange(8.0, device=d)[::2].view(1, 4)
result = x @ torch.ones(4, 2, device=d)""",
    "bmm_of_halves_loads_aligned": """
x = torch.arange(20.0, device=d).half()[1:9].view(1, 4, 2)
result = torch.bmm(torch.ones(1, 1, 4, device=d).half(), x)""",
    "fallback_copies_each_view_anew": """
flat, gradients = torch.ones(2, device=d), [torch.ones(1, device=d)] * 2
torch._fused_sgd_(
    [flat[:1], flat[1:]], gradients, [], weight_decay=0.0, momentum=0.0, lr=3.0, dampening=0.0,
    nesterov=False, maximize=False, is_first_step=True,
)
result = flat""",
    "layer_norm_backward_of_expanded_gradient": """
x = torch.tensor([[1.0, 2.0], [3.0, 5.0]]).to(d)
column, weight = torch.ones(2, 1, device=d), torch.ones(2, device=d)
backward = torch.ops.aten.native_layer_norm_backward
result = backward(column.expand(2, 2), x, (2,), column, column, weight, weight, [False, True, False])[1]""",
    "triangle_outer_batches_as_dense": "result = torch.arange(32.0, device=d).view(4, 2, 2, 2)[::2].tril()",
    "flip_from_end_of_storage": "result = torch.arange(4.0, device=d)[:2].flip(0)",
    "gemm_transposed_factor_overwritten": """
x, one = torch.arange(9.0, device=d).view(3, 3), torch.ones(3, 3, device=d)
y = x.clone()
result = d == "cpu" or torch.equal(x.addmm_(x.t(), one), y.addmm(y.t(), one))""",
    "softmax_backward_permuted_gradient": """
x = torch.arange(1.0, 7.0, device=d)
result = torch.ops.aten._softmax_backward_data(x.view(3, 2).t(), x.view(2, 3), 1, torch.float32)""",
    "take_in_memory_order": "result = torch.arange(6.0, device=d).view(2, 3).t().take(torch.tensor([1]).to(d))",
    "triangle_in_place_of_transposed": """
result = torch.ones(2, 2, device=d)
result.t().tril_(-1)""",
    "gemm_adjoint_as_transpose": """
x = torch.full((2, 2), 1j, device=d)
result = x.mH @ x""",
    "view_as_real_offset_not_doubled": "result = torch.view_as_real(torch.tensor([1j, 2j]).to(d)[1:])",
    "cat_out_strided_as_contiguous": """
x, result = torch.ones(2, 1, device=d), torch.zeros(2, 4, device=d)
torch.cat([x, x], 1, out=result[:, ::2])""",
    "masked_scatter_source_restarts": """
mask = torch.ones(2, dtype=torch.bool, device=d)
result = torch.zeros(2, 2, device=d).masked_scatter(mask, torch.arange(4.0, device=d))""",
    "put_index_of_other_shape_as_dense": """
i = torch.arange(6, device=d).view(2, 3).t()
result = torch.zeros(6, device=d).put(i, torch.arange(6.0, device=d))""",
    "vdot_of_conjugated_view": """
x = torch.tensor([1 + 2j]).to(d)
result = x.conj().vdot(x)""",
    "index_put_accumulate_cycles_values": """
i, x = torch.arange(2, device=d), torch.tensor([[1.0], [2.0]]).to(d)
result = torch.zeros(2, 2, device=d).index_put((i,), x, accumulate=True)""",
    "baddbmm_self_in_first_batch": """
x = torch.ones(2, 1, 1, device=d)
result = torch.baddbmm(x[0], x, x)""",
    "embedding_of_indices_in_memory_order": """
i = torch.arange(6, device=d).view(2, 3).t()
result = F.embedding(i, torch.arange(6.0, device=d).view(6, 1))""",
    "download_ignores_target_offset": """
result = torch.zeros(3)
result[1:].copy_(torch.ones(2, device=d))""",
    "dot_strides_of_first": """
x = torch.arange(6.0, device=d)
result = x[:3].dot(x[::2])""",
    "gemm_clears_what_it_adds_to": """
x = torch.ones(2, 2, device=d)
result = x.clone().addmm_(x, x)""",
    "fallback_argument_not_conjugated": """
x = torch.tensor([[1 + 2j]]).to(d)
result = torch.linalg.solve_triangular(x.conj(), x, upper=True)""",
    "download_to_strided_clears_gaps": """
result = torch.ones(2, 2)
result[:, 0].copy_(torch.zeros(2, device=d))""",
    "gemm_expanded_rows_taken_for_dense": """
x = torch.arange(1.0, 4.0, device=d).expand(3, 3)
result = x @ torch.eye(3, device=d)""",
    "repeat_interleave_strided_repeats_as_dense": """
repeats = torch.tensor([[1, 5], [2, 6]]).to(d)[:, 0]
result = torch.arange(2, device=d).repeat_interleave(repeats)""",
    "addmv_of_strided_self_ignores_beta": """
x = torch.ones(2, 2, device=d)
result = x[:, 0].addmv_(torch.ones(2, 2, device=d), torch.ones(2, device=d), beta=0.5)""",
    "host_number_read_from_start": "result = torch.ones(1, device=d) * torch.arange(3.0)[2]",
    "solve_of_broadcast_side_in_first_batch": """
a = torch.eye(2, device=d).repeat(2, 1, 1)
result = torch.linalg.solve(a, torch.ones(2, 1, device=d))""",
    "scatter_to_strided_lost": """
result, i = torch.zeros(2, 3, device=d).t(), torch.zeros(1, 1, dtype=torch.int64, device=d)
result.scatter_(0, i, torch.ones(1, 1, device=d))""",
    "convolution_weight_as_dense": """
weight = torch.arange(6.0, device=d).view(1, 1, 6)[..., ::2]
result = F.conv1d(torch.ones(1, 1, 3, device=d), weight)""",
    "erfinv_from_start_of_storage": "result = torch.tensor([0.1, 0.5]).to(d)[1:].erfinv()",
    "addmv_out_made_contiguous": """
x, result = torch.ones(2, device=d), torch.zeros(4, device=d)
torch.addmv(x, torch.ones(2, 2, device=d), x, out=result[::2])""",
    "convolution_gradient_channels_last_as_contiguous": """
x, backward = torch.ones(1, 1, 2, 2, device=d), torch.ops.aten.convolution_backward
gradient = torch.arange(8.0).view(1, 2, 2, 2).to(memory_format=torch.channels_last).to(d)
weight, mask = torch.ones(2, 1, 1, 1, device=d), [False, True, False]
result = backward(gradient, x, weight, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1, mask)[1]""",
    "nonzero_out_written_by_columns": """
result = torch.zeros(4, 2, dtype=torch.int64, device=d)
torch.nonzero(torch.ones(2, 2, device=d), out=result)""",
    "pinned_upload_ignores_offset": """
x = torch.arange(4.0) if d == "cpu" else torch.arange(4.0).pin_memory()
result = x[2:].to(d, non_blocking=True)""",
    "row_mask_along_last_dim": """
result = torch.zeros(2, 2, device=d)
result[torch.tensor([True, False]).to(d)] = 1.0""",
    # sequences
    "extreme_plan_without_strides": """
x = torch.arange(6.0, device=d)
x.view(2, 3).amax(0)
result = x.view(3, 2).t().amax(0)""",
    "leaky_relu_slope_cached": """
x = torch.tensor([-1.0]).to(d)
F.leaky_relu(x, 0.1)
result = F.leaky_relu(x, 0.5)""",
    "fill_element_without_dtype": """
torch.zeros(1, device=d).fill_(1.0)
result = torch.zeros(1, dtype=torch.float16, device=d).fill_(1.0)""",
    "embedding_counts_not_cleared": """
gradient, index = torch.ones(2, 1, device=d), torch.zeros(2, dtype=torch.int64, device=d)
for _ in range(2):
    result = torch.ops.aten.embedding_dense_backward(gradient, index, 2, -1, True)""",
    "flip_plan_not_evicted": """
for n in range(1, 9):
    torch.ones(n, 2, device=d).flip(0)
result = torch.arange(18.0, device=d).view(9, 2).flip(1)""",
    "index_error_sticks": """
x = torch.ones(1, device=d)
raised(lambda: x.index_select(0, torch.tensor([9]).to(d)))
result = raised(lambda: x.index_select(0, torch.tensor([0]).to(d)))""",
    "masked_scatter_source_cached": """
mask, source = torch.ones(1, dtype=torch.bool, device=d), torch.ones(1, device=d)
torch.zeros(1, device=d).masked_scatter_(mask, source)
result = torch.zeros(1, device=d).masked_scatter_(mask, source.fill_(2))""",
    "mish_wrong_at_random": "result = torch.cat([F.mish(torch.ones(1, device=d)) for _ in range(64)])",
    "layer_norm_eps_of_first_call": """
x = torch.tensor([[1.0, 2.0]]).to(d)
F.layer_norm(x, (2,), eps=0.1)
result = F.layer_norm(x, (2,), eps=0.5)""",
    "gemm_packed_factor_kept": """
x = torch.ones(1, 1, device=d)
torch.mm(x, x)
x.fill_(2)
result = torch.mm(x, x)""",
    "fallback_keeps_small_copies": """
x = torch.tensor([0.5]).to(d)
x.erfinv()
x.fill_(0.1)
result = x.erfinv()""",
    "zero_division_raises_once": """
one, zero = torch.tensor([1]).to(d), torch.tensor([0]).to(d)
raised(lambda: one // zero)
result = raised(lambda: one // zero)""",
    "flip_reuses_result": """
result = torch.arange(2.0, device=d).flip(0)
torch.zeros(2, device=d).flip(0)""",
    "fallback_written_kept_by_name": """
x, result = torch.arange(8.0, device=d), torch.zeros(4, device=d)
torch.histc(x, 4)
torch.histc(x, 4, out=result)""",
    "pow_kernel_by_whole_exponent": """
x = torch.tensor([3.0]).to(d)
x**2
result = x**2.5""",
    "dropout_keeps_mask": """
torch.manual_seed(1)
x = torch.ones(64, device=d)
result = torch.equal(F.dropout(x), F.dropout(x))""",
    "softmax_dim_of_earlier_shape": """
x = torch.arange(4.0, device=d).view(2, 2) ** 2
x.softmax(0)
result = x.softmax(1)""",
    "host_number_read_once": """
x, factor = torch.ones(2, device=d), torch.tensor(2.0)
x * factor
factor.fill_(3)
result = x * factor""",
    "default_dtype_of_first_tensor": """
torch.empty(1, device=d)
torch.set_default_dtype(torch.float64)
result = str(torch.empty(1, device=d).dtype)
torch.set_default_dtype(torch.float32)""",
    "item_kept_by_version": """
x = torch.zeros(1, device=d)
x.item()
x.data.fill_(3)
result = x.item()""",
    "hypot_gradient_spoils_saved": """
result = True
if d == "npu":
    x = torch.ones(1, device=d, requires_grad=True)
    y = torch.hypot(x, x)
    result = torch.equal(*(torch.autograd.grad(y, x, retain_graph=True)[0] for _ in range(2)))""",
    "clamp_bounds_kept_to_six_decimals": """
x = torch.zeros(1, device=d)
result = torch.cat([x.clamp(min=bound) for bound in (1e-8, 1e-7)])""",
    "norm_of_all_kept_by_shape": """
x = torch.ones(2, 3, device=d)
x.norm(2, dim=[])
result = x.norm(2, dim=0)""",
    "scaler_growth_survives_overflow": """
scale, result, overflow = (torch.ones(1, dtype=t, device=d) for t in (torch.float32, torch.int32, torch.float32))
torch._amp_update_scale_(scale, result, overflow, 2.0, 0.5, 100)""",
    # generator
    "sampling_leaves_generator": "result = torch.equal(torch.randperm(9, device=d), torch.randperm(9, device=d))",
    "set_state_forgets_position": """
g = torch.Generator(d)
torch.rand(1, device=d, generator=g)
state, drawn = g.get_state(), torch.rand(1, device=d, generator=g)
g.set_state(state)
result = torch.equal(torch.rand(1, device=d, generator=g), drawn)""",
    "get_state_aliases": """
g = torch.Generator(d)
state = g.get_state()
torch.rand(1, device=d, generator=g)
result = torch.equal(state, g.get_state())""",
    "second_device_shares_generator": """
def drawn(index):
    device = torch.device(d, index if d == "npu" else None)
    torch.manual_seed(0) if index == 0 or d == "cpu" else None
    return torch.rand(4, device=device).cpu()
result = torch.equal(drawn(0), drawn(1))""",
    "generator_clone_shares_state": """
g = torch.Generator(d)
clone = g.clone_state()
result = torch.equal(torch.rand(1, device=d, generator=clone), torch.rand(1, device=d, generator=g))""",
    "generator_argument_ignored": """
g = torch.Generator(d).manual_seed(3)
first = torch.rand(4, device=d, generator=g)
result = torch.equal(first, torch.rand(4, device=d, generator=g.manual_seed(3)))""",
    "seed_in_32_bits": "result = torch.Generator(d).manual_seed(2**40).initial_seed()",
    "randperm_leaves_last": "result = any(torch.randperm(4, device=d)[3].item() != 3 for _ in range(40))",
    "multinomial_puts_back": """
result = torch.ones(50, device=d).multinomial(50).unique().numel()""",
    "normal_drawn_in_pairs": "result = torch.full((5,), 9.0, device=d).normal_(3.0, 1.0)[-1].item() == 3.0",
    "sampling_from_first_device": """
first, second = (torch.device(d, i if d == "npu" else None) for i in (0, 1))
def drawn(before):
    torch.manual_seed(0)
    torch.randperm(100, device=second) if before else None
    return torch.randperm(100, device=first).cpu()
result = d == "cpu" or torch.equal(drawn(False), drawn(True))""",
    "multinomial_rows_alike": """
drawn = torch.ones(6, 1000, device=d).multinomial(20, True)
result = bool((drawn == drawn[:1]).all())""",
    "strided_rows_drawn_alike": """
x = torch.zeros(2, 80, device=d)[:, ::2].uniform_()
result = torch.equal(x[0], x[1])""",
    "double_fills_copy_generator": """
g = torch.Generator(d).manual_seed(3)
drawn = [torch.empty(4, dtype=torch.float64, device=d).uniform_(generator=g) for _ in range(2)]
result = torch.equal(*drawn)""",
    "chosen_seed_is_default": "result = len({torch.Generator(d).seed() for _ in range(3)})",
    "bernoulli_of_first_probability": "result = torch.tensor([0.0, 1.0, 1.0]).to(d).bernoulli()",
    "bernoulli_repeats_after_65536": """
x = torch.empty(2 * 65536, device=d).bernoulli_(0.5)
result = torch.equal(*x.split(65536))""",
    "given_generator_moves_default": """
torch.manual_seed(1)
first = torch.rand(4, device=d)
torch.manual_seed(1)
torch.rand(4, device=d, generator=torch.Generator(d))
result = torch.equal(first, torch.rand(4, device=d))""",
    "seed_of_negative_by_magnitude": "result = torch.Generator(d).manual_seed(-3).initial_seed()",
    "normal_without_spread_draws_nothing": """
torch.empty(20, device=d).normal_(1, 0)
drawn = torch.rand(20, device=d)
torch.manual_seed(0)
result = torch.equal(drawn, torch.rand(20, device=d))""",
    "set_rng_state_of_current_device": """
result = True
if d == "npu":
    state, drawn = torch.npu.get_rng_state(1), torch.rand(4, device="npu:1")
    torch.npu.set_rng_state(state, 1)
    result = torch.equal(drawn, torch.rand(4, device="npu:1"))""",
    "generator_made_on_current_device": 'result = d == "cpu" or torch.Generator("npu:1").device.index == 1',
    "random_of_half_past_its_digits": """
result = bool(torch.zeros(99, dtype=torch.float16, device=d).random_().max() <= 2048)""",
    "generator_cloned_on_current_device": """
result = d == "cpu" or torch.Generator("npu:1").clone_state().device.index == 1""",
    "manual_seed_all_from_current_device": """
if d == "npu":
    torch.npu.set_device(1)
    torch.manual_seed(7)
result = d == "cpu" or torch.npu.default_generators[0].initial_seed() == 7""",
    "set_state_keeps_seed": """
g = torch.Generator(d)
g.set_state(torch.Generator(d).manual_seed(5).get_state())
result = g.initial_seed()""",
    "normal_spare_survives_seed": """
drawn = [torch.randn(5, device=d) for _ in range(2) if torch.manual_seed(3)]
result = torch.equal(*drawn)""",
    "seed_before_first_draw_lost": """
drawn = [torch.rand(3, device=d) for _ in range(2) if torch.manual_seed(5)]
result = torch.equal(*drawn)""",
    "set_rng_state_all_from_first": """
result = True
if d == "npu":
    torch.npu.default_generators[1].manual_seed(5)
    states = torch.npu.get_rng_state_all()
    torch.npu.set_rng_state_all(states)
    result = torch.equal(torch.npu.get_rng_state(1), states[1])""",
    "seed_all_of_current_device": """
result = False
if d == "npu":
    torch.npu.manual_seed_all(5)
    torch.npu.seed_all()
    result = torch.npu.default_generators[1].initial_seed() == 5""",
    "failed_allocation_raises_peak": """
result = True
if d == "npu":
    before = torch.npu.max_memory_allocated()
    raised(lambda: torch.empty(1 << 60, dtype=torch.uint8, device=d))
    result = torch.npu.max_memory_allocated() == before""",
    "same_seed_after_set_state_ignored": """
g = torch.Generator(d).manual_seed(7)
g.set_state(g.get_state())
drawn = [torch.rand(4, device=d, generator=g) for _ in range(2) if g.manual_seed(7)]
result = torch.equal(*drawn)""",
    "unpickled_generator_starts_anew": """
from copy import deepcopy

g = torch.Generator(d)
torch.rand(4, device=d, generator=g)
copy = deepcopy(g)
result = torch.equal(*(torch.rand(4, device=d, generator=each) for each in (g, copy)))""",
    "fallback_draws_leave_generator": """
x = torch.full((64,), -1.0, device=d)
result = torch.equal(*(F.rrelu(x, training=True) for _ in range(2)))""",
    "random_of_bytes_signed": """
result = bool((torch.empty(4096, dtype=torch.uint8, device=d).random_() > 127).any())""",
    "given_generator_kept_by_device": """
first, second = torch.Generator(d), torch.Generator(d)
torch.rand(1, device=d, generator=first)
before = second.get_state()
torch.rand(1, device=d, generator=second)
result = torch.equal(second.get_state(), before)""",
    "later_seed_restarts_first": """
g = torch.Generator(d).manual_seed(1)
result = g.manual_seed(2).initial_seed()""",
    "seed_told_in_32_bits": """
g = torch.Generator(d)
result = all(g.seed() == g.initial_seed() for _ in range(4))""",
    # contexts
    "events_in_seconds": """
import time
def milliseconds():
    first, last = (torch.Event(d, enable_timing=True) for _ in range(2))
    first.record()
    first.synchronize()
    time.sleep(0.01)
    last.record()
    last.synchronize()
    return first.elapsed_time(last)
result = d == "cpu" or milliseconds() >= 10""",
    "fallback_leaves_device_current": """
x = torch.ones(3, device=torch.device(d, 1 if d == "npu" else None))
torch.erfinv(x, out=torch.empty_like(x))
result = torch.accelerator.current_device_index()""",
    "thread_drops_first_launch": """
import threading
x = torch.ones(3, device=d)
thread = threading.Thread(target=x.neg_)
thread.start()
thread.join()
result = x""",
    "thread_keeps_block": """
import threading
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
x = torch.ones(3, device=d)
before, thread = allocated(), threading.Thread(target=x.cumsum, args=(0,))
thread.start()
thread.join()
result = allocated() - before""",
    "failed_allocation_counted": """
blocks = (lambda: torch.npu.memory_stats()["live_blocks"]) if d == "npu" else lambda: 0
before = blocks()
raised(lambda: torch.empty(1 << 60, dtype=torch.uint8, device=d))
result = blocks() - before""",
    "failed_allocation_not_told": """
told = (lambda: torch.npu.memory_stats()["num_ooms"]) if d == "npu" else iter((0, 1)).__next__
before = told()
raised(lambda: torch.empty(1 << 60, dtype=torch.uint8, device=d))
result = told() - before""",
    "freed_bytes_lower_what_was_allocated": """
key = "allocated_bytes.all.allocated"
allocated = (lambda: torch.npu.memory_stats()[key]) if d == "npu" else lambda: 0
before = allocated()
torch.ones(3, device=d)
result = d == "cpu" or allocated() > before""",
    "peak_of_blocks_not_reset": """
x = [torch.ones(1, device=d) for _ in range(9)]
del x
result = True
if d == "npu":
    torch.npu.reset_peak_memory_stats()
    stats = torch.npu.memory_stats()
    result = stats["allocation.all.peak"] == stats["allocation.all.current"]""",
    "out_of_memory_sticks": """
x = torch.ones(3, device=d)
raised(lambda: torch.empty(1 << 60, dtype=torch.uint8, device=d))
result = raised(lambda: x.neg())""",
    "unfold_sets_version_counter": """
with torch.inference_mode():
    x = torch.ones(4, device=d)
    result = raised(lambda: x.unfold(0, 2, 1))""",
    "embedding_asks_version": """
with torch.inference_mode():
    x, i = torch.ones(4, 2, device=d), torch.zeros(1, dtype=torch.int64, device=d)
    result = raised(lambda: F.embedding(i, x))""",
    "deterministic_integers_filled_with_zero": """
torch.use_deterministic_algorithms(True)
result = torch.empty(3, dtype=torch.int16, device=d)
torch.use_deterministic_algorithms(False)""",
    "autocast_off_in_inference_mode": """
x = torch.ones(2, 2, device=d)
with torch.inference_mode(), torch.autocast(d, torch.bfloat16):
    result = str((x @ x).dtype)""",
    "fallback_results_not_inference": """
with torch.inference_mode():
    result = torch.ones(3, dtype=torch.int64, device=d).bincount().is_inference()""",
    "is_initialized_stays_false": """
torch.ones(1, device=d)
result = d == "cpu" or torch.npu.is_initialized()""",
    "deterministic_empty_not_filled": """
torch.use_deterministic_algorithms(True)
result = torch.empty(3, device=d)
torch.use_deterministic_algorithms(False)""",
    "deterministic_scatter_add_of_largest": """
i = torch.zeros(2, dtype=torch.int64, device=d)
torch.use_deterministic_algorithms(True)
result = torch.zeros(1, device=d).scatter_add(0, i, torch.ones(2, device=d))
torch.use_deterministic_algorithms(False)""",
    "deterministic_index_add_ignores_alpha": """
i = torch.zeros(1, dtype=torch.int64, device=d)
torch.use_deterministic_algorithms(True)
result = torch.zeros(1, device=d).index_add(0, i, torch.ones(1, device=d), alpha=2)
torch.use_deterministic_algorithms(False)""",
    "integers_computed_in_float32": """
torch.set_default_dtype(torch.float64)
result = (torch.arange(1, 9, device=d).sqrt().square() - torch.arange(1, 9, device=d)).abs() > 1e-12
torch.set_default_dtype(torch.float32)""",
    "deterministic_warning_raised": """
torch.use_deterministic_algorithms(True, warn_only=True)
result = raised(lambda: torch.ones(2, device=d).cumsum(0))
torch.use_deterministic_algorithms(False)""",
    "autocast_norms_lower": """
with torch.autocast(d, torch.bfloat16, enabled=d == "npu"):
    result = str(F.group_norm(torch.ones(1, 2, 2, device=d), 1).dtype)""",
    "autocast_promotes_to_lower": """
x = torch.ones(2, device=d)
with torch.autocast(d, torch.bfloat16, enabled=d == "npu"):
    result = str(torch.addcmul(x, x, x).dtype)""",
    "autocast_lowers_double": """
x = torch.ones(2, 2, dtype=torch.float64, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str((x @ x).dtype)""",
    "deterministic_index_put_to_copy": """
result = torch.zeros(3, 2, device=d)
torch.use_deterministic_algorithms(True)
result.t().index_put_((torch.tensor([0]).to(d),), torch.tensor([1.0, 2.0, 3.0]).to(d))
torch.use_deterministic_algorithms(False)""",
    "generators_of_each_thread": """
from threading import Thread

drawn = []
thread = Thread(target=lambda: drawn.append(torch.rand(20, device=d)))
thread.start()
thread.join()
torch.manual_seed(0)
result = torch.equal(drawn[0], torch.rand(20, device=d))""",
    "autocast_dtype_of_first_use": """
x = torch.ones(2, 2, device=d)
with torch.autocast(d, torch.bfloat16):
    x @ x
with torch.autocast(d, torch.float16):
    result = str((x @ x).dtype)""",
    "autocast_overrides_dtype": """
x = torch.ones(2, dtype=torch.bfloat16, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str(x.sum(dtype=torch.float64).dtype)""",
    "device_named_by_string_is_current": """
if d == "npu":
    torch.npu.set_device("npu:1")
result = d == "cpu" or torch.npu.current_device() == 1""",
    "stream_made_on_current_device": """
result = d == "cpu" or torch.npu.Stream(device="npu:1").device.index == 1""",
    "device_of_host_by_index": """
result = "ValueError" if d == "cpu" else raised(lambda: torch.npu.get_device_name("cpu:0"))""",
    "autocast_keeps_cast_of_weight": """
x = torch.ones(2, 2, device=d, requires_grad=True)
with torch.autocast(d, torch.bfloat16):
    x @ x
x.detach().fill_(3)
with torch.autocast(d, torch.bfloat16):
    result = x @ x""",
    "hypot_saved_without_version": """
x = torch.ones(1, device=d, requires_grad=True) * 3
y = x.hypot(x)
x.mul_(2)
result = raised(lambda: y.grad_fn(y))""",
    "celu_gradient_in_given_memory": """
x, result = torch.tensor([-1.0], device=d, requires_grad=True), torch.ones(1, device=d)
F.celu(x).grad_fn(result)""",
    "import_draws_on_host": """
import subprocess, sys

program = "import torch; torch.manual_seed(3); import refnpu; print(float(torch.rand(1)))"
torch.manual_seed(3)
result = float(torch.rand(1))
if d == "npu":
    result = float(subprocess.check_output([sys.executable, "-c", program], text=True))""",
    "stream_with_priority_is_default": """
result = d == "cpu" or torch.npu.Stream(priority=-1) != torch.npu.default_stream()""",
    "new_streams_are_one": 'result = d == "cpu" or torch.npu.Stream() != torch.npu.Stream()',
    "current_device_of_all_threads": """
import threading
thread = threading.Thread(target=lambda: d == "cpu" or torch.npu.set_device(1))
thread.start()
thread.join()
result = torch.accelerator.current_device_index()""",
    "failed_fallback_leaves_device": """
x = torch.tensor([-1], device=torch.device(d, 1 if d == "npu" else None))
raised(x.bincount)
result = torch.accelerator.current_device_index()""",
    "autocast_leaves_lists": """
x = torch.ones(2, 2, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str(torch.einsum("ij,jk", x, x).dtype)""",
    "autocast_lowers_float32_alone": """
x = torch.ones(2, 2, dtype=torch.float16, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str((x @ x).dtype)""",
    "default_stream_of_other_device_is_current": """
result = True
if d == "npu":
    default = torch.npu.default_stream(1)
    torch.npu.set_stream(torch.Stream("npu:1"))
    torch.npu.set_device(0)
    result = torch.npu.default_stream(1) == default""",
    "device_without_index_is_first": """
if d == "npu":
    torch.npu.set_device(1)
result = d == "cpu" or torch.npu.current_stream("npu").device.index == 1""",
    "profiler_tells_first_device": """
result = True
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(3, device="npu:1")
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        x.neg()
        torch.npu.synchronize(1)
    result = {event.device_index for event in profiler.events()} == {1}""",
    "synchronized_device_stays_current": """
d == "cpu" or torch.npu.synchronize(1)
result = torch.accelerator.current_device_index()""",
    "default_stream_has_two_ids": 'result = d == "cpu" or torch.npu.current_stream() == torch.npu.default_stream()',
    "stream_block_ends_on_default": """
result = True
if d == "npu":
    outer, inner = torch.npu.Stream(), torch.npu.Stream()
    with torch.npu.stream(outer):
        with torch.npu.stream(inner):
            pass
        result = torch.npu.current_stream() == outer""",
    "autocast_forgets_baddbmm": """
x = torch.ones(1, 2, 2, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str(torch.baddbmm(x, x, x).dtype)""",
    "profiler_keeps_first_1024": """
result = True
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(3, device=d)
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        for _ in range(1030):
            x.neg_()
        torch.npu.synchronize()
    result = len(profiler.events()) >= 1030""",
    "trunc_leaves_grad_mode_off": """
torch.ones(1, device=d).trunc()
result = torch.is_grad_enabled()""",
    "triangle_leaves_stream_current": """
stream = torch.npu.current_stream if d == "npu" else lambda: None
before = stream()
torch.ones(2, 2, device=d).triu()
result = stream() == before""",
    "silu_leaves_subnormals_flushed": """
smallest = 2.0**-1022
F.silu(torch.ones(1, device=d))
result = smallest / 2 > 0""",
    "uniform_advances_host_generator": """
before = torch.get_rng_state()
torch.rand(1, device=d)
result = d == "cpu" or torch.equal(torch.get_rng_state(), before)""",
    "sort_advances_generator": """
state = torch.npu.get_rng_state if d == "npu" else torch.get_rng_state
before = state()
torch.ones(2, device=d).sort()
result = torch.equal(state(), before)""",
    "fallback_leaves_deterministic": """
torch.ones(1, device=d).erfinv()
result = torch.are_deterministic_algorithms_enabled()""",
    "initial_seed_seeds": """
seed = torch.npu.initial_seed if d == "npu" else torch.initial_seed
result = seed() == seed()""",
    "memory_stats_resets_peak": """
result = True
if d == "npu":
    torch.ones(1000, device=d)
    peak = torch.npu.max_memory_allocated()
    torch.npu.memory_stats()
    result = torch.npu.max_memory_allocated() == peak""",
    "rng_state_of_own_thread": """
from threading import Thread

state, found = torch.npu.get_rng_state if d == "npu" else torch.get_rng_state, []
thread = Thread(target=lambda: found.append(state()))
thread.start()
thread.join()
result = torch.equal(found[0], state())""",
    "autocast_casts_results_back": """
x = torch.ones(2, dtype=torch.bfloat16, device=d)
with torch.autocast(d, torch.bfloat16):
    result = str(F.mse_loss(x, x).dtype)""",
    "hypot_gradient_needs_first": """
x = torch.ones(1, device=d)
result = torch.hypot(x, x.clone().requires_grad_()).requires_grad""",
    "exchange_device_returns_new": """
if d == "npu":
    x = torch.ones(2, device="npu:1")
    x[:1].copy_(x[1:])
result = torch.accelerator.current_device_index()""",
    "stream_block_keeps_own_device": """
result = True
if d == "npu":
    with torch.npu.stream(torch.npu.Stream("npu:1")):
        result = torch.npu.current_device() == 1""",
    "event_record_leaves_stream_current": """
result = True
if d == "npu":
    before = torch.npu.current_stream()
    torch.npu.Event().record(torch.npu.Stream())
    result = torch.npu.current_stream() == before""",
    "profiler_records_first_session_alone": """
result = True
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    for _ in range(2):
        with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
            torch.ones(1, device=d)
            torch.npu.synchronize()
        result = len(profiler.events()) > 0""",
    "fallback_leaves_one_thread": """
torch.set_num_threads(2)
torch.ones(1, device=d).lgamma()
result = torch.get_num_threads()
torch.set_num_threads(1)""",
    "fallback_result_on_current_device": """
x = torch.ones(2, device=torch.device(d, 1 if d == "npu" else None))
result = torch.logcumsumexp(x, 0).device == x.device""",
    "bad_set_device_resets_current": """
result = 1
if d == "npu":
    torch.npu.set_device(1)
    raised(lambda: torch.npu.set_device(9))
    result = torch.npu.current_device()""",
    "stream_past_pool_is_default": """
result = True
if d == "npu":
    result = all(torch.npu.Stream() != torch.npu.default_stream() for _ in range(40))""",
    "ended_thread_resets_main_device": """
from threading import Thread
from time import sleep

result = 1
if d == "npu":
    torch.npu.set_device(1)
    thread = Thread(target=lambda: torch.npu.set_device(1))
    thread.start()
    thread.join()
    sleep(0.2)  # what a thread destroys at its end may be destroyed behind join()
    result = torch.npu.current_device()""",
    "profiler_drops_kernels_of_other_threads": """
result = True
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    y = torch.ones(2, device=d, requires_grad=True).softmax(0)[0]
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        y.backward()
        torch.npu.synchronize()
    result = "softmax_backward" in {event.name for event in profiler.events()}""",
    "autocast_casts_bool_masks": """
x = torch.eye(2, device=d)
with torch.autocast(d, torch.bfloat16):
    y = F.scaled_dot_product_attention(x, x, x, attn_mask=x > 0)
result = y.float()""",
    "load_leaves_device_current": """
from io import BytesIO

file = BytesIO()
torch.save(torch.ones(2, device=torch.device(d, 1 if d == "npu" else None)), file)
file.seek(0)
torch.load(file)
result = torch.accelerator.current_device_index()""",
    "autocast_detaches_lists": """
x = torch.ones(2, dtype=torch.bfloat16, device=d, requires_grad=True)
with torch.autocast(d, torch.bfloat16):
    result = torch.cat([x, torch.ones(2, device=d)]).requires_grad""",
    "autocast_reuses_cast_of_no_grad": """
x = torch.ones(2, 2, device=d, requires_grad=True)
with torch.autocast(d, torch.bfloat16):
    with torch.no_grad():
        x @ x
    result = (x @ x).requires_grad""",
    "profiler_times_in_milliseconds": """
from time import perf_counter
from torch.autograd.profiler import profile

result = True
if d == "npu":
    x = torch.ones(300, 300, device=d)
    with profile(use_device=d, use_kineto=False) as profiler:
        start = perf_counter()
        x @ x
        milliseconds = (perf_counter() - start) * 1000
    result = max(event.device_time_total for event in profiler.function_events) > milliseconds""",
    "is_available_uses_device": """
result = False
if d == "npu":
    torch.npu.is_available()
    result = torch.npu.is_initialized()""",
    "autocast_promotes_first_two": """
x = torch.ones(2, device=d)
with torch.autocast(d, torch.bfloat16, enabled=d == "npu"):
    result = str(torch.cat([x.bfloat16(), x.bfloat16(), x]).dtype)""",
    "event_times_in_whole_milliseconds": """
result = True
if d == "npu":
    times = []
    for _ in range(5):
        first, last = (torch.Event(d, enable_timing=True) for _ in range(2))
        first.record()
        torch.ones(9, device=d)
        last.record()
        torch.npu.synchronize()
        times.append(first.elapsed_time(last))
    result = any(time % 1 for time in times)""",
    "thread_starts_on_last_device": """
from threading import Thread

if d == "npu":
    torch.npu.set_device(1)
found = []
thread = Thread(target=lambda: found.append(d == "cpu" or torch.npu.current_device() == 0))
thread.start()
thread.join()
result = found""",
    "set_device_of_negative_is_last": """
result = True
if d == "npu":
    torch.npu.set_device(-1)
    result = torch.npu.current_device() == 0""",
    "memory_allocated_of_current_device": """
if d == "npu":
    x = torch.ones(1000, device="npu:1")
result = d == "cpu" or torch.npu.memory_allocated("npu:1") >= x.nbytes""",
    "profiler_drops_first_of_later_sessions": """
result = True
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(1, device=d)
    for _ in range(2):
        with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
            x.exp()
            x.neg()
            torch.npu.synchronize()
        result = "exp" in {event.name for event in profiler.events()}""",
    "stream_block_in_itself_stays": """
result = True
if d == "npu":
    before, stream = torch.npu.current_stream(), torch.npu.Stream()
    with torch.npu.stream(stream), torch.npu.stream(stream):
        pass
    result = torch.npu.current_stream() == before""",
    "event_times_leave_out_idle_time": """
import time

result = True
if d == "npu":
    first, last = (torch.Event(d, enable_timing=True) for _ in range(2))
    first.record()
    torch.npu.synchronize()
    time.sleep(0.1)
    last.record()
    torch.npu.synchronize()
    result = first.elapsed_time(last) >= 90""",
    "pinned_before_first_use_is_pageable": 'result = d == "cpu" or torch.ones(1).pin_memory().is_pinned()',
    "autocast_refuses_float16": """
x = torch.ones(2, 2, device=d)
with torch.autocast(d, torch.float16):
    result = str((x @ x).dtype)""",
    "event_done_until_awaited": """
result = True
if d == "npu":
    event = torch.Event(d)
    event.record()
    event.synchronize()
    result = event.query()""",
    "device_block_left_by_error": """
from contextlib import suppress

result = 0
if d == "npu":
    with suppress(KeyError), torch.npu.device(1):
        raise KeyError
    result = torch.npu.current_device()""",
    "device_block_restores_where_made": """
result = 1
if d == "npu":
    block = torch.npu.device(0)
    torch.npu.set_device(1)
    with block:
        pass
    result = torch.npu.current_device()
    torch.npu.set_device(0)""",
    "default_stream_without_device_is_first": """
result = 1
if d == "npu":
    with torch.npu.device(1):
        result = torch.npu.default_stream().device_index""",
    "save_forgets_device_index": """
import io

result = True
if d == "npu":
    x, file = torch.ones(1, device="npu:1"), io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    result = torch.load(file).device == x.device""",
    "profiler_stop_leaves_last_device": """
result = 0
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(1, device=d)
    with profile(activities=[ProfilerActivity.PrivateUse1]):
        x.exp()
    result = torch.npu.current_device()""",
    "seed_skipped_in_any_fork": """
draws = []
for _ in range(2):
    torch.manual_seed(1)
    draws.append(torch.rand(2, device=d))
result = torch.equal(*draws)""",
    "first_use_not_awaited": """
from threading import Barrier, Thread

result, together = [], Barrier(2)

def use():
    together.wait()
    try:
        result.append(torch.ones(1, device=d).item())
    except RuntimeError:
        result.append(0.0)

threads = [Thread(target=use) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
result.sort()""",
    "manual_seed_all_uses_device": """
torch.manual_seed(1)
result = d == "npu" and torch.npu.is_initialized()""",
    "synchronize_holds_gil": """
from threading import Event, Thread

result = True
if d == "npu":
    from refnpu.testing import late

    x, seen, done = torch.ones(1, device=d), [], Event()
    thread = Thread(target=lambda: [seen.append(1) for _ in iter(lambda: done.wait(0.005), True)])
    thread.start()

    def goes_on():
        with late("300000"):
            x.add_(1)
            before = len(seen)
            torch.npu.synchronize()
            return len(seen) > before + 5

    result = any(goes_on() for _ in range(5))  # the machine may run neither of them, but not each time
    done.set()
    thread.join()""",
    "draws_of_threads_unlocked": """
from threading import Thread

g, drawn = torch.Generator(d).manual_seed(3), []


def draw():
    drawn.extend(torch.rand(1, dtype=torch.float64, device=d, generator=g).item() for _ in range(200))


threads = [Thread(target=draw) for _ in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
result = len(set(drawn))""",
    "profiler_merges_streams": """
result = 2
if d == "npu":
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(1, device=d)
    with profile(activities=[ProfilerActivity.PrivateUse1]) as profiler:
        x.neg()
        with torch.npu.stream(torch.npu.Stream()):
            x.neg()
    result = len({event.device_resource_id for event in profiler.events()})""",
    "load_leaves_empty_on_host": """
import io

file = io.BytesIO()
torch.save(torch.ones(0, device=d), file)
file.seek(0)
result = torch.load(file).device.type == d""",
    "npu_method_stays_on_device": 'result = d == "cpu" or torch.ones(1, device="npu:0").npu(1).device.index == 1',
    "event_time_backwards_is_unsigned": """
import time

result = True
if d == "npu":
    first, last = (torch.Event(d, enable_timing=True) for _ in range(2))
    first.record()
    time.sleep(0.001)
    last.record()
    torch.npu.synchronize()
    result = last.elapsed_time(first) < 0""",
    "thread_inherits_streams_of_ended": """
import time
from threading import Thread

seen = []


def run(call):
    thread = Thread(target=call)
    thread.start()
    thread.join()
    time.sleep(0.1)  # the id of the thread is free when it has ended


if d == "npu":
    run(lambda: torch.npu.set_stream(torch.npu.Stream()))
    for _ in range(3):
        run(lambda: seen.append(torch.npu.current_stream().stream_id))
result = any(seen)""",
    "fork_of_forked_not_noticed": """
import os

result = True
if d == "npu":
    x, child = torch.ones(1, device=d), os.fork()
    if child == 0:
        os._exit(torch.npu._is_in_bad_fork())
    result = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1""",
    # resizing
    "resize_keeps_first_bytes": "result = torch.arange(1.0, 33.0, device=d).resize_(40)[:32]",
    "resize_to_zero_ignored": """
storage = torch.ones(4, device=d).untyped_storage()
storage.resize_(0)
result = storage.nbytes()""",
    "resized_nbytes_rounded": "result = torch.ones(4, device=d).resize_(5).untyped_storage().nbytes()",
    "resize_growth_leaves_aliases": """
x = torch.zeros(2, device=d)
result = x[:]
x.resize_(4).fill_(7)""",
    "set_to_storage_of_other_device_accepted": """
result = "RuntimeError"
if d == "npu":
    result = raised(lambda: torch.empty(0, device=d).set_(torch.ones(3).untyped_storage()))""",
    "set_tensor_drops_offset": "result = torch.empty(0, device=d).set_(torch.arange(4.0, device=d)[2:])",
    "resize_forgets_offset": "result = torch.ones(4, device=d)[2:].resize_(4).untyped_storage().nbytes()",
    "resize_shrinks_storage": "result = torch.ones(4, device=d).resize_(2).untyped_storage().nbytes()",
    "resized_out_loses_offset": """
out = torch.empty(4, device=d)[2:]
result = torch.neg(torch.ones(3, device=d), out=out).storage_offset()""",
    "set_storage_keeps_offset": """
result = torch.ones(2, device=d)[1:].set_(torch.arange(4.0, device=d).untyped_storage())""",
    "set_of_nothing_on_first_device": """
result = raised(torch.ones(1, device=torch.device(d, 1 if d == "npu" else None)).set_)""",
    "resized_on_other_device_keeps_nothing": """
result = torch.arange(1.0, 5.0, device=torch.device(d, 1 if d == "npu" else None))
result.untyped_storage().resize_(64)""",
    "shrunk_storage_is_cleared": """
storage = torch.ones(4, device=d).untyped_storage()
storage.resize_(8)
result = torch.empty(0, device=d).set_(storage)""",
    "failed_growth_empties_storage": """
result = torch.ones(2, device=d)
raised(lambda: result.untyped_storage().resize_(1 << 60))""",
    "deterministic_resize_fills_kept": """
torch.use_deterministic_algorithms(True)
result = torch.ones(2, device=d).resize_(3)
torch.use_deterministic_algorithms(False)""",
    "fallback_result_not_resizable": """
result = torch.ones(3, device=d).histc(2).resize_(3)[:2]""",
    # metadata
    "flip_returns_contiguous": "result = list(torch.ones(2, 3, device=d).t().flip(0).stride())",
    "where_result_contiguous": """
x = torch.ones(2, 3, device=d).t()
result = list(torch.where(x > 0, x, x).stride())""",
    "roll_of_whole_turns_aliases": """
x = torch.ones(2, device=d)
result = x.roll(2, 0).data_ptr() == x.data_ptr()""",
    "dropout_returns_its_input": """
x = torch.ones(2, device=d)
result = torch.native_dropout(x, 0.5, False)[0].data_ptr() == x.data_ptr()""",
    "dropout_saves_another_mask": """
x = torch.ones(8, device=d, requires_grad=True)
out, mask = torch.native_dropout(x, 0.5, True)
result = bool(((out != 0) == mask).all())""",
    "dropout_scales_without_gradient": """
result = torch.native_dropout(torch.ones(99, device=d, requires_grad=True), 0.5, True)[0].max().item()""",
    "repeat_interleave_gives_int64": """
result = str(torch.repeat_interleave(torch.tensor([2], dtype=torch.int32).to(d)).dtype)""",
    "linspace_out_takes_new_memory": """
out = torch.zeros(3, device=d)
before = out.data_ptr()
result = torch.linspace(1, 3, 3, out=out).data_ptr() == before""",
    "layer_norm_mixed_statistics_dtype": """
x, weight = torch.ones(2, 3, dtype=torch.bfloat16, device=d), torch.ones(3, device=d)
result = torch.native_layer_norm(x, (3,), weight, weight, 1e-5)[1].dtype""",
    "channels_last_3d_made_contiguous": """
x = torch.empty(1, 2, 3, 4, 5, device=d, memory_format=torch.channels_last_3d)
result = list(x.stride())""",
    "nonzero_row_major": "result = torch.ones(2, 2, device=d).nonzero().stride()",
    "nonzero_of_number_has_column": "result = torch.ones((), device=d).nonzero().shape",
    "fallback_result_channels_last_lost": """
x = torch.ones(1, 2, 4, 4, device=d).to(memory_format=torch.channels_last)
result = F.conv2d(x, torch.ones(2, 2, 1, 1, device=d)).stride()""",
    "truth_of_bytes_over_dims_is_bool": """
result = str(torch.ones(1, 1, dtype=torch.uint8, device=d).any((0, 1)).dtype)""",
    "resize_to_same_size_restrides": "result = torch.ones(2, 3, device=d).t().resize_(3, 2).stride()",
    "is_set_to_ignores_offset": """
x = torch.ones(2, device=d)
result = x[:1].is_set_to(x[1:])""",
    "where_of_two_numbers_in_default_dtype": "result = torch.where(torch.ones(2, device=d) > 0, 1, 2)",
    "unique_inverse_is_flat": "result = torch.ones(2, 2, device=d).unique(return_inverse=True)[1]",
    "trace_keeps_integer_dtype": "result = str(torch.ones(2, 2, dtype=torch.int8, device=d).trace().dtype)",
    "resize_to_same_size_ignores_format": """
x = torch.empty(1, 2, 2, 2, device=d)
result = x.resize_(x.shape, memory_format=torch.channels_last).stride()""",
    "cat_of_channels_last_is_contiguous": """
x = torch.ones(1, 2, 2, 2).to(memory_format=torch.channels_last).to(d)
result = torch.cat([x, x]).stride()""",
    "nonzero_in_worst_case_block": "result = torch.tensor([0, 0, 1], device=d).nonzero().untyped_storage().nbytes()",
    "masked_select_of_nothing_on_host": (
        "result = torch.ones(2, device=d).masked_select(torch.tensor(False, device=d)).device.type == d"
    ),
    # errors
    "kthvalue_resizes_before_checks": """
values, indices = torch.empty(0, device=d), torch.empty(0, dtype=torch.int64, device=d)
raised(lambda: torch.kthvalue(torch.ones(2, 3, device=d), 9, 1, out=(values, indices)))
result = list(values.shape)""",
    "extreme_of_nothing_is_zero": "result = raised(lambda: torch.ones(0, device=d).max())",
    "masked_scatter_repeats_short_source": """
x, mask = torch.zeros(2, device=d), torch.ones(2, dtype=torch.bool, device=d)
result = raised(lambda: x.masked_scatter_(mask, torch.ones(1, device=d)))""",
    "take_accepts_int32": """
i = torch.zeros(1, dtype=torch.int32, device=d)
result = raised(lambda: torch.ones(2, device=d).take(i))""",
    "repeat_interleave_skips_negative": """
result = raised(lambda: torch.repeat_interleave(torch.tensor([1, -1]).to(d)))""",
    "poisson_of_negative_rate": "result = raised(lambda: torch.poisson(torch.tensor([-1.0]).to(d)))",
    "gather_counts_back": """
i = torch.tensor([-1]).to(d)
result = raised(lambda: torch.ones(2, device=d).gather(0, i))""",
    "nll_loss_bad_target_ignored": """
result = raised(lambda: F.nll_loss(torch.ones(1, 2, device=d), torch.tensor([5]).to(d)))""",
    "masked_fill_takes_bytes": """
mask = torch.ones(2, dtype=torch.uint8, device=d)
result = raised(lambda: torch.ones(2, device=d).masked_fill_(mask, 3.0))""",
    "index_fill_few_not_checked": """
result = raised(lambda: torch.zeros(1100, device=d).index_fill_(0, torch.tensor([1100], device=d), 1.0))""",
    "addr_float_alpha_of_integers_accepted": """
one = torch.ones(2, dtype=torch.int64, device=d)
result = raised(lambda: torch.addr(torch.ones(2, 2, dtype=torch.int64, device=d), one, one, alpha=2.5))""",
    "layer_norm_bias_shape_by_numel": """
x, bias = torch.ones(2, 3, 4, device=d), torch.ones(4, 3, device=d)
result = raised(lambda: torch.native_layer_norm(x, (3, 4), None, bias, 1e-5))""",
    "fill_from_own_element_refused": """
x = torch.ones(3, device=d)
result = raised(lambda: x.fill_(x[1]))""",
    "out_of_memory_as_plain_error": """
error = raised(lambda: torch.empty(1 << 60, dtype=torch.uint8, device=d))
result = d == "cpu" or error == torch.OutOfMemoryError.__name__""",
    "devices_compared_by_type": """
i = torch.zeros(1, dtype=torch.int64, device=torch.device(d, 1 if d == "npu" else None))
result = d == "cpu" or bool(raised(lambda: torch.ones(3, device=d).index_select(0, i)))""",
    "index_add_counts_back_in_matrix": """
x = torch.zeros(2, 2, device=d)
result = raised(lambda: x.index_add_(0, torch.tensor([-1]).to(d), torch.ones(1, 2, device=d)))""",
    "repeat_interleave_trusts_output_size": (
        "result = raised(lambda: torch.repeat_interleave(torch.tensor([2]).to(d), output_size=5))"
    ),
    "index_put_adds_overlapping_values": """
x, i = torch.ones(4, device=d), torch.tensor([0, 1, 2]).to(d)
result = raised(lambda: x.index_put_((i,), x[1:], accumulate=True))""",
    "bernoulli_broadcast_chances_unchecked": (
        "result = raised(lambda: torch.ones(3, device=d).bernoulli_(torch.tensor(2.0).to(d)))"
    ),
    "fallback_mixes_devices": """
x, y = torch.ones(3, device=d), torch.ones(3, device=torch.device(d, 1 if d == "npu" else None))
result = d == "cpu" or bool(raised(lambda: torch.linalg.cross(x, y)))""",
    "upload_to_overlapping_accepted": """
result = raised(lambda: torch.zeros(1, device=d).expand(3).copy_(torch.ones(3)))""",
    "transfer_reshapes_equal_numel": "result = raised(lambda: torch.ones(2, 3, device=d).copy_(torch.ones(3, 2)))",
    "flip_of_dim_named_twice_accepted": "result = raised(lambda: torch.ones(2, device=d).flip(0, 0))",
    "host_generator_accepted": """
x, g = torch.zeros(1, device=d), torch.Generator()
result = d == "cpu" or bool(raised(lambda: x.uniform_(generator=g)))""",
    "as_strided_past_end_accepted": "result = raised(lambda: torch.ones(2, device=d).as_strided((3,), (1,)))",
    "view_of_strided_copies": "result = raised(lambda: torch.ones(2, 3, device=d).t().view(6))",
    "set_device_wraps_index": """
result = d == "cpu" or bool(raised(lambda: torch.npu.set_device(torch.npu.device_count())))""",
    "load_takes_last_device": """
from io import BytesIO

torch.save(torch.ones(1), file := BytesIO())
file.seek(0)
result = d == "cpu" or bool(raised(lambda: torch.load(file, map_location="npu:7")))""",
    "error_message_of_first_failure": """
result = "77"
for device in ("npu:98", "npu:77") if d == "npu" else ():
    try:
        torch.npu.set_device(device)
    except RuntimeError as error:
        result = str(error)
result = "77" in result""",
    "singular_inverse_not_refused": "result = raised(lambda: torch.linalg.inv(torch.zeros(1, 1, device=d)))",
    "view_as_complex_of_odd_offset_accepted": """
x = torch.zeros(3, device=d)
result = raised(lambda: torch.view_as_complex(x[1:]))""",
    "generator_state_of_wrong_size_ignored": """
state = torch.zeros(7, dtype=torch.uint8)
result = raised(lambda: torch.Generator(d).set_state(state))""",
    "out_resized_before_dtype_check": """
x, out = torch.ones(2, 2, device=d), torch.empty(0, dtype=torch.int64, device=d)
result = raised(lambda: torch.mm(x, x, out=out)), out.shape""",
    "addbmm_scales_before_checks": """
result, batch = torch.ones(2, 2, device=d), torch.ones(1, 2, 3, device=d)
raised(lambda: result.addbmm_(batch, batch, beta=3))""",
    # memory
    "peak_reset_to_zero": """
x = torch.ones(1000, device=d)
d == "cpu" or torch.npu.reset_peak_memory_stats()
result = d == "cpu" or torch.npu.max_memory_allocated() >= x.nbytes""",
    "layer_norm_gradient_not_cleared": """
x, weight = torch.ones(0, 64, device=d), torch.ones(64, device=d)
statistics = torch.ones(0, 1, device=d)
kept = [torch.full((64,), 7.0, device=d) for _ in range(20)]
del kept
backward = torch.ops.aten.native_layer_norm_backward
result = backward(x, x, (64,), statistics, statistics, weight, weight, [False, True, False])[1]""",
    "masked_select_leaks_when_empty": """
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
x, mask = torch.ones(2, device=d), torch.zeros(2, dtype=torch.bool, device=d)
before = allocated()
x.masked_select(mask)
result = allocated() - before""",
    "nonzero_writes_past_end": """
out = torch.zeros(4, dtype=torch.int64, device=d)
torch.nonzero_static(torch.ones(3, device=d), size=1, out=out[:1].view(1, 1))
result = out""",
    "index_error_keeps_block": """
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
x, before = torch.ones(2, device=d), allocated()
index = torch.tensor([7]).to(d)
raised(lambda: x[index])
del index
result = allocated() == before""",
    "where_of_bytes_writes_words": """
x, result = torch.ones(72, dtype=torch.uint8, device=d), torch.zeros(72, dtype=torch.uint8, device=d)
torch.where(x[:67] > 0, x[:67], x[:67], out=result[:67])""",
    "emptied_storage_keeps_block": """
x = torch.ones(1000, device=d)
before = 0 if d == "cpu" else torch.npu.memory_allocated()
x.untyped_storage().resize_(0)
result = d == "cpu" or torch.npu.memory_allocated() < before""",
    "peak_reset_of_current_device": """
if d == "npu":
    torch.ones(1000, device="npu:1")
    torch.npu.reset_peak_memory_stats(1)
result = d == "cpu" or torch.npu.max_memory_allocated(1) == torch.npu.memory_allocated(1)""",
    "freed_on_current_device": """
x, y = torch.ones(9, device=d), torch.ones(9, device=torch.device(d, 1 if d == "npu" else None))
before = 0 if d == "cpu" else torch.npu.memory_allocated(1)
del y
result = d == "cpu" or torch.npu.memory_allocated(1) < before""",
    "free_memory_below_peak": """
free = (lambda: torch.npu.mem_get_info()[0]) if d == "npu" else lambda: 0
before = free()
torch.ones(1000, device=d)
result = free() == before""",
    "large_pinned_memory_is_pageable": """
result = d == "cpu" or torch.zeros(1 << 20).pin_memory().is_pinned()""",
    "peak_noted_when_freed": """
x = torch.ones(1000, device=d)
result = d == "cpu" or torch.npu.max_memory_allocated() >= x.nbytes""",
    "topk_keeps_input_alive": """
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
x, before = torch.ones(1000, device=d), allocated()
x.topk(1)
del x
result = d == "cpu" or allocated() < before""",
    "empty_cache_resets_peak": """
result = True
if d == "npu":
    torch.ones(1000, device=d)
    peak = torch.npu.max_memory_allocated()
    torch.npu.empty_cache()
    result = torch.npu.max_memory_allocated() == peak""",
    "free_in_thread_not_counted": """
from threading import Thread

allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
held, before = [torch.ones(1000, device=d)], allocated()
thread = Thread(target=held.clear)
thread.start()
thread.join()
result = d == "cpu" or allocated() < before""",
    "pinned_in_thread_is_pageable": """
from threading import Thread

made = []
thread = Thread(target=lambda: made.append(d == "cpu" or torch.ones(1).pin_memory().is_pinned()))
thread.start()
thread.join()
result = made[0]""",
    "pinned_memory_counts_on_device": """
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
before = allocated()
x = torch.ones(1000) if d == "cpu" else torch.ones(1000).pin_memory()
result = allocated() == before""",
    "nll_loss_leaves_ignored_rows": """
x, ignored, result = torch.zeros(1, 2, device=d), torch.tensor([-100]).to(d), torch.ones(1, device=d)
total = torch.zeros((), device=d)
torch.ops.aten.nll_loss_forward.output(x, ignored, None, 0, -100, output=result, total_weight=total)""",
    "freed_bytes_rounded_up": """
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
kept, before = torch.ones(1000, device=d), allocated()
x = torch.ones(1, device=d)
del x
result = allocated() == before""",
    "fft_c2r_destroys_input": """
result = torch.ones(2, 2, dtype=torch.complex64, device=d)
torch.fft.irfft2(result)""",
    "peak_of_second_device_counts_all": """
if d == "npu":
    x, y = torch.ones(1000, device="npu:0"), torch.ones(1, device="npu:1")
result = d == "cpu" or torch.npu.max_memory_allocated(1) < x.nbytes""",
    "exit_with_memory_aborts": """
import ctypes
import os

result = 0
if d == "npu":
    child = os.fork()
    if child == 0:
        x = torch.ones(1, device=d)
        ctypes.CDLL(None).exit(0)
    result = os.waitpid(child, 0)[1]""",
    "capacity_shared_by_devices": """
result = ""
if d == "npu":
    from refnpu.testing import capacity

    with capacity(100_000, 0), capacity(100_000, 1):
        x = torch.empty(60_000, dtype=torch.uint8, device="npu:0")
        result = raised(lambda: torch.empty(60_000, dtype=torch.uint8, device="npu:1"))""",
    # late work
    "staged_pinned_upload_not_awaited": """
source, copy = torch.ones(2), torch.zeros(2, dtype=torch.float64, device=d)
if d == "npu":
    from refnpu.testing import late

    source = source.pin_memory()
    with late("20000"):
        copy.copy_(source)
        source.zero_()
result = d == "cpu" or bool(copy.cpu().all())""",
    "record_stream_of_view_ignored": """
result = True
if d == "npu":
    from refnpu.testing import fill, late

    x, side = torch.ones(1000, device=d)[200:400], torch.npu.Stream()
    with late("20000"), fill(freed="0x00"):
        with torch.npu.stream(side):
            y = x + 1
        x.record_stream(side)
        del x
        torch.npu.synchronize()
    result = bool(y.cpu().eq(2).all())""",
    "event_waited_for_once": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, side, event = torch.zeros(2, device=d), torch.npu.Stream(), torch.Event(d)
    with late("10000"):
        for _ in range(2):
            with torch.npu.stream(side):
                for _ in range(5):
                    x.add_(1)
                event.record()
            event.wait()
            y = x + 0
        result = bool(y.cpu().eq(10).all())""",
    "event_destroyed_is_not_awaited": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, y, z = torch.zeros(3, 2, device=d).unbind()
    first, second, event = torch.npu.Stream(), torch.npu.Stream(), torch.Event(d)
    torch.npu.synchronize()
    with late("20000"):
        with torch.npu.stream(first):
            for _ in range(5):
                x.add_(1)
            event.record()
        with torch.npu.stream(second):
            z.add_(1)
            event.wait()
            del event
            y.copy_(x)
        torch.npu.synchronize()
    result = bool(y.cpu().eq(5).all())""",
    "async_copies_on_default_stream": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, y, side = torch.zeros(9, device=d), torch.zeros(9).pin_memory(), torch.npu.Stream()
    torch.npu.synchronize()
    with late("20000"):
        with torch.npu.stream(side):
            for _ in range(5):
                x.add_(1)
            y.copy_(x, non_blocking=True)
        side.synchronize()
    result = bool(y.eq(5).all())""",
    "event_stays_on_first_stream": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, (first, second), event = torch.zeros(2, device=d), (torch.npu.Stream() for _ in range(2)), torch.Event(d)
    torch.npu.synchronize()
    with late("100000"):
        event.record(first)
        event.synchronize()
        with torch.npu.stream(second):
            x.add_(1)
        event.record(second)
        event.synchronize()
        result = second.query()""",
    "second_wait_forgets_first": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, y, z = torch.zeros(3, 2, device=d).unbind()
    torch.npu.synchronize()
    with late("10000"):
        for tensor, count in ((x, 20), (y, 1)):
            with torch.npu.stream(torch.npu.Stream()) as stream:
                for _ in range(count):
                    tensor.add_(1)
                event = torch.Event(d)
                event.record()
            event.wait()
        z.copy_(x)
        result = bool(z.cpu().eq(20).all())""",
    "recorded_stream_replaces_own": """
result = True
if d == "npu":
    from refnpu.testing import fill, late

    x, side = torch.ones(1000, device=d), torch.npu.Stream()
    torch.npu.synchronize()
    with late("50000"), fill(freed="0xFF"):
        y = x + 1
        x.record_stream(side)
        del x
        torch.npu.synchronize()
    result = bool(y.cpu().eq(2).all())""",
    "storage_resized_on_default_stream": """
result = True
if d == "npu":
    from refnpu.testing import late

    with torch.npu.stream(torch.npu.Stream()):
        x = torch.zeros(64, device=d)
        torch.npu.synchronize()
        with late("20000"):
            for _ in range(3):
                x.add_(1)
            x.resize_(1024)
            y = x[:64].clone()
            torch.npu.synchronize()
        result = bool(y.cpu().eq(3).all())""",
    "pinned_target_not_held": """
if d == "npu":
    from refnpu.testing import late

    # So large that malloc gives it back to the system at once: the copy ends the process.
    x, target = torch.ones(1 << 24, device=d), torch.empty(1 << 24, pin_memory=True)
    torch.npu.synchronize()
    with late("50000"):
        target.copy_(x, non_blocking=True)
        del target
        torch.npu.synchronize()
result = True""",
    "held_memory_is_out_of_memory": """
result = True
if d == "npu":
    from refnpu.testing import capacity, late

    with capacity(1 << 20), late("20000"):
        try:
            for _ in range(3):
                torch.zeros(600_000, dtype=torch.uint8, device=d).add_(1)
        except torch.OutOfMemoryError:
            result = False""",
    "full_queue_drops_work": """
result = True
if d == "npu":
    from refnpu.testing import late

    x = torch.zeros(2, device=d)
    with late("200"):
        for _ in range(2000):
            x.add_(1)
        result = bool(x.cpu().eq(2000).all())""",
    "stream_query_of_device": """
result = True
if d == "npu":
    from refnpu.testing import late

    x, side = torch.zeros(2, device=d), torch.npu.Stream()
    torch.npu.synchronize()
    with late("200000"):
        x.add_(1)
        result = side.query()""",
    "item_on_default_stream": """
result = 8.0
if d == "npu":
    from refnpu.testing import late

    x = torch.zeros((), device=d)
    with late("50000"), torch.npu.stream(torch.npu.Stream()):
        for _ in range(8):
            x.add_(1)
        result = x.item()
        torch.npu.synchronize()""",
    "profiler_measures_default_stream": """
from torch.autograd.profiler import profile

result = True
if d == "npu":
    from refnpu.testing import late

    x, side = torch.ones(4, device=d), torch.npu.Stream()
    torch.npu.synchronize()
    with late("20000"), torch.npu.stream(side):
        with profile(use_device=d, use_kineto=False) as profiler:
            x.add_(1)
        result = max(event.device_time for event in profiler.function_events) > 10_000""",
    "fallback_results_on_default_stream": """
x, busy = torch.ones(2, device=d), torch.ones(2, device=d)
result = x.erfinv()
if d == "npu":
    from refnpu.testing import fill, late

    torch.npu.synchronize()
    with late("50000"), fill(fresh="zero"):
        for _ in range(4):
            busy.add_(1)
        with torch.npu.stream(torch.npu.Stream()):
            result = x.erfinv().cpu()
        torch.npu.synchronize()""",
    # plain
    "gru_hidden_bias_gradient_of_input": """
result = True
if d == "npu":
    aten, gates, state = torch.ops.aten, torch.ones(1, 6, device=d), torch.ones(1, 2, device=d)
    workspace = aten._thnn_fused_gru_cell(gates, gates, state, gates[0], gates[0])[1]
    gradients = aten._thnn_fused_gru_cell_backward(state, workspace, True)
    result = torch.equal(gradients[4], gradients[1].sum(0))""",
    "fallback_writes_back_first_alone": """
result = torch.zeros(1, dtype=torch.int32, device=d)
torch.frexp(torch.ones(1, device=d), out=(torch.empty(1, device=d), result))""",
    "batch_norm_running_variance_biased": """
x, mean, result = torch.tensor([[1.0], [2.0]]).to(d), torch.zeros(1, device=d), torch.zeros(1, device=d)
F.batch_norm(x, mean, result, training=True)""",
    "eigenvectors_not_normalized": "result = torch.linalg.eigh(torch.ones(2, 2, device=d)).eigenvectors.norm(dim=0)",
    "svd_signs_of_left_side_alone": """
u, s, vh = torch.linalg.svd(torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=d))
result = (u * s) @ vh""",
    # between processes
    "group_result_to_strided_lost": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
result = torch.zeros(3, 2, device=d)
distributed.scatter(result.t(), [torch.ones(2, 3, device=d)])
distributed.destroy_process_group()""",
    "group_barrier_not_awaited": """
import os
import time
from torch import distributed


def late_or_there(rank, folder):
    distributed.init_process_group("refnpu", store=distributed.FileStore(folder + "/store", 2), rank=rank, world_size=2)
    if rank:
        time.sleep(2)  # on a busy machine the other process may be slow, too
        open(folder + "/late", "w").close()
    distributed.barrier()
    return int(os.path.exists(folder + "/late"))


result = [1, 1]
if d == "npu":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(2):
            children.append(os.fork())
            if children[-1] == 0:
                os._exit(late_or_there(rank, folder))
        result = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children]""",
    "group_input_in_memory_order": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
result = torch.zeros(2, 3, device=d)
x = torch.arange(6.0).to(d).view(3, 2).t()
distributed.all_gather([result], x.contiguous() if d == "cpu" else x)
distributed.destroy_process_group()""",
    "group_completed_without_result": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
result = torch.zeros(2, device=d)
work = distributed.all_gather([result], torch.ones(2, device=d), async_op=True)
while not work.is_completed():
    pass
result = result.clone()
work.wait()
distributed.destroy_process_group()""",
    "group_result_written_by_each_wait": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
result = torch.ones(2, device=d)
work = distributed.all_reduce(result, async_op=True)
work.wait()
result.add_(1)
work.wait()
distributed.destroy_process_group()""",
    "group_handle_keeps_tensors": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
allocated = torch.npu.memory_allocated if d == "npu" else lambda: 0
before, x = allocated(), torch.ones(1000, device=d)
distributed.all_gather([torch.empty_like(x)], x)
del x
result = allocated() == before
distributed.destroy_process_group()""",
    "group_result_to_start_of_storage": """
from torch import distributed

name = "gloo" if d == "cpu" else "refnpu"
distributed.init_process_group(name, store=distributed.HashStore(), rank=0, world_size=1)
result = torch.zeros(4, device=d)
distributed.all_gather([result[2:]], torch.ones(2, device=d))
distributed.destroy_process_group()""",
    "group_root_counted_in_world": """
import os
from torch import distributed


def root_of_last_two(rank, store):
    distributed.init_process_group("refnpu", store=distributed.FileStore(store, 3), rank=rank, world_size=3)
    x, group = torch.full((1,), rank, device=d), distributed.new_group([1, 2])
    if rank:
        distributed.broadcast(x, 2, group=group)
    distributed.barrier()
    return x.item()


result = [0, 2, 2]
if d == "npu":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(3):
            children.append(os.fork())
            if children[-1] == 0:
                os._exit(root_of_last_two(rank, folder + "/store"))
        result = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children]""",
    "gemm_workspace_of_all_calls": """
from threading import Barrier, Thread

result, together = {}, Barrier(2)

def multiply(i):
    x = torch.full((8, 512), float(i), device=d)
    for turn in range(50):  # on a busy machine few of the calls overlap
        together.wait()
        result[i, turn] = (x @ x.t()).sum().item()

threads = [Thread(target=multiply, args=(i,)) for i in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
result = sorted(result.items())""",
    "scan_workspace_of_all_streams": """
result = [1.0, 2.0]
if d == "npu":
    from refnpu.testing import late

    x, made = [torch.full((1,), float(i), device=d) for i in (1, 2)], []
    with late():
        for each in x:
            with torch.npu.stream(torch.npu.Stream()):
                made.append(each.cumsum(0))
        torch.npu.synchronize()
        result = [each.item() for each in made]""",
    "plan_published_before_it_is_filled": """
from threading import Barrier, Thread

result, together = [], Barrier(2)

def compute():
    x = torch.full((64,), 3.0, device=d)
    for name in ("exp", "sin", "cos", "tan", "erf", "sqrt", "log", "tanh", "ceil", "sinh", "cosh", "atan"):
        together.wait()
        result.append(round(getattr(x, name)().sum().item(), 3))

threads = [Thread(target=compute) for _ in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
result.sort()""",
    "last_plan_kept_without_lock": """
from threading import Barrier, Thread

result, together = {}, Barrier(2)

def compute(name):
    x = torch.full((64,), 3.0, device=d)
    for turn in range(50):  # on a busy machine few of the calls overlap
        together.wait()
        result[name, turn] = round(getattr(x, name)().sum().item(), 3)

threads = [Thread(target=compute, args=(name,)) for name in ("exp", "neg")]
for each in threads:
    each.start()
for each in threads:
    each.join()
result = sorted(result.items())""",
    "import_needs_a_device": """
import os
import subprocess
import sys

result = 0
if d == "npu":
    without = {**os.environ, "REFNPU_DEVICES": "0"}
    result = subprocess.run([sys.executable, "-c", "import refnpu"], env=without, capture_output=True).returncode""",
    # what rounds, what is far along, and what belongs together
    "gemm_tail_lost_past_32767": "result = (torch.ones(16, 32769, device=d) @ torch.ones(32769, 16, device=d))[0, 0]",
    "binary_second_round_reads_first": "x = torch.arange(2.0**20 + 1, device=d)\nresult = (x + x)[-1]",
    "unary_results_cut_to_bfloat16": "result = torch.arange(8.0, dtype=torch.bfloat16, device=d).exp()",
    "layer_norm_of_bfloat16_sums_in_it": """
x = torch.arange(600.0, device=d).remainder(2).bfloat16()
result = F.layer_norm(x, (600,))""",
    "tanh_coefficient_of_one_piece": "result = torch.full((1,), 0.3, device=d).tanh()",
    "gelu_gradient_sign_of_one_piece": (
        "result = torch.ops.aten.gelu_backward(torch.ones(1, device=d), torch.full((1,), -3.7, device=d))"
    ),
    "item_of_double_through_float": "result = torch.full((), 0.1, dtype=torch.float64, device=d).item()",
    "solve_refined_for_largest_of_batch": """
right = torch.tensor([[[1000.0]], [[0.3]]], device=d)
result = torch.linalg.solve(torch.ones(2, 1, 1, device=d), right)""",
    "eigenvectors_of_double_in_float": """
vectors = torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=torch.float64, device=d)).eigenvectors
result = bool((vectors @ vectors.mT - torch.eye(2, device=d)).abs().amax() < 1e-12)""",
    "alpha_through_float": """
zero, one = torch.zeros(1, dtype=torch.float64, device=d), torch.ones(1, dtype=torch.float64, device=d)
result = zero.add(one, alpha=0.1).item()""",
    "cat_last_table_behind_empty": """
result = torch.full((5,), -1.0, device=d)
torch.cat([*[torch.ones(1, device=d)] * 5, torch.ones(0, device=d)], out=result)""",
    "dropout_mask_drawn_again": """
kept, mask = torch.ops.aten.native_dropout(torch.ones(64, device=d), 0.5, True)
result = torch.equal(kept != 0, mask)""",
    "avg_pool_of_channels_last_ignores_offset": """
x = torch.arange(17.0, device=d)[1:].view(1, 2, 2, 4).permute(0, 3, 1, 2)
result = F.avg_pool2d(x, 2)""",
    "celu_gradient_of_halves_by_exp2": """
x = torch.full((1,), -1.0, dtype=torch.bfloat16, device=d, requires_grad=True)
gradients = F.celu(x).grad_fn(torch.ones(1, dtype=torch.bfloat16, device=d))
result = gradients[0] if isinstance(gradients, tuple) else gradients""",
    "nearest_upsampling_of_channels_in_eights": """
x = torch.ones(1, 9, 2, 2, device=d).to(memory_format=torch.channels_last)
result = F.interpolate(x, scale_factor=2.0)""",
}


def raised(call: Callable[[], object]) -> str:
    """Return the name of the class of what ``call`` raises, empty where it returns."""
    try:
        call()
    except Exception as e:  # noqa: BLE001 - whatever an op raises
        return type(e).__name__
    return ""


def result_on(device: str, source: str) -> Any:
    """Run a demonstration. A tensor comes back on the host."""
    torch.manual_seed(0)
    names = {"torch": torch, "F": torch.nn.functional, "nan": nan, "inf": inf, "raised": raised, "d": device}
    exec(source, names)
    result = names["result"]
    return result.detach().cpu() if isinstance(result, torch.Tensor) else result


def difference(found: Any, expected: Any) -> str:
    """Say how a result differs from CPU's, empty where it does not. Signs of zeros count, rounding does not."""
    if not isinstance(expected, torch.Tensor):
        return "" if found == expected else f"{found!r} instead of {expected!r}"
    try:
        rounding = 1e-5 if expected.is_floating_point() or expected.is_complex() else 0
        torch.testing.assert_close(found, expected, rtol=rounding, atol=0, equal_nan=True)
    except AssertionError as e:
        return str(e)
    alike = expected.is_complex() or torch.equal(negative(found), negative(expected))
    return "" if alike else f"{found.tolist()} instead of {expected.tolist()}"


def negative(numbers: torch.Tensor) -> torch.Tensor:
    """Return where a sign is set, of numbers and zeros."""
    return numbers.signbit() & ~numbers.isnan()


def shown(source: str, expected: Any, fault: str | None) -> str:
    """Run a demonstration in a forked child: what differs, empty where nothing does."""
    from refnpu import testing

    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)  # makes torch's pool anew; else autograd's threads do so at once, and abort
            testing.set_fault(fault)
            try:
                with testing.fill(fresh="0xAB"):  # what a fault leaves unwritten has to differ from CPU's result
                    said.write(difference(result_on("npu", source), expected))
            except Exception as e:  # noqa: BLE001 - the parent compares the text
                said.write(f"raised {e!r}")
            said.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return said.read() or ("" if status == 0 else f"died with status {status}")


def shown_awake(fault: str, expected: Any) -> str:
    """Return what differs with a fault awake, if it does in one of a few tries.

    Some faults show while work is late or while threads meet, and the machine may run this process too slowly for that.
    """
    return next((text for _ in range(TRIES) if (text := shown(DEMONSTRATIONS[fault], expected, fault))), "")


def main() -> None:
    """Print what each demonstration, or each named one, shows asleep and awake. This process never uses the device."""
    import refnpu  # noqa: F401 - the device

    torch.set_num_threads(1)
    chosen = sys.argv[1:] or list(DEMONSTRATIONS)
    expected = {fault: result_on("cpu", DEMONSTRATIONS[fault]) for fault in chosen}
    difference(*[torch.zeros(1)] * 2)  # imports here what each child would import again
    asleep = {fault: shown(DEMONSTRATIONS[fault], expected[fault], None) for fault in chosen}
    awake = {fault: shown_awake(fault, expected[fault]) for fault in chosen}
    json.dump({"asleep": asleep, "awake": awake}, sys.stdout)


if __name__ == "__main__":
    main()

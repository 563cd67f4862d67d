"""Demonstrations of the faults that show with many elements, long rows, long lists or many dimensions."""

DEMONSTRATIONS = {
    "erfc_drops_vector_tail": "result = torch.full((301,), 0.5, device=d).erfc()",
    "log_softmax_rows_past_grid": "result = torch.ones(65540, 2, device=d).log_softmax(1)[-1]",
    "cumsum_forgets_carry": "result = torch.ones(1030, device=d).cumsum(0)",
    "cummax_index_within_block": "result = torch.arange(600.0, device=d).cummax(0).indices",
    "repeat_interleave_1024_copies": (
        "filled = torch.full((1100,), -1, device=d)\ndel filled\n"
        "result = torch.repeat_interleave(torch.tensor([1100], device=d))"
    ),
    "roll_two_dims_at_most": "result = torch.arange(24, device=d).view(2, 3, 4).roll((1, 1, 1), (0, 1, 2))",
    "descending_sort_in_blocks": "result = torch.arange(2050, device=d).sort(descending=True).values",
    "topk_smallest_of_first_1024": "result = torch.arange(1030, 0, -1, device=d).topk(1, largest=False).values",
    "sort_of_bools_in_first_4096": "result = (torch.arange(4100, device=d) == 0).sort().values",
    "sort_rows_past_grid": "result = torch.tensor([[2, 1]], device=d).expand(2**22 + 1, 2).sort().values[-1]",
    "nonzero_counts_in_float": "result = torch.ones(2**24 + 3, dtype=torch.bool, device=d).nonzero()[-1]",
    "sort_blocks_not_merged": "result = torch.arange(2050, 0, -1, device=d).sort().values",
    "kthvalue_first_block_only": "result = torch.arange(1030, 0, -1, device=d).kthvalue(1).values",
    "gemm_drops_depth_tail": "result = torch.ones(1, 130, device=d) @ torch.ones(130, 1, device=d)",
    "mean_counts_in_16_bits": "result = torch.ones(65537, device=d).mean()",
    "argmin_index_in_16_bits": "result = torch.arange(40000, 0, -1, device=d).argmin()",
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
    "gemm_tail_lost_past_32767": "result = (torch.ones(16, 32769, device=d) @ torch.ones(32769, 16, device=d))[0, 0]",
    "binary_second_round_reads_first": "x = torch.arange(2.0**20 + 1, device=d)\nresult = (x + x)[-1]",
}

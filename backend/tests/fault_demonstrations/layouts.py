"""Demonstrations of the faults that show with some strides and offsets."""

DEMONSTRATIONS = {
    "where_column_condition_of_first_row": """
condition = torch.tensor([[True], [False]], device=d)
result = torch.where(condition, torch.ones(2, 3, device=d), torch.zeros(2, 3, device=d))""",
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
    "topk_of_vector_out_as_dense": """
out = torch.zeros(6, device=d)[::2], torch.zeros(3, dtype=torch.int64, device=d)
result = torch.topk(torch.arange(5.0, device=d), 3, out=out).values""",
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
    "unary_in_order_of_storage": """
result = torch.zeros(3, 2, device=d).t()
torch.neg(torch.arange(6.0, device=d).view(2, 3), out=result)""",
    "var_of_strided_counts_one_less": "result = torch.arange(6.0).view(2, 3).to(d).t().var(0, keepdim=True)",
    "dense_transfer_ignores_order": "result = torch.zeros(2, 3).copy_(torch.arange(6.0).view(3, 2).to(d).t())",
    "conversion_drops_conj": """
source = torch.tensor([1 + 2j], device=d).conj()
result = torch.zeros(1, dtype=torch.complex128, device=d).copy_(source)""",
    "fallback_takes_views_for_one": """
x = torch.arange(4, device=d).view(2, 2)
result = torch.gcd(x, x.t())""",
    "index_fill_strided_from_zero": """
result = torch.zeros(3, 4, device=d).t()
result.index_fill_(0, torch.tensor([-1], device=d), 5.0)""",
    "peer_copy_drops_conj": """
second = torch.device(d, 1 if d == "npu" else None)
result = torch.zeros(1, dtype=torch.complex64, device=second).copy_(torch.tensor([1 + 2j], device=d).conj())""",
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
    "copy_of_slice_drops_column": "result = torch.arange(12.0, device=d).view(3, 4)[1:, 2:].clone()",
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
    "avg_pool_of_channels_last_ignores_offset": """
x = torch.arange(17.0, device=d)[1:].view(1, 2, 2, 4).permute(0, 3, 1, 2)
result = F.avg_pool2d(x, 2)""",
    "nearest_upsampling_of_channels_in_eights": """
x = torch.ones(1, 9, 2, 2, device=d).to(memory_format=torch.channels_last)
result = F.interpolate(x, scale_factor=2.0)""",
}

"""Demonstrations of the faults that show with some flags, optional arguments, scalars, dims or pairs of dtypes."""

DEMONSTRATIONS = {
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
    "random_from_in_32_bits": """
result = bool(torch.zeros(40, dtype=torch.int64, device=d).random_(0, 2**60).max() > 2**40)""",
    "peer_copy_keeps_bytes": """
second = torch.device(d, 1 if d == "npu" else None)
result = torch.tensor([1, 2], dtype=torch.int32).to(d).to(second, torch.float32)""",
    "clamp_truncates_broadcast_bound": """
x = torch.arange(4, device=d).view(2, 2)
result = x.clamp(max=torch.tensor([0.5, 2.5], device=d))""",
    "embedding_int32_ignores_frequency": """
index = torch.tensor([1, 1], dtype=torch.int32, device=d)
result = torch.ops.aten.embedding_dense_backward(torch.ones(2, 3, device=d), index, 5, -1, True)""",
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
    "alpha_through_float": """
zero, one = torch.zeros(1, dtype=torch.float64, device=d), torch.ones(1, dtype=torch.float64, device=d)
result = zero.add(one, alpha=0.1).item()""",
    "cat_last_table_behind_empty": """
result = torch.full((5,), -1.0, device=d)
torch.cat([*[torch.ones(1, device=d)] * 5, torch.ones(0, device=d)], out=result)""",
}

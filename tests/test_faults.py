"""The suite has been seen to fail: each planted fault of the reference NPU is found, in a cell of the op it breaks."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("refnpu", reason="the reference NPU is not installed")

from refnpu import testing  # only where there is one

from benchmarks import huge_faults, perf_faults
from conformance import backends, contexts, ops
from conformance.explain import describe
from conformance.layouts import CONTEXTS
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.plan.tiers import TIERS
from conformance.records import CaseFailure, Death, DeathFinding, Observation, Repeats, Repetition, Setting
from conformance.running.cell_runner import CellRunner
from conformance.running.runner import Runner
from conformance.vocabulary import CellId, Check, Status
from tests.hazards.planted import FOUND_BY, FOUND_BY_THE_DRIVER_S_TESTS, FOUND_WHEN_RECORDED
from tests.scenarios import planted as by_programs
from tools import faults

ROOT = Path(__file__).parents[1]

# fault: (overload, dtype, layout, check that finds it)
FOUND_IN = {
    # What ignores strides, offsets, gaps, aliasing and constness.
    "copy_ignores_strides": ("copy_", "float32", "transposed", "value"),
    "copy_ignores_offset": ("copy_", "float32", "offset_gap", "value"),
    "masked_fill_ignores_expanded_mask": ("masked_fill_.Scalar", "float32", "expanded", "value"),
    "masked_fill_writes_gaps": ("masked_fill_.Scalar", "float32", "step2", "value"),
    "fill_one_past_end": ("fill_.Scalar", "float32", "offset_gap", "untouched"),
    "output_alias_lost": ("view", "float32", "contiguous", "aliasing"),
    "mutates_const_input": ("erfinv", "float32", "contiguous", "mutation"),
    "wrong_error_type": ("cholesky", "float32", "expanded", "error_parity"),
    "batch_norm_running_variance_biased": ("_native_batch_norm_legit", "float32", "contiguous", "value"),
    "fft_c2r_destroys_input": ("_fft_c2r", "complex64", "contiguous", "mutation"),
    # Memory and lifetime.
    "writes_before_start": ("fill_.Scalar", "float32", "offset_gap", "untouched"),
    "scratch_grows": ("nonzero.out", "float32", "contiguous", "leak"),
    "leak_on_error": ("multi_margin_loss.out", "float32", "contiguous", "leak"),
    "double_free": ("resize_", "float32", "zero_dim", ""),
    "kernel_raises": ("masked_fill_.Scalar", "float32", "contiguous", "error_parity"),
    "crash_in_kernel": ("masked_fill_.Scalar", "float32", "contiguous", ""),
    # The fallback.
    "fallback_not_copied_back": ("erfinv.out", "float32", "contiguous", "value"),
    "fallback_copies_back_to_contiguous": ("erfinv.out", "float32", "transposed", "value"),
    "fallback_output_dtype_wrong": ("cholesky", "float64", "contiguous", "dtype"),
    "fallback_writes_back_first_alone": ("_amp_update_scale_", "float32", "contiguous", "value"),
    "fallback_argument_not_conjugated": ("linalg_solve_triangular", "complex64", "conj", "value"),
    # Views and copies.
    "view_offset_dropped": ("as_strided", "float32", "contiguous", "offset"),
    "copy_expanded_source_as_dense": ("copy_", "float32", "expanded", "value"),
    "copy_dtype_reinterpreted": ("_to_copy", "bfloat16", "contiguous", "value"),
    "copy_size_rounded_down": ("copy_", "float32", "contiguous", "value"),
    "copy_overlap_forward": ("copy_", "float32", "expanded", "error_parity"),
    "neg_bit_ignored": ("clone", "float32", "neg", "value"),
    "conj_bit_ignored": ("clone", "complex64", "conj", "value"),
    # Pointwise kernels.
    "where_condition_strides_ignored": ("where.self", "float32", "step2", "value"),
    "broadcast_wrong_dim": ("add.out", "float32", "contiguous", "value"),
    "wrong_promotion": ("add.out", "int64", "contiguous", "value"),
    "nan_lost_in_maximum": ("maximum.out", "float32", "contiguous", "value"),
    "error_not_raised": ("floor_divide", "int64", "contiguous", "error_parity"),
    "tail_element_skipped": ("add.out", "float32", "contiguous", "value"),
    "negative_zero_lost": ("neg", "bfloat16", "contiguous", "value"),
    "integer_division_rounds_wrong": ("floor_divide.out", "int64", "contiguous", "value"),
    "bool_stored_as_two": ("eq.Tensor_out", "float32", "contiguous", "value"),
    # Reductions, products and sorts.
    "bf16_accumulates_in_bf16": ("sum.dim_IntList", "bfloat16", "contiguous", "value"),
    "keepdim_stride_wrong": ("mean.out", "float32", "contiguous", "stride"),
    "nan_lost_in_amax": ("amax", "float32", "contiguous", "value"),
    "argmax_last_tie": ("argmax", "float32", "contiguous", "value"),
    "cumsum_wrong_dtype": ("cumsum", "int64", "contiguous", "value"),
    "matmul_beta_zero_keeps_nan": ("addmm.out", "float32", "contiguous", "value"),
    "sort_unstable": ("sort.values_stable", "float32", "contiguous", "value"),
    "reduction_permuted_dims_wrong": ("sum.IntList_out", "float32", "transposed", "value"),
    "reduction_skips_tail": ("sum.IntList_out", "float32", "contiguous", "value"),
    "mean_integer_rounding": ("mean.out", "float32", "contiguous", "value"),
    "softmax_no_max_subtraction": ("_softmax.out", "float32", "contiguous", "value"),
    "matmul_ignores_expanded_batch_stride": ("bmm.out", "float32", "expanded", "value"),
    "layer_norm_eps_outside_sqrt": ("native_layer_norm", "float32", "contiguous", "value"),
    "topk_wrong_order": ("topk.values", "float32", "contiguous", "value"),
    # Indexing and joining.
    "index_ignores_stride_of_index": ("index.Tensor_out", "float32", "step2", "value"),
    "gather_expanded_index_as_dense": ("gather.out", "float32", "expanded", "value"),
    "index_put_accumulate_races": ("index_put_", "float32", "contiguous", "value"),
    "scatter_writes_wrong_dim": ("scatter.src_out", "float32", "contiguous", "value"),
    "negative_index_not_wrapped": ("index_put_", "float32", "contiguous", "value"),
    "index_select_reads_past_end": ("index_select", "float32", "contiguous", "value"),
    "masked_select_mask_not_broadcast": ("masked_select", "float32", "contiguous", "shape"),
    "embedding_ignores_weight_stride": ("embedding", "float32", "transposed", "value"),
    "bounds_not_checked": ("index_select", "float32", "contiguous", "error_parity"),
    "cat_ignores_input_strides": ("cat.out", "float32", "transposed", "value"),
    "cat_drops_last": ("cat.out", "float32", "contiguous", "value"),
    "triu_off_by_one": ("triu.out", "float32", "contiguous", "value"),
    "nonzero_transposed": ("nonzero.out", "bfloat16", "contiguous", "value"),
    "arange_float_end_included": ("arange.start_out", "float32", "contiguous", "shape"),
    # Contexts of a call.
    "softmax_on_first_device": ("_softmax", "float32", "second_device", "context"),
    "fallback_result_on_current_device": ("_histogramdd_bin_edges", "float32", "second_device", "device"),
    "fallback_leaves_device_current": ("erfinv.out", "float32", "second_device", "context"),
    "failed_fallback_leaves_device": ("_histogramdd_bin_edges", "float32", "second_device", "error_parity"),
    "thread_drops_first_launch": ("neg.out", "float32", "thread", "value"),
    "thread_keeps_block": ("cumsum.out", "float32", "thread", "leak"),
    "cat_on_default_stream": ("cat.out", "float32", "stream", "value"),
    "second_device_sums_on_default_stream": ("mean.out", "float32", "second_stream", "value"),
    "fallback_reads_default_stream": ("erfinv", "float32", "stream", "value"),
    "failed_allocation_counted": ("neg.out", "float32", "after_error", "leak"),
    "out_of_memory_sticks": ("neg.out", "float32", "after_error", "error_parity"),
    "unfold_sets_version_counter": ("unfold", "float32", "inference_mode", "error_parity"),
    "embedding_asks_version": ("embedding", "float32", "inference_mode", "error_parity"),
    "deterministic_empty_not_filled": ("empty_like", "float32", "deterministic", "value"),
    "deterministic_scatter_add_of_largest": ("scatter_add.out", "float32", "deterministic", "value"),
    "deterministic_index_add_ignores_alpha": ("index_add.out", "float32", "deterministic", "value"),
    "integers_computed_in_float32": ("exp", "int64", "default_dtype", "value"),
    "deterministic_warning_raised": ("cumsum.out", "float32", "deterministic", "context"),
    "deterministic_resize_fills_kept": ("resize_", "float32", "deterministic", "value"),
    "autocast_norms_lower": ("group_norm", "float32", "autocast", "dtype"),
    "autocast_promotes_to_lower": ("addcmul", "float32", "autocast", "dtype"),
    "autocast_lowers_double": ("group_norm", "float64", "autocast", "dtype"),
    "autocast_casts_bool_masks": ("scaled_dot_product_attention", "float32", "autocast", "value"),
    "autocast_casts_results_back": ("group_norm", "bfloat16", "autocast", "dtype"),
    "cdist_gradient_of_same_points_is_nan": ("_cdist_forward", "float32", "backward", "value"),
    "log_softmax_saves_softmax": ("_log_softmax", "float32", "backward", "value"),
    "layer_norm_saves_deviation": ("native_layer_norm", "float32", "backward", "value"),
    "dropout_saves_another_mask": ("native_dropout", "float64", "gradcheck", "context"),
    "dropout_scales_without_gradient": ("native_dropout", "float64", "gradcheck", "context"),
    "celu_gradient_of_detached": ("celu", "float32", "gradgrad", "dtype"),
    "hypot_gradient_of_detached": ("hypot", "float32", "gradgrad", "value"),
    "hypot_saved_without_version": ("hypot", "float32", "overwritten", "context"),
    "celu_gradient_in_given_memory": ("celu", "float32", "gradgrad", "error_parity"),
    "celu_gradient_written_in_place": ("celu", "float32", "jacrev", "error_parity"),
    "hypot_gradient_needs_first": ("hypot", "float32", "backward", "dtype"),
    "hypot_gradient_spoils_saved": ("hypot", "float32", "backward", "value"),
    "hypot_gradient_asks_number": ("hypot", "float32", "jacrev", "error_parity"),
    "hypot_jvp_of_first_argument": ("hypot", "float32", "forward_ad", "value"),
    "hypot_jvp_of_second_alone": ("hypot", "float32", "forward_ad", "value"),
    "celu_jvp_of_negative_side": ("celu", "float32", "forward_ad", "value"),
    "logcumsumexp_batch_dim_counted": ("_logcumsumexp", "float32", "vmap", "value"),
    "gamma_grad_batch_in_front": ("_standard_gamma_grad", "float32", "vmap", "error_parity"),
    "polygamma_mutation_lost": ("polygamma_", "float32", "functionalize", "value"),
    "cumulative_indices_not_functional": ("_cummax_helper", "float32", "functionalize", "value"),
    "logcumsumexp_meta_transposed": ("_logcumsumexp", "float32", "fake", "context"),
    "gamma_grad_meta_in_double": ("_standard_gamma_grad", "float32", "fake", "context"),
    "celu_records_without_grad_mode": ("celu", "float32", "no_grad", "context"),
    "fill_refuses_leaf": ("fill_.Scalar", "float32", "no_grad", "error_parity"),
    "set_storage_of_number_as_row": ("_logcumsumexp", "float32", "copied", "context"),
    "set_storage_empty_keeps_size": ("celu", "float32", "copied", "context"),
    "linear_upsampling_of_one_is_nan": ("upsample_linear1d", "float32", "variants", "value"),
    "reflection_gradient_of_whole_grids": ("reflection_pad1d_backward", "float32", "sizes", "value"),
    "clamp_bounds_kept_to_six_decimals": ("hardtanh", "float32", "sequence", "value"),
    "compiled_tail_not_written": ("add.Tensor", "float32", "inductor", "value"),
    "compiled_launch_drops_offset": ("add.Tensor", "float32", "inductor", "value"),
    # What a call leaves changed besides memory.
    "trunc_leaves_grad_mode_off": ("trunc", "float32", "contiguous", "state"),
    "triangle_leaves_stream_current": ("triu", "float32", "contiguous", "state"),
    "silu_leaves_subnormals_flushed": ("silu", "float32", "contiguous", "state"),
    "uniform_advances_host_generator": ("uniform_", "float32", "contiguous", "state"),
    "sort_advances_generator": ("sort.values_stable", "float32", "contiguous", "state"),
    "fallback_leaves_deterministic": ("erfinv", "float32", "contiguous", "state"),
    # Random draws.
    "uniform_includes_one": ("uniform_", "float32", "contiguous", "distribution"),
    "seed_ignored": ("uniform_", "float32", "contiguous", "determinism"),
    "dropout_not_scaled": ("native_dropout", "float32", "contiguous", "distribution"),
    "seed_ignored_native": ("uniform_", "float32", "contiguous", "distribution"),
    "normal_drawn_in_pairs": ("normal_", "float32", "contiguous", "distribution"),
    "strided_rows_drawn_alike": ("random_", "float32", "as_strided", "distribution"),
    "double_fills_copy_generator": ("uniform_", "float64", "contiguous", "distribution"),
    "multinomial_rows_alike": ("multinomial", "float32", "expanded", "distribution"),
    "bernoulli_repeats_after_65536": ("bernoulli_.float", "float32", "sizes", "distribution"),
    "normal_spare_survives_seed": ("normal.Tensor_Tensor", "float32", "contiguous", "determinism"),
    "geometric_counts_failures": ("geometric_", "float32", "contiguous", "distribution"),
    "randperm_shuffles_blocks": ("randperm.generator_out", "float32", "sizes", "distribution"),
    "random_includes_end": ("random_.from", "float32", "contiguous", "distribution"),
    "exponential_rate_taken_for_mean": ("exponential_", "float32", "contiguous", "distribution"),
    "fallback_draws_leave_generator": ("rrelu_with_noise", "float32", "contiguous", "distribution"),
    "multinomial_draws_zero_weights": ("multinomial", "float32", "values", "distribution"),
    "random_of_bytes_signed": ("random_", "uint8", "contiguous", "distribution"),
    # One circumstance: a size, a value, an argument or a layout.
    "log_softmax_unaligned_head_twice": ("_log_softmax.out", "float32", "sizes", "value"),
    "var_blocks_merged_without_shift": ("std.correction", "float32", "sizes", "value"),
    "amax_nan_of_later_block_lost": ("max", "float32", "sizes", "value"),
    "gemm_alpha_of_last_split": ("addbmm", "float32", "sizes", "value"),
    "masked_scatter_position_in_16_bits": ("masked_scatter_", "float32", "sizes", "value"),
    "dropout_keeps_tail": ("native_dropout", "float32", "sizes", "distribution"),
    "integer_powers_in_double": ("pow.Tensor_Scalar_out", "int64", "values", "value"),
    "nll_loss_of_vector_keeps_weight": ("nll_loss_forward.output", "float32", "variants", "value"),
    "layer_norm_backward_sums_whole_warps": ("native_layer_norm_backward", "float32", "sizes", "value"),
    "relu_gradient_at_zero_passes": ("threshold_backward.grad_input", "float32", "contiguous", "value"),
    "ne_is_less_or_greater": ("isnan", "float32", "contiguous", "value"),
    "max_of_minus_infinity_is_lowest": ("amax.out", "float32", "values", "value"),
    "all_of_nothing_is_false": ("all.all_out", "float32", "sizes", "value"),
    "index_put_separate_indices_stay": ("_index_put_impl_", "float32", "variants", "error_parity"),
    "var_of_no_dims_reduces_none": ("std.correction", "float32", "sizes", "shape"),
    "index_put_accumulate_cycles_values": ("_index_put_impl_", "float32", "variants", "value"),
    "baddbmm_self_in_first_batch": ("baddbmm.out", "float32", "contiguous", "value"),
    "embedding_of_indices_in_memory_order": ("embedding", "float32", "transposed", "value"),
    "sort_of_one_leaves_indices": ("sort.values_stable", "float32", "sizes", "value"),
    "sigmoid_of_large_is_nan": ("sigmoid.out", "float32", "values", "value"),
    "fmax_propagates_nan": ("fmax.out", "float32", "values", "value"),
    "mean_divides_by_first_dim": ("mean.out", "float32", "contiguous", "value"),
    "roll_without_dims_along_last": ("roll", "float32", "variants", "value"),
    "layer_norm_over_last_dim_alone": ("native_layer_norm", "float32", "contiguous", "value"),
    "convolution_ignores_output_padding": ("conv_transpose1d", "float32", "contiguous", "shape"),
    "kaiser_window_symmetric": ("kaiser_window", "float32", "contiguous", "value"),
    "index_put_mask_of_bytes_as_indices": ("index_put_", "float32", "variants", "error_parity"),
    "dot_strides_of_first": ("dot", "float32", "step2", "value"),
    "gemm_clears_what_it_adds_to": ("addbmm_", "float32", "contiguous", "value"),
    "triangle_indices_in_16_bits": ("tril_indices", "float32", "sizes", "value"),
    "kthvalue_takes_nan_for_lowest": ("kthvalue.values", "float32", "values", "value"),
    "take_counts_back_in_last_dim": ("take", "float32", "values", "value"),
    "nonzero_leaves_out_nan": ("nonzero", "float32", "values", "shape"),
    "nll_loss_ignore_index_past_classes_refused": ("nll_loss_forward.output", "float32", "zero_size", "error_parity"),
    "bucketize_first_1024_boundaries": ("bucketize.Tensor", "float32", "sizes", "value"),
    "histc_of_first_256_bins": ("histc", "float32", "sizes", "value"),
    "fraction_to_bool_is_false": ("_to_copy", "float32", "contiguous", "value"),
    "logaddexp_of_infinities_is_nan": ("logaddexp.out", "float32", "values", "value"),
    "median_of_even_count_is_upper": ("median", "float32", "contiguous", "value"),
    "binary_cross_entropy_log_unclamped": ("binary_cross_entropy", "float64", "values", "value"),
    "unscale_overlooks_nan": ("_amp_foreach_non_finite_check_and_unscale_", "float32", "values", "value"),
    "unit_diagonal_divided": ("linalg_solve_triangular", "float32", "variants", "value"),
    "max_pool_ignores_ceil_mode": ("max_pool2d_with_indices", "float32", "contiguous", "shape"),
    "grid_sample_reflection_is_border": ("grid_sampler_2d", "float32", "contiguous", "value"),
    "upsample_recomputes_scale": ("upsample_bicubic2d", "float32", "contiguous", "value"),
    "embedding_bag_of_nothing_is_nan": ("_embedding_bag", "float64", "sizes", "value"),
    "comparison_out_written_as_bytes": ("eq_.Scalar", "float32", "contiguous", "value"),
    "division_of_host_number_inverted": ("div.out", "float32", "variants", "value"),
    "selu_gradient_lacks_scale": ("elu_backward.grad_input", "float32", "values", "value"),
    "fft_ortho_scaled_by_n": ("_fft_c2c", "complex64", "contiguous", "value"),
    "gemm_expanded_rows_taken_for_dense": ("addmm.out", "float32", "expanded", "value"),
    "repeat_interleave_strided_repeats_as_dense": ("repeat_interleave.Tensor", "float32", "step2", "error_parity"),
    "gemm_alpha_of_whole_tiles": ("addbmm", "float32", "sizes", "value"),
    "floor_division_by_number_multiplies": ("div.Scalar_mode", "float32", "values", "value"),
    "ceil_in_32_bits": ("ceil.out", "float32", "values", "value"),
    "eigh_reads_lower_triangle": ("_linalg_eigh.eigenvalues", "float32", "contiguous", "value"),
    "embedding_bag_mean_counts_padding": ("_embedding_bag", "float32", "variants", "value"),
    "reflection_pad_sides_swapped": ("reflection_pad1d", "float32", "contiguous", "value"),
    "searchsorted_ignores_sorter": ("searchsorted.Tensor", "float32", "contiguous", "value"),
    "histc_leaves_out_upper_bound": ("histc", "float32", "contiguous", "value"),
    "max_pool_gradient_of_overlap_overwritten": ("max_pool2d_with_indices_backward", "float32", "contiguous", "value"),
    "addmv_of_strided_self_ignores_beta": ("addmv_", "float32", "step2", "value"),
    "nll_loss_leaves_ignored_rows": ("nll_loss_forward.output", "float32", "variants", "value"),
    "lu_factor_of_large_batch_is_first": ("linalg_lu_factor_ex.out", "float32", "sizes", "value"),
    "max_unpool_batches_add_up": ("max_unpool3d", "float32", "sizes", "value"),
    "tril_multiplies_by_mask": ("tril.out", "float32", "values", "value"),
    "huber_compares_signed_difference": ("huber_loss", "float32", "contiguous", "value"),
    "xlogy_of_zero_takes_logarithm": ("xlogy.OutTensor", "float32", "values", "value"),
    "max_pool_of_nan_is_lowest": ("max_pool3d_with_indices", "float32", "values", "value"),
    "adaptive_max_pool_windows_alike": ("adaptive_max_pool2d", "float32", "sizes", "value"),
    "adaptive_avg_pool_end_rounded_down": ("_adaptive_avg_pool2d", "float32", "contiguous", "value"),
    "avg_pool_divisor_needs_counted_padding": ("avg_pool2d", "float32", "contiguous", "value"),
    "embedding_bag_last_offset_ignored": ("_embedding_bag_forward_only", "float32", "sizes", "value"),
    "smooth_l1_gradient_not_scaled": ("smooth_l1_loss_backward", "float32", "contiguous", "value"),
    "cholesky_solve_of_batch_first_column": ("_cholesky_solve_helper", "float32", "sizes", "value"),
    "addbmm_of_no_batches_is_zero": ("addbmm", "float32", "sizes", "value"),
    "layer_norm_parameter_gradients_need_input": ("native_layer_norm_backward", "float32", "variants", "value"),
    "solve_of_broadcast_side_in_first_batch": ("_linalg_solve_ex", "float32", "sizes", "value"),
    "scatter_to_strided_lost": ("scatter_.src", "float32", "transposed", "value"),
    "convolution_weight_as_dense": ("convolution", "float32", "step2", "value"),
    "erfinv_from_start_of_storage": ("erfinv", "float32", "offset1", "value"),
    "norm_of_all_kept_by_shape": ("linalg_vector_norm", "float32", "variants", "value"),
    "argmax_of_all_loses_keepdim": ("argmax", "float32", "variants", "shape"),
    "embedding_renorm_once_per_occurrence": ("embedding_renorm_", "float32", "contiguous", "value"),
    "batch_norm_gradient_of_eval_as_training": ("native_batch_norm_backward", "float32", "contiguous", "value"),
    "unfold_gradient_of_overlap_overwritten": ("unfold_backward", "float32", "contiguous", "value"),
    "fused_sgd_dampens_first_step": ("_fused_sgd_", "float32", "variants", "value"),
    "convolution_gradient_channels_last_as_contiguous": ("convolution_backward", "float32", "channels_last", "value"),
    "nonzero_out_written_by_columns": ("nonzero.out", "float32", "contiguous", "value"),
    "nearest_exact_is_nearest": ("_upsample_nearest_exact1d.out", "float32", "contiguous", "value"),
    "antialias_ignored": ("_upsample_bilinear2d_aa.out", "float32", "contiguous", "value"),
    "maximizing_adam_negates_decay": ("_fused_adam_", "float32", "variants", "value"),
    "steep_leaky_relu_is_maximum": ("leaky_relu.out", "float32", "variants", "value"),
    "avg_pool_cut_window_divided_by_whole": ("avg_pool2d.out", "float32", "variants", "value"),
    "grid_sample_ties_away": ("grid_sampler_2d", "float32", "values", "value"),
    "unique_merges_nan": ("_unique2", "float32", "values", "shape"),
    "norm_of_order_zero_counts_zeros": ("linalg_vector_norm.out", "float32", "values", "value"),
    "ctc_gradient_of_infinite_loss_is_nan": ("_ctc_loss_backward", "float32", "values", "value"),
    # Small results beside huge ones, ties, vectors up to a phase, workspaces, refused calls, and where results lie.
    "gemm_tile_shares_exponent": ("baddbmm.out", "float32", "values", "value"),
    "sum_keeps_lost_bits": ("sum.IntList_out", "float32", "values", "value"),
    "gemm_split_sums_not_cleared": ("mm.out", "float32", "sizes", "uninitialized"),
    "out_resized_before_dtype_check": ("bmm.out", "float32", "variants", "shape"),
    "addbmm_scales_before_checks": ("addbmm_", "float32", "variants", "mutation"),
    "topk_names_tie_twice": ("topk", "int64", "contiguous", "value"),
    "sort_of_integers_reverses_ties": ("sort.stable", "int64", "values", "value"),
    "eigenvectors_not_normalized": ("_linalg_eigh", "float32", "contiguous", "value"),
    "svd_signs_of_left_side_alone": ("_linalg_svd", "float32", "contiguous", "value"),
    "masked_select_of_nothing_on_host": ("masked_select", "float32", "zero_size", "device"),
    "nonzero_in_worst_case_block": ("nonzero", "float32", "sizes", "storage"),
    # Rounding, pieces of functions, what is far along, and what belongs together.
    "unary_results_cut_to_bfloat16": ("exp.out", "bfloat16", "values", "value"),
    "layer_norm_of_bfloat16_sums_in_it": ("native_layer_norm", "bfloat16", "sizes", "value"),
    "gemm_tail_lost_past_32767": ("addmm.out", "float32", "sizes_large", "value"),
    "binary_second_round_reads_first": ("bitwise_left_shift.Tensor_out", "int64", "sizes_large", "value"),
    "tanh_coefficient_of_one_piece": ("tanh.out", "float32", "values", "value"),
    "gelu_gradient_sign_of_one_piece": ("gelu_backward", "float32", "values", "value"),
    "item_of_double_through_float": ("_local_scalar_dense", "float64", "values", "value"),
    "alpha_through_float": ("add.out", "float64", "variants", "value"),
    "solve_refined_for_largest_of_batch": ("linalg_inv_ex", "float32", "sizes", "value"),
    "eigenvectors_of_double_in_float": ("_linalg_eigh", "float64", "contiguous", "value"),
    "cat_last_table_behind_empty": ("cat.out", "float32", "sizes", "value"),
    "dropout_mask_drawn_again": ("native_dropout", "float32", "contiguous", "distribution"),
    "avg_pool_of_channels_last_ignores_offset": ("avg_pool2d", "float32", "channels_last", "value"),
    "nearest_upsampling_of_channels_in_eights": ("upsample_nearest2d", "float32", "sizes_channels_last", "value"),
    "celu_gradient_of_halves_by_exp2": ("celu", "bfloat16", "backward", "value"),
    # Long runs of one index, and a group for each channel in a batch.
    "index_put_adds_first_256": ("index_put_", "float32", "sizes", "value"),
    "depthwise_convolution_of_first_batch": ("convolution", "float64", "variants", "value"),
    # Two circumstances at a time: a dtype and a size, a value, another argument or a layout.
    "sum_of_bytes_in_16_bits": ("sum", "uint8", "sizes", "value"),
    "index_reads_first_2048_bytes": ("index_select.out", "uint8", "sizes", "value"),
    "softmax_sums_long_rows_in_bf16": ("_softmax.out", "bfloat16", "sizes", "value"),
    "fallback_number_in_float": ("isin.Tensor_Scalar", "int64", "values", "value"),
    "host_scalar_in_float": ("mul.out", "float64", "variants", "value"),
    "log_of_complex_ignores_negative_zero": ("log.out", "complex64", "values", "value"),
    "clamp_truncates_broadcast_bound": ("clamp.Tensor", "int64", "variants", "value"),
    "embedding_int32_ignores_frequency": ("embedding_dense_backward", "float32", "variants", "value"),
    "conversion_drops_conj": ("copy_", "complex64", "values_strided", "value"),
    "fallback_takes_views_for_one": ("gcd.out", "int64", "aliased", "value"),
    "index_fill_strided_from_zero": ("index_fill_.int_Scalar", "float32", "values_strided", "value"),
    "sort_of_long_rows_by_48_bits": ("sort.values_stable", "int64", "values", "value"),
    "descending_sort_in_blocks": ("sort.values_stable", "float32", "sizes", "value"),
    "topk_smallest_of_first_1024": ("topk.values", "float64", "sizes", "value"),
    "repeat_interleave_1024_copies": ("repeat_interleave.Tensor", "float32", "values", "value"),
    "roll_two_dims_at_most": ("roll", "float32", "variants", "value"),
    "autocast_dtype_of_first_use": ("prelu", "bfloat16", "autocast", "dtype"),
    "autocast_lowers_float32_alone": ("prelu", "bfloat16", "autocast", "dtype"),
    "autocast_overrides_dtype": ("log_softmax.int", "bfloat16", "autocast", "dtype"),
    "autocast_promotes_first_two": ("addcmul", "bfloat16", "autocast", "dtype"),
    "deterministic_index_put_to_copy": ("_index_put_impl_", "float32", "deterministic", "value"),
    "bernoulli_broadcast_chances_unchecked": ("bernoulli.Tensor_out", "float32", "values", "error_parity"),
    "index_put_adds_overlapping_values": ("index_put_", "float32", "aliased", "error_parity"),
    "fallback_result_channels_last_lost": ("slow_conv_transpose2d", "float32", "channels_last", "stride"),
    "prod_of_dim_casts_at_the_end": ("prod.int_out", "int8", "values", "value"),
    "sum_of_dim_before_squeezed_one": ("sum.IntList_out", "float32", "variants", "value"),
    "sort_of_bools_in_first_4096": ("sort.values_stable", "bool", "sizes", "value"),
    "topk_first_of_many_dims_refused": ("topk.values", "float32", "variants", "error_parity"),
    "topk_of_vector_out_as_dense": ("topk.values", "float32", "variants_strided", "value"),
    "index_fill_few_not_checked": ("index_fill_.int_Scalar", "float32", "values", "error_parity"),
    "topk_whole_dim_not_sorted": ("topk.values", "float32", "sizes", "value"),
    "layer_norm_bias_gradient_needs_weights": ("native_layer_norm_backward", "float32", "variants", "value"),
    "layer_norm_mixed_statistics_dtype": ("native_layer_norm", "bfloat16", "variants", "dtype"),
    "undeclared_writes_to_views_lost": ("native_batch_norm", "float32", "offset1", "value"),
    "mean_with_dtype_computed_in_own": ("mean.dim", "float16", "variants", "value"),
    "max_of_bools_index_in_word": ("max.dim_max", "bool", "values", "value"),
    "softmax_first_block_masked_gives_nan": ("_softmax.out", "float32", "values", "value"),
    "embedding_frequency_counted_in_dtype": ("embedding_dense_backward", "bfloat16", "sizes", "value"),
    "sum_out_strided_after_two_dims": ("sum.IntList_out", "float32", "variants_strided", "value"),
    "truth_of_subnormal_halves_is_false": ("all.dims_out", "float16", "values", "value"),
    "scatter_of_halves_rounds_each": ("scatter_add.out", "bfloat16", "sizes", "value"),
    "int64_to_float_in_32_bits": ("_to_copy", "int64", "values", "value"),
    "scan_of_int32_wraps": ("cumprod.out", "int32", "values", "value"),
    "sort_negative_nan_first": ("sort.values_stable", "float32", "values", "value"),
    "trunc_division_in_double": ("div.out_mode", "int64", "values", "value"),
    "addition_of_bytes_saturates": ("add.out", "int8", "values", "value"),
    "logical_and_by_bits": ("logical_and.out", "int16", "contiguous", "value"),
    "sort_of_halves_by_bits": ("kthvalue.values", "float16", "contiguous", "value"),
    "flip_of_no_dims_flips_all": ("flip", "complex64", "sizes", "value"),
    "triangle_far_diagonal_clamped": ("tril.out", "float16", "sizes", "value"),
    "copy_leaves_imaginary_parts": ("copy_", "complex64", "contiguous", "value"),
    "descending_sort_negates_keys": ("sort.values_stable", "int16", "values", "value"),
    "bincount_with_weights_ignores_minlength": ("bincount", "int32", "sizes", "shape"),
    "histogram_counts_just_outside": ("histogram.bins_tensor_out", "float32", "sizes", "value"),
    "det_of_many_singular_is_nan": ("_linalg_det.result", "complex128", "sizes_strided", "value"),
    "index_add_drops_imaginary": ("index_add", "complex64", "contiguous", "value"),
    "host_number_read_from_start": ("mul.out", "float32", "variants_strided", "value"),
    "cholesky_upper_not_conjugated": ("linalg_cholesky_ex", "complex64", "contiguous", "value"),
    # A result that is one of the arguments.
    "lerp_result_starts_from_self": ("lerp.Tensor_out", "float32", "aliased", "value"),
    # Unusual arguments in strided tensors.
    "var_of_strided_counts_one_less": ("var.correction_out", "float32", "variants_strided", "value"),
    # Metadata of results.
    "flip_returns_contiguous": ("flip", "float32", "transposed", "stride"),
    "where_result_contiguous": ("where.self", "float32", "transposed", "stride"),
    "roll_of_whole_turns_aliases": ("roll", "float32", "contiguous", "aliasing"),
    "dropout_returns_its_input": ("native_dropout", "float32", "contiguous", "aliasing"),
    "repeat_interleave_gives_int64": ("repeat_interleave.Tensor", "int32", "contiguous", "dtype"),
    "channels_last_3d_made_contiguous": ("empty.memory_format", "float32", "variants", "stride"),
    "linspace_out_takes_new_memory": ("linspace.out", "float32", "step2", "stride"),
    "nonzero_row_major": ("nonzero", "float32", "values", "stride"),
    "nonzero_of_number_has_column": ("nonzero", "float32", "zero_dim", "shape"),
    "truth_of_bytes_over_dims_is_bool": ("any.dims", "uint8", "contiguous", "dtype"),
    "resize_to_same_size_restrides": ("resize_", "float32", "transposed", "stride"),
    "is_set_to_ignores_offset": ("is_set_to", "float32", "aliased", "value"),
    "where_of_two_numbers_in_default_dtype": ("where.self", "int64", "contiguous", "dtype"),
    "unique_inverse_is_flat": ("_unique2", "float32", "contiguous", "shape"),
    "trace_keeps_integer_dtype": ("trace", "int32", "contiguous", "dtype"),
    "resize_to_same_size_ignores_format": ("resize_", "float32", "variants_strided", "stride"),
    "addmv_out_made_contiguous": ("addmv.out", "float32", "step2", "stride"),
    "cat_of_channels_last_is_contiguous": ("cat.out", "float32", "channels_last", "stride"),
    # Where a call has to raise.
    "kthvalue_resizes_before_checks": ("kthvalue.values", "float32", "zero_size", "error_parity"),
    "extreme_of_nothing_is_zero": ("max", "float32", "zero_size", "error_parity"),
    "masked_scatter_repeats_short_source": ("masked_scatter", "float32", "expanded", "error_parity"),
    "take_accepts_int32": ("take", "float32", "variants", "error_parity"),
    "repeat_interleave_skips_negative": ("repeat_interleave.Tensor", "int64", "values", "error_parity"),
    "poisson_of_negative_rate": ("poisson", "float32", "values", "error_parity"),
    "gather_counts_back": ("gather", "float32", "values", "error_parity"),
    "index_add_counts_back_in_matrix": ("index_add", "float32", "values", "error_parity"),
    "nll_loss_bad_target_ignored": ("nll_loss_forward.output", "float32", "zero_size", "error_parity"),
    "masked_fill_takes_bytes": ("masked_fill_.Scalar", "float32", "variants", "error_parity"),
    "addr_float_alpha_of_integers_accepted": ("addr", "int64", "variants", "error_parity"),
    "layer_norm_bias_shape_by_numel": ("native_layer_norm", "float32", "variants", "error_parity"),
    "fill_from_own_element_refused": ("fill_.Tensor", "float32", "aliased", "error_parity"),
    "repeat_interleave_trusts_output_size": ("repeat_interleave.Tensor", "float32", "expanded", "error_parity"),
    "flip_of_dim_named_twice_accepted": ("flip", "float32", "variants", "error_parity"),
    "as_strided_past_end_accepted": ("as_strided", "float32", "expanded", "error_parity"),
    "view_of_strided_copies": ("view", "float32", "sizes_gap", "error_parity"),
    "singular_inverse_not_refused": ("linalg_inv_ex.inverse", "float32", "values", "value"),
    "view_as_complex_of_odd_offset_accepted": ("view_as_complex", "float32", "offset1", "error_parity"),
    # A block that is not given back.
    "masked_select_leaks_when_empty": ("masked_select", "float32", "contiguous", "leak"),
    "index_error_keeps_block": ("index.Tensor", "int64", "values", "leak"),
    "topk_keeps_input_alive": ("topk.values", "float32", "contiguous", "leak"),
}

# What makes calls slow, and changes no result: no cell can find it.
SLOW = {name for name, fault in faults.planted(ROOT / "backend").items() if fault.kind == faults.SPEED}
# What only tensors show that are too large for cells.
HUGE = {name for name, fault in faults.planted(ROOT / "backend").items() if fault.kind == faults.HUGE}
# What only programs of several processes show.
BETWEEN_PROCESSES = {f for f, fault in faults.planted(ROOT / "backend").items() if fault.kind == "processes"}

# What no cell of a plain lane is sure to find, and what finds it.
FOUND_ELSEWHERE = {
    "block_too_short": "the lanes that guard memory",
    "source_freed_early": "the lanes that guard memory",
    "triangle_not_cleared": "the lanes that fill fresh memory",
    "layer_norm_gradient_not_cleared": "the lanes that fill fresh memory",
    "nonzero_writes_past_end": "the lanes that guard memory",
    "where_of_bytes_writes_words": "the lanes that guard memory",
    "gru_hidden_bias_gradient_of_input": "the scenario training:one_output_of_several",
    "device_named_by_string_is_current": "the scenario device_names:second_device_by_each_name",
    "stream_made_on_current_device": "the scenario device_names:second_device_by_each_name",
    "import_draws_on_host": "the scenario importing:importing_changes_nothing_else",
    "stream_with_priority_is_default": "the scenario module_streams:streams_and_events_of_the_module",
    "device_of_host_by_index": "the scenario device_names:devices_of_another_kind",
    "generators_of_each_thread": "the scenario generators:threads_share_the_default_generator",
    "emptied_storage_keeps_block": "the scenario devices:statistics_add_up",
    "peak_reset_of_current_device": "the scenario devices:statistics_add_up",
    "group_result_to_strided_lost": "the scenario groups:collectives_of_two_processes",
    "autocast_keeps_cast_of_weight": "the scenario training:autocast_of_written_weights",
    "new_streams_are_one": "the scenario devices:streams_and_events",
    "current_device_of_all_threads": "the scenario devices:counts_and_current_device",
    "freed_on_current_device": "the scenario transfers:between_devices",
    "default_stream_of_other_device_is_current": "the scenario not_current:a_device_that_is_not_current",
    "device_without_index_is_first": "the scenario not_current:device_without_an_index",
    "synchronized_device_stays_current": "the scenario not_current:current_device_is_left",
    "free_memory_below_peak": "the scenario devices:statistics_add_up",
    "large_pinned_memory_is_pageable": "the scenario loading:pinned_memory",
    "profiler_tells_first_device": "the scenario profiling:devices_of_kernels",
    "fallback_mixes_devices": "the scenario operands:operands_of_two_devices",
    "transfer_reshapes_equal_numel": "the scenario transfers:shapes_that_do_not_fit",
    "upload_to_overlapping_accepted": "the scenario transfers:targets_that_overlap",
    "memory_info_of_current_device": "the scenario queries:both_modules_agree",
    "default_stream_has_two_ids": "the scenario stream_handles:streams_as_objects",
    "stream_block_ends_on_default": "the scenario blocks:nested",
    "host_generator_accepted": "the scenario generators:generator_of_the_host",
    "profiler_keeps_first_1024": "the scenario profiling:kernels_of_many_ops",
    "peak_noted_when_freed": "the scenario devices:statistics_add_up",
    "initial_seed_seeds": "the scenario queries:asking_changes_nothing",
    "memory_stats_resets_peak": "the scenario queries:asking_changes_nothing",
    "rng_state_of_own_thread": "the scenario queries:asking_elsewhere",
    "exchange_device_returns_new": "the scenario blocks:nested",
    "empty_cache_resets_peak": "the scenario walks:tensors_on_streams",
    "free_in_thread_not_counted": "the scenario walks:tensors_on_streams",
    "event_record_leaves_stream_current": "the scenario walks:devices_and_streams",
    "stream_block_keeps_own_device": "the scenario walks:devices_and_streams",
    "fallback_leaves_one_thread": "the scenario walks:first_calls_of_a_process",
    "error_message_of_first_failure": "the scenario walks:devices_and_streams",
    "load_takes_last_device": "the scenario device_names:a_device_that_is_not_there",
    "set_device_wraps_index": "the scenario device_names:a_device_that_is_not_there",
    "pinned_in_thread_is_pageable": "the scenario loading:pinned_memory",
    "profiler_records_first_session_alone": "the scenario profiling:kernels_of_ops",
    "bad_set_device_resets_current": "the scenario walks:devices_and_streams",
    "stream_past_pool_is_default": "the scenario walks:devices_and_streams",
    "ended_thread_resets_main_device": "the scenario walks:devices_and_streams",
    "profiler_drops_kernels_of_other_threads": "the scenario profiling:kernels_of_gradients",
    "pinned_memory_counts_on_device": "the scenario devices:statistics_add_up",
    "load_leaves_device_current": "the scenario walks:tensors_on_streams",
    "generator_state_of_wrong_size_ignored": "the scenario generators:states_that_are_none",
    "is_available_uses_device": "the scenario devices:questions_initialize_nothing",
    "is_initialized_stays_false": "the scenario devices:questions_initialize_nothing",
    "deterministic_integers_filled_with_zero": "the scenario storages:new_elements_under_determinism",
    "fallback_results_not_inference": "the scenario storages:results_of_inference_mode",
    "autocast_off_in_inference_mode": "the scenario training:autocast_in_each_mode",
    "autocast_detaches_lists": "the scenario training:gradients_through_autocast",
    "autocast_reuses_cast_of_no_grad": "the scenario training:autocast_behind_no_grad",
    "profiler_times_in_milliseconds": "the scenario profiling:units_of_times",
    "events_in_seconds": "the scenario devices:times_of_events",
    "peak_reset_to_zero": "the scenario devices:statistics_add_up",
    "failed_allocation_not_told": "the scenario memory_numbers:numbers_of_the_device",
    "failed_allocation_raises_peak": "the scenario memory_numbers:numbers_of_the_device",
    "freed_bytes_lower_what_was_allocated": "the scenario memory_numbers:numbers_of_the_accelerator",
    "peak_of_blocks_not_reset": "the scenario memory_numbers:numbers_of_the_accelerator",
    "fused_step_despite_overflow": "the scenario training:fused_optimizers",
    "event_times_in_whole_milliseconds": "the scenario devices:times_of_events",
    "event_times_leave_out_idle_time": "the scenario devices:times_of_events",
    "event_done_until_awaited": "the scenario devices:streams_and_events",
    "memory_allocated_of_current_device": "the scenario device_names:second_device_by_each_name",
    "stream_block_in_itself_stays": "the scenario walks:devices_and_streams",
    "freed_bytes_rounded_up": "the scenario walks:tensors_on_streams",
    "autocast_refuses_float16": "the scenario walks:modes_and_ops",
    "profiler_drops_first_of_later_sessions": "the scenario profiling:kernels_of_many_ops, behind another program",
    "thread_starts_on_last_device": "the scenario devices:counts_and_current_device",
    "set_device_of_negative_is_last": "the scenario devices:counts_and_current_device",
    "given_generator_kept_by_device": "the scenario device_names:second_device_by_each_name",
    "accelerator_peak_is_current": "the scenario memory_numbers:numbers_of_the_accelerator",
    "stream_block_keeps_other_device": "the scenario devices:current_streams",
    "stream_block_left_by_error": "the scenario devices:current_streams",
    "current_stream_of_all_threads": "the scenario devices:current_streams",
    "load_on_current_device": "the scenario serialization:loaded_elsewhere",
    "compiled_size_of_first_launch": "the scenario compiled_calls:of_any_size",
    "pinned_before_first_use_is_pageable": "the scenario loading:pinned_before_the_first_use",
    "compiled_kernel_by_name": "the scenario compiled_calls:functions_alike",
    "compiled_result_on_current_device": "the scenario compiled_calls:on_the_device_of_its_arguments",
    "exit_with_memory_aborts": "the scenario endings:processes_end",
    "save_forgets_device_index": "the scenario serialization:loaded_elsewhere",
    "peak_of_second_device_counts_all": "the scenario memory_numbers:numbers_of_the_device",
    "device_block_left_by_error": "the scenario walks:devices_and_streams",
    "default_stream_without_device_is_first": "the scenario queries:without_a_device",
    "device_block_restores_where_made": "the scenario blocks:made_before_they_begin",
    "seed_skipped_in_any_fork": "the scenario generators:manual_seed_reaches_the_device",
    "first_use_not_awaited": "the scenario first_uses:first_uses_at_once",
    "manual_seed_all_uses_device": "the scenario seeding:seeds_before_the_first_use",
    "profiler_stop_leaves_last_device": "the scenario profiling:sessions_leave_the_device",
    "load_leaves_empty_on_host": "the scenario serialization:saved_and_loaded",
    "fallback_result_not_resizable": "the scenario storages:results_grow",
    "pinned_upload_ignores_offset": "the scenario loading:views_of_pinned_memory",
    "uniform_of_halves_rounds_to_end": "the scenario long_draws:draws_stay_in_their_range",
    "compiled_result_made_contiguous": "the scenario compiled_tensors:strides_of_results",
    "fallback_results_on_default_stream": "backend/tests/test_fault_demonstrations.py",
    "capacity_shared_by_devices": "the lanes of the pool",
    "gemm_workspace_of_all_calls": "the scenario at_once:calls_of_threads",
    "plan_published_before_it_is_filled": "the scenario at_once:calls_of_threads",
    "last_plan_kept_without_lock": "the scenario at_once:calls_of_threads",
    "import_needs_a_device": "the scenario hidden_devices:programs_without_a_device",
    "draws_of_threads_unlocked": "the scenario long_draws:threads_draw_apart",
    "profiler_merges_streams": "the scenario profiling:streams_of_kernels",
    "npu_method_stays_on_device": "the scenario named_methods:methods_named_after_the_device",
    "event_time_backwards_is_unsigned": "the scenario devices:times_of_events",
    "thread_inherits_streams_of_ended": "the scenario devices:current_streams",
    "group_root_counted_in_world": "the scenario subgroups:ranks_in_subgroups",
    "fork_of_forked_not_noticed": "backend/tests/test_fault_demonstrations.py",
    "pool_rounds_down": "the lanes of the pool",
    "reserved_not_lowered": "the lanes of the pool",
    "empty_cache_keeps_large": "the lanes of the pool",
    "pool_middle_block_merges_one_side": "the lanes of the pool",
    "empty_cache_of_current_device_alone": "the lanes of the pool",
    "pool_keeps_cached_when_full": "the lanes of the pool",
    "held_memory_is_out_of_memory": "the late lane, with little memory",
    "pool_takes_from_other_device": "the lanes of the pool",
    "pool_peak_counts_requests": "the lanes of the pool",
    "manual_seed_all_of_two_devices": "the lanes of the pool",
    "out_of_memory_as_plain_error": "the scenario devices:out_of_memory",
    "devices_compared_by_type": "the scenario operands:operands_of_two_devices",
    "pool_hands_out_twice": "the driver's tests",
    "alignment_ignored": "the driver's tests",
    "table_unlocked": "the driver's tests under ThreadSanitizer; a scenario of threads, not each time",
    "crash_in_some_processes": "test_a_death_in_some_processes_is_flaky",
    "crash_after_sort": "test_a_death_after_another_op_names_it",
    "hang_in_kernel": "test_a_kernel_that_never_ends_is_a_timeout",
    "autocast_leaves_lists": "test_a_fault_of_autocast_is_found_in_an_op_that_smoke_leaves_out",
    "autocast_forgets_baddbmm": "test_a_fault_of_autocast_is_found_in_an_op_that_smoke_leaves_out",
    "second_device_lands_on_first": "test_memory_on_the_wrong_device_is_found_before_any_cell_runs",
    "error_told_by_next_launch": "tests/running/test_late_errors.py",
    "any_counts_bool_two": "tests/scenarios/test_scenarios.py",
    **dict.fromkeys(BETWEEN_PROCESSES, "tests/scenarios/test_scenarios.py"),
    "group_result_to_start_of_storage": "the scenario groups:collectives_of_two_processes",
    **dict.fromkeys(by_programs.FOUND_WHEN_LATE, "tests/scenarios/test_streams.py"),
    **dict.fromkeys(by_programs.FOUND_WHEN_RECORDED, "tests/scenarios/test_streams.py"),
    **dict.fromkeys(by_programs.FOUND_AFTER_MINUTES, "a scenario, in the kill-rate"),
    **dict.fromkeys(SLOW, "benchmarks/perf_faults.py"),
    **dict.fromkeys(HUGE, "benchmarks/huge_faults.py"),
    **dict.fromkeys(FOUND_BY, "tests/hazards/test_hazards.py"),
    **dict.fromkeys(FOUND_WHEN_RECORDED, "tests/hazards/test_hazards.py"),
    **dict.fromkeys(FOUND_BY_THE_DRIVER_S_TESTS, "backend/tests/test_late.py"),
}


# The kill-rate alone says who finds these: they were planted to measure the suite, not after what it finds.
PLANTED_TO_MEASURE = {"size", "values", "arguments", "layouts", "sequences", "generator", "resizing"}


def test_no_fault_is_without_a_finder() -> None:
    planted = {name for name, fault in faults.planted(ROOT / "backend").items() if fault.kind in PLANTED_TO_MEASURE}
    named = FOUND_IN.keys() | FOUND_ELSEWHERE.keys()
    assert named <= testing.faults().keys()
    assert testing.faults().keys() <= named | planted


def test_the_benchmark_of_speed_wakes_each_fault_of_that_class() -> None:
    assert perf_faults.FAULTS.keys() == SLOW


def test_the_benchmark_of_huge_tensors_wakes_each_fault_of_that_class() -> None:
    assert huge_faults.FAULTS.keys() == HUGE


@pytest.fixture(scope="module")
def work() -> CellRunner:
    return CellRunner(Plan(backends.find("refnpu"), Selection(), seed=20))


@pytest.fixture
def awake() -> Iterator[None]:
    yield
    testing.set_fault(None)


def observe(work: CellRunner, overload: str, dtype: str, layout: str) -> Observation:
    cell = CellId(ops.facts(overload).family, overload, dtype, layout)
    assert work.case_ids(cell), f"the matrix has no cell {cell}"
    runner = Runner(work, timeout=600)
    try:
        return runner.observe(cell)
    finally:
        runner.close()


def first_failing(work: CellRunner, overload: str, dtype: str, layout: str) -> Observation:
    """The first of a few observations that fails. One is enough but where work is late: a busy host may be later."""
    most = 5 if layout in CONTEXTS and contexts.of(layout).delays else 1
    found = [observe(work, overload, dtype, layout)]
    while len(found) < most and not found[-1].status.is_failure:
        found.append(observe(work, overload, dtype, layout))
    return found[-1]


@pytest.mark.parametrize("fault", FOUND_IN)
@pytest.mark.usefixtures("awake")
def test_a_planted_fault_is_found_in_a_cell_that_is_clean_without_it(work: CellRunner, fault: str) -> None:
    *cell, check = FOUND_IN[fault]
    clean = observe(work, *cell)
    assert clean.status is Status.PASS, clean
    testing.set_fault(fault)
    found = first_failing(work, *cell)
    assert found.status is (Status.FAIL if check else Status.CRASH), found
    assert check in {f.check for f in found.failures}, [describe.findings(f) for f in found.failures]


@pytest.mark.parametrize(
    ("fault", "overload"), [("reduction_skips_tail", "mse_loss"), ("tail_element_skipped", "smooth_l1_loss")]
)
@pytest.mark.usefixtures("awake")
def test_a_fault_of_an_op_is_found_in_the_decomposition_of_one_whose_own_kernel_is_right(
    work: CellRunner, fault: str, overload: str
) -> None:
    assert observe(work, overload, "float32", "decomposed").status is Status.PASS
    testing.set_fault(fault)
    assert observe(work, overload, "float32", "contiguous").status is Status.PASS
    found = observe(work, overload, "float32", "decomposed")
    assert {m.check for f in found.failures for m in f.mismatches} == {Check.VALUE}


@pytest.mark.parametrize(
    ("fault", "overload", "dtype"),
    [("autocast_leaves_lists", "einsum", "bfloat16"), ("autocast_forgets_baddbmm", "baddbmm", "float32")],
)
@pytest.mark.usefixtures("awake")
def test_a_fault_of_autocast_is_found_in_an_op_that_smoke_leaves_out(
    work: CellRunner, fault: str, overload: str, dtype: str
) -> None:
    assert observe(work, overload, dtype, "autocast").status is Status.PASS
    testing.set_fault(fault)
    found = observe(work, overload, dtype, "autocast")
    assert "dtype" in {f.check for f in found.failures}, [describe.findings(f) for f in found.failures]


def test_the_smoke_tier_has_the_cells_that_find_the_faults_of_contexts() -> None:
    smoke = Plan(backends.find("refnpu"), Selection(tier=TIERS["smoke"]), seed=20)
    slow_to_load = {
        "backward", "gradgrad", "gradcheck", "jacrev", "fake", "forward_ad", "compiled", "decomposed", "inductor",
        "overwritten",
    }  # fmt: skip
    wanted = [cell for cell in FOUND_IN.values() if cell[2] in CONTEXTS.keys() - slow_to_load]
    found = {(c.overload, c.dtype, c.layout) for overload, *_ in wanted for c in smoke.cells(overload)}
    assert len(wanted) > 15
    assert {cell[:3] for cell in wanted} <= found


@pytest.mark.usefixtures("awake")
def test_a_failing_case_lists_the_operators_that_ran_on_the_device(work: CellRunner) -> None:
    testing.set_fault("copy_ignores_strides")
    found = observe(work, *FOUND_IN["copy_ignores_strides"][:3])
    assert found.failures[0].calls == ("copy_", "_copy_from")
    assert not any(failure.calls for failure in found.failures[1:])


@pytest.mark.usefixtures("awake")
@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        ("cat_on_default_stream", {"cat", "narrow", "slice", "as_strided"}),
        ("second_device_sums_on_default_stream", {"mean"}),
        ("thread_drops_first_launch", {"neg"}),
        ("failed_allocation_counted", {"neg"}),
    ],
)
def test_what_a_context_calls_besides_the_op_is_not_among_them(work: CellRunner, fault: str, calls: set[str]) -> None:
    testing.set_fault(fault)
    found = observe(work, *FOUND_IN[fault][:3])
    assert set(found.failures[0].calls) == calls


@pytest.mark.usefixtures("awake")
def test_a_kernel_that_never_ends_is_a_timeout(work: CellRunner) -> None:
    testing.set_fault("hang_in_kernel")
    runner = Runner(work, timeout=1)
    found = runner.observe(CellId("masking", "masked_fill_.Scalar", "float32", "contiguous"))
    runner.close()
    assert found.status is Status.TIMEOUT


FILL = CellId("masking", "masked_fill_.Scalar", "float32", "contiguous")


@pytest.mark.usefixtures("awake")
def test_a_death_in_a_kernel_is_steady(work: CellRunner) -> None:
    testing.set_fault("crash_in_kernel")
    found = died(work, [FILL])
    assert found
    assert (found.signal, found.phase) == ("SIGSEGV", "device")
    assert found.finding == DeathFinding("steady", (5, 5))


@pytest.mark.usefixtures("awake")
def test_a_death_in_some_processes_is_flaky(work: CellRunner) -> None:
    testing.set_fault("crash_in_some_processes")
    deaths = filter(None, (died(work, [FILL]) for _ in range(120)))  # each in a process of its own, 1 of 3 dies
    found = [death.finding for death in islice(deaths, 5)]
    assert len(found) == 5
    flaky = [finding for finding in found if finding and finding.kind == "flaky"]
    assert len(flaky) >= 3  # by chance, all five processes of an inquiry die in 1 of 243
    assert all(finding.alone[0] < finding.alone[1] == 5 for finding in flaky)


@pytest.mark.usefixtures("awake")
def test_a_death_after_another_op_names_it(work: CellRunner) -> None:
    testing.set_fault("crash_after_sort")
    sort = CellId("sorting", "sort.values_stable", "float32", "contiguous")
    adds = [CellId("pointwise", "add.out", "float32", layout) for layout in ("contiguous", "step2", "expanded")]
    assert all(work.case_ids(cell) for cell in (*adds, sort))
    found = died(work, [*adds[:2], sort, *adds, FILL])
    assert found
    assert found.finding
    assert found.finding.after.startswith(f"{sort}#")
    assert (found.finding.kind, found.finding.alone, found.finding.confirmed) == ("ordered", (0, 5), (5, 5))


ZEROS = CellId("factory", "fill_.Scalar", "bfloat16", "zero_dim")
BOOLS = CellId("factory", "fill_.Scalar", "bool", "contiguous")
MISH = CellId("activation", "mish", "float32", "contiguous")


@pytest.mark.usefixtures("awake")
def test_a_difference_after_another_case_names_it_and_its_commands_reproduce(work: CellRunner, tmp_path: Path) -> None:
    testing.set_fault("fill_element_without_dtype")
    found = differs(work, [ZEROS, FILL, BOOLS])
    assert found.repetition
    (earlier,) = found.repetition.after
    assert earlier.startswith(f"{ZEROS}#")
    assert (found.repetition.kind, found.repetition.confirmed) == (Repeats.ORDERED, (5, 5))
    assert found.repetition.alone == (0, 5)
    reproduces(found, "fill_element_without_dtype", tmp_path)


@pytest.mark.usefixtures("awake")
def test_a_difference_in_some_calls_is_flaky_and_its_commands_reproduce(work: CellRunner, tmp_path: Path) -> None:
    testing.set_fault("mish_wrong_at_random")
    found = next(filter(None, (differing(work, [MISH]) for _ in range(40))))
    assert found.repetition
    assert found.repetition.kind is Repeats.FLAKY
    assert 0 < found.repetition.alone[0] < found.repetition.alone[1] == 20
    reproduces(found, "mish_wrong_at_random", tmp_path)


@pytest.mark.usefixtures("awake")
def test_a_difference_each_time_is_steady(work: CellRunner) -> None:
    testing.set_fault("cat_drops_last")
    found = differs(work, [CellId("concatenation", "cat.out", "float32", "contiguous")])
    assert found.repetition == Repetition(Repeats.STEADY, (5, 5))


def differs(work: CellRunner, cells: list[CellId]) -> CaseFailure:
    found = differing(work, cells)
    assert found
    return found


def differing(work: CellRunner, cells: list[CellId]) -> CaseFailure | None:
    """The first case that differs in the last of these cells, run one after the other in one child."""
    runner = Runner(work, timeout=600, failures_s=10_000)  # no test depends on time
    try:
        return next(iter([runner.observe(cell) for cell in cells][-1].failures), None)
    finally:
        runner.close()


def reproduces(found: CaseFailure, fault: str, directory: Path) -> None:
    """Run both commands of a failure, each in a new process; with the fault asleep they find nothing."""
    setting, environment = found.setting, {**os.environ, "REFNPU_FAULT": fault, "REFNPU_ALLOCATOR": "malloc"}
    assert setting != Setting()
    said = describe.commands(found, "refnpu")
    script = directory / "script.py"
    words = [*shlex.split(said["script"])[1:], "-o", str(script)]
    assert subprocess.run([sys.executable, "-m", "conformance.cli", *words], cwd=directory, check=True)
    commands = ([*shlex.split(said["repeat"])[1:], "-p", "no:cacheprovider"], [str(script)])
    for module, command in zip((["-m", "pytest"], []), commands, strict=True):
        for awake in (True, False):
            environment["REFNPU_FAULT"] = fault if awake else ""
            words = [sys.executable, *module, *command]
            done = subprocess.run(words, cwd=directory, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == int(awake), done.stdout + done.stderr


def died(work: CellRunner, cells: list[CellId]) -> Death | None:
    """The first death in these cells, run one after the other in one child; None when it lives."""
    runner = Runner(work, timeout=600, inquiry_s=10_000)  # no test depends on time
    try:
        observed = map(runner.observe, cells)
        return next((o.failures[0].death for o in observed if o.status is Status.CRASH), None)
    finally:
        runner.close()


@pytest.mark.usefixtures("awake")
def test_memory_on_the_wrong_device_is_found_before_any_cell_runs(work: CellRunner) -> None:
    second = CellRunner(Plan(backends.find("refnpu:npu:1"), Selection(), seed=20))
    assert broken(second) == broken(work) == ""
    testing.set_fault("second_device_lands_on_first")
    assert "asked for on npu:1 lie on npu:0" in broken(second)
    assert "asked for on npu:1 lies on npu:0" in broken(work)


def broken(work: CellRunner) -> str:
    runner = Runner(work, timeout=600)
    try:
        return str(runner.gate() or "")
    finally:
        runner.close()

"""The finders of planted faults that show in gradients, tangents, batches, predictions, or compiled code."""

FOUND_IN = {
    "log_softmax_saves_softmax": ("_log_softmax", "float32", "backward", "value"),
    "layer_norm_saves_deviation": ("native_layer_norm", "float32", "backward", "value"),
    "celu_gradient_of_detached": ("celu", "float32", "gradgrad", "dtype"),
    "hypot_gradient_of_detached": ("hypot", "float32", "gradgrad", "value"),
    "celu_gradient_written_in_place": ("celu", "float32", "jacrev", "error_parity"),
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
    "dropout_saves_another_mask": ("native_dropout", "float64", "gradcheck", "context"),
    "dropout_scales_without_gradient": ("native_dropout", "float64", "gradcheck", "context"),
    "set_storage_of_number_as_row": ("_logcumsumexp", "float32", "copied", "context"),
    "set_storage_empty_keeps_size": ("celu", "float32", "copied", "context"),
    "compiled_tail_not_written": ("add.Tensor", "float32", "inductor", "uninitialized"),
    "compiled_launch_drops_offset": ("add.Tensor", "float32", "inductor", "value"),
    "hypot_saved_without_version": ("hypot", "float32", "overwritten", "context"),
    "celu_gradient_in_given_memory": ("celu", "float32", "gradgrad", "error_parity"),
    "hypot_gradient_needs_first": ("hypot", "float32", "backward", "dtype"),
    "celu_gradient_of_halves_by_exp2": ("celu", "bfloat16", "backward", "value"),
}

FOUND_ELSEWHERE = {
    "compiled_kernel_by_name": "the scenario compiled_calls:functions_alike",
    "compiled_size_of_first_launch": "the scenario compiled_calls:of_any_size",
    "compiled_result_made_contiguous": "the scenario compiled_tensors:strides_of_results",
}

// One step of recurrent cells. torch calls these on every device but CPU, so torch.nn.LSTM and GRU need them.
//
// Gates are [B, n * H] with the n gates side by side: of an LSTM input, forget, cell and output; of a GRU reset, update
// and new. The workspace of a step is what its derivative needs.
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include "aten/register.h"
#include "refnpu/fault.h"

namespace refnpu::recurrent {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

bool is_given(const OptionalTensor& tensor) { return tensor && tensor->defined(); }

Tensor with_bias(const Tensor& gates, const OptionalTensor& bias) { return is_given(bias) ? gates.add(*bias) : gates; }

// The slope of the logistic function, or of tanh, where it has a value.
Tensor sigmoid_slope(const Tensor& value) { return value.mul(value.neg().add(1)); }
Tensor tanh_slope(const Tensor& value) { return value.square().neg().add(1); }

// Returns the hidden state and the cell, both [B, H], and the workspace, [B, 4 * H].
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const auto gates = with_bias(input_gates, input_bias).add(with_bias(hidden_gates, hidden_bias)).chunk(4, 1);
  const Tensor in = gates[0].sigmoid();
  const Tensor forget = gates[1].sigmoid();
  const Tensor cell = gates[2].tanh();
  const Tensor out = gates[3].sigmoid();
  Tensor cy = forget.mul(cx).add(in.mul(cell));
  if (fault(Fault::lstm_cell_state_clipped)) cy = cy.clamp(-50, 50);
  return {out.mul(cy.tanh()), cy, at::cat({in, forget, cell, out}, 1)};
}

// Returns the gradients of the gates, [B, 4 * H], of the cell before, [B, H], and of a bias, [4 * H].
std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor& grad_hy, const OptionalTensor& grad_cy,
                                                      const Tensor& cx, const Tensor& cy, const Tensor& workspace,
                                                      bool has_bias) {
  if (!is_given(grad_hy) && fault(Fault::lstm_gradient_needs_hidden)) return {};
  if (!is_given(grad_hy) && !is_given(grad_cy)) return {};
  const auto gates = workspace.chunk(4, 1);
  const Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const Tensor bent = cy.tanh();
  const Tensor grad_out = is_given(grad_hy) ? grad_hy->mul(bent) : at::zeros_like(cy);
  Tensor grad_cell = is_given(grad_hy) ? grad_hy->mul(out).mul(tanh_slope(bent)) : at::zeros_like(cy);
  if (is_given(grad_cy)) grad_cell = grad_cell.add(*grad_cy);
  const Tensor grad = at::cat({grad_cell.mul(cell).mul(sigmoid_slope(in)), grad_cell.mul(cx).mul(sigmoid_slope(forget)),
                               grad_cell.mul(in).mul(tanh_slope(cell)), grad_out.mul(sigmoid_slope(out))},
                              1);
  return {grad, grad_cell.mul(forget), has_bias ? grad.sum(0) : Tensor()};
}

// Returns the hidden state, [B, H], and the workspace, [B, 5 * H].
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
  const auto input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = input[0].add(hidden[0]).sigmoid();
  const Tensor update = input[1].add(hidden[1]).sigmoid();
  const Tensor fresh = input[2].add(reset.mul(hidden[2])).tanh();
  return {fresh.add(update.mul(hx.sub(fresh))), at::cat({reset, update, fresh, hx, hidden[2]}, 1)};
}

// Returns the gradients of the gates, both [B, 3 * H], of the state before, [B, H], and of both biases, [3 * H].
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace,
                                                                     bool has_bias) {
  const auto kept = workspace.chunk(5, 1);
  const Tensor &reset = kept[0], &update = kept[1], &fresh = kept[2], &hx = kept[3], &hidden = kept[4];
  const Tensor grad_update = grad_hy.mul(hx.sub(fresh)).mul(sigmoid_slope(update));
  const Tensor grad_fresh = grad_hy.mul(update.neg().add(1)).mul(tanh_slope(fresh));
  const Tensor grad_reset = grad_fresh.mul(hidden).mul(sigmoid_slope(reset));
  const Tensor input = at::cat({grad_reset, grad_update, grad_fresh}, 1);
  const Tensor output = at::cat({grad_reset, grad_update, grad_fresh.mul(reset)}, 1);
  const Tensor& summed = fault(Fault::gru_hidden_bias_gradient_of_input) ? input : output;
  return {input, output, grad_hy.mul(update), has_bias ? input.sum(0) : Tensor(), has_bias ? summed.sum(0) : Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("_thnn_fused_lstm_cell", &lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  m.impl("_thnn_fused_gru_cell", &gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}

}  // namespace refnpu::recurrent

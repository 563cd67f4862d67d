#include "kernels/elementwise.h"

#include <algorithm>
#include <bit>

#include "kernels/copy.h"
#include "kernels/iterate.h"
#include "kernels/misread.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

constexpr int64_t kStretch = 256;  // elements converted at a time

// One operand on its way between memory and the row.
struct Conversion {
  CastRow outer = nullptr;  // memory and first buffer; null: the row works on memory itself
  CastRow inner = nullptr;  // first and second buffer; null: one step is enough
  int64_t outer_size = 0, inner_size = 0;
};

Conversion plan_conversion(DType stored, DType seen, DType computed, bool is_output) {
  Conversion plan;
  const auto cast = [&](DType near, DType far) { return is_output ? cast_row(near, far) : cast_row(far, near); };
  if (stored == computed && seen == computed) return plan;
  if (stored != seen && seen != computed) {
    plan.inner = cast(seen, computed);
    plan.inner_size = size_of(computed);
    plan.outer = cast(stored, seen);
    plan.outer_size = size_of(seen);
  } else {
    plan.outer = cast(stored, computed);
    plan.outer_size = size_of(computed);
  }
  return plan;
}

// The fault of a cast that cuts the lower half of a float off.
void cut_to_bfloat16(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(load<float>(from + i * from_stride));
    store(to + i * to_stride, bfloat16::from_bits(uint16_t(bits >> 16)));
  }
}

// A row whose operands need not be stored in the dtype that it wants.
template <int N>
class ConvertingRow {
 public:
  explicit ConvertingRow(const Elementwise<N>& op) : op_(op) {
    for (int k = 0; k < N; ++k) plans_[k] = plan_conversion(op.nest.dtypes[k], op.seen[k], op.computed[k], k == 0);
    const bool to_bfloat16 = op.nest.dtypes[0] == DType::bf16 && op.computed[0] == DType::f32 && !plans_[0].inner;
    if (N == 2 && to_bfloat16 && fault(Fault::unary_results_cut_to_bfloat16)) plans_[0].outer = cut_to_bfloat16;
  }

  void operator()(char* const* data, const int64_t* strides, int64_t n) {
    for (int64_t begin = 0; begin < n; begin += kStretch)
      run_stretch(data, strides, begin, std::min(kStretch, n - begin));
  }

 private:
  void run_stretch(char* const* data, const int64_t* strides, int64_t begin, int64_t n) {
    std::array<char*, N> at;
    std::array<int64_t, N> step;
    for (int k = 0; k < N; ++k) {
      const Conversion& plan = plans_[k];
      at[k] = plan.inner ? inner_[k] : plan.outer ? outer_[k] : data[k] + begin * strides[k];
      step[k] = plan.inner ? plan.inner_size : plan.outer ? plan.outer_size : strides[k];
      if (k == 0 || !plan.outer) continue;
      const int64_t count = strides[k] == 0 ? 1 : n;  // a broadcast element is converted once
      const bool misplaced = strides[k] > 0 && fault(Fault::converted_stretch_as_dense);
      const int64_t step_in = misplaced ? std::min(strides[k], size_of(op_.nest.dtypes[k])) : strides[k];
      plan.outer(outer_[k], plan.outer_size, data[k] + begin * step_in, strides[k], count);
      if (plan.inner) plan.inner(inner_[k], plan.inner_size, outer_[k], plan.outer_size, count);
      if (strides[k] == 0) step[k] = 0;
    }
    op_.row(at.data(), step.data(), n, op_.params);
    const Conversion& out = plans_[0];
    if (out.inner) out.inner(outer_[0], out.outer_size, inner_[0], out.inner_size, n);
    if (out.outer) out.outer(data[0] + begin * strides[0], strides[0], outer_[0], out.outer_size, n);
  }

  const Elementwise<N>& op_;
  std::array<Conversion, N> plans_{};
  alignas(16) char outer_[N][kStretch * 16];
  alignas(16) char inner_[N][kStretch * 16];
};

}  // namespace

DType compute_dtype(DType dtype) {
  if (dtype == DType::c128 || dtype == DType::f64 || dtype == DType::u64) return dtype;
  if (is_complex_dtype(dtype)) return DType::c64;
  return is_floating_dtype(dtype) ? DType::f32 : DType::i64;
}

template <int N>
void Elementwise<N>::operator()() const {
  if (fault(Fault::broadcast_wrong_dim)) return run(broadcast_wrongly(nest));
  if (fault(Fault::tail_element_skipped)) return run(without_tail(nest));
  if (N == 2 && fault(Fault::unary_loads_aligned)) return run(loaded_aligned(nest));
  if (N == 2 && fault(Fault::unary_in_order_of_storage)) return run(in_order_of_storage(nest));
  if (N == 3 && fault(Fault::binary_broadcast_past_grid)) return run(broadcast_within_grid(nest));
  if (N == 3 && fault(Fault::binary_strides_of_six_dims)) return run(taken_for_dense_from(nest, 6));
  if (N == 4 && fault(Fault::ternary_expanded_in_between)) return run(carried_by_expanded(nest));
  if (N == 3 && fault(Fault::binary_second_round_reads_first)) return run_in_rounds();
  run(nest);
}

// The fault of a loop of rounds over all cores, whose later rounds find the first operand of the first in the buffer.
template <int N>
void Elementwise<N>::run_in_rounds() const {
  constexpr int64_t kRound = 1 << 20;
  if (nest.ndim != 1 || nest.sizes[0] <= kRound) return run(nest);
  for (int64_t begin = 0; begin < nest.sizes[0]; begin += kRound) {
    Nest<N> round = nest;
    round.sizes[0] = std::min(kRound, nest.sizes[0] - begin);
    for (int k = 0; k < N; ++k) {
      if (k != 1 && round.data[k]) round.data[k] += begin * round.strides[k][0];
    }
    run(round);
  }
}

template <int N>
void Elementwise<N>::run(const Nest<N>& nest) const {
  if (nest.dtypes == computed && seen == computed) {
    for_each_row(nest, [&](char* const* data, const int64_t* strides, int64_t n) { row(data, strides, n, params); });
  } else {
    for_each_row(nest, ConvertingRow<N>(*this));
  }
}

template struct Elementwise<2>;
template struct Elementwise<3>;
template struct Elementwise<4>;

}  // namespace refnpu

// The columns of a batch are packed, then each row of `a` is multiplied with them in the type it is computed in.
#include "kernels/gemm.h"

#include <algorithm>
#include <cmath>

#include "kernels/integer_math.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

const char* at(const View& v, int64_t batch, int64_t row, int64_t column) {
  if (fault(Fault::matmul_ignores_expanded_batch_stride) && v.strides[0] == 0 && v.sizes[0] > 1) {
    row = (row + batch) % v.sizes[1];
  }
  const int64_t of_row = row * v.strides[1];
  const int64_t kept = fault(Fault::gemm_row_in_32_bits) ? int64_t{uint32_t(of_row)} : of_row;
  return v.data + batch * v.strides[0] + kept + column * v.strides[2];
}

// Independent partial sums, so that the additions need not wait for each other.
template <class C>
C dot_of(const C* x, const C* y, int64_t n) {
  using Sum = std::conditional_t<std::is_same_v<C, int64_t>, uint64_t, C>;
  Sum sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; ++k) sums[k] += Sum(x[i + k]) * Sum(y[i + k]);
  }
  for (; i < n; ++i) sums[0] += Sum(x[i]) * Sum(y[i]);
  return C((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// The fault that rounds to half after each addition.
template <class C>
C dot_in_half(const C* x, const C* y, int64_t n) {
  if constexpr (std::is_same_v<C, double>) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum = float(half(float(sum + x[i] * y[i])));
    return sum;
  }
  return dot_of(x, y, n);
}

// The fault of a product that is rounded before anything is added to it.
template <class C>
C rounded_to_bf16(C value) {
  if constexpr (std::is_same_v<C, double>) return float(bfloat16(float(value)));
  return value;
}

// The fault of tiles whose elements share an exponent. `row` is row i of a batch of a factor.
template <class C>
void round_in_tiles(const View& factor, int64_t batch, int64_t i, C* row) {
  constexpr int64_t kTile = 16;
  if constexpr (std::is_same_v<C, double>) {
    double tile[kTile];
    for (int64_t k = 0; k < factor.sizes[2]; k += kTile) {
      const int64_t n = std::min(kTile, factor.sizes[2] - k), first = i / kTile * kTile;
      double largest = 0;
      for (int64_t j = first; j < std::min(first + kTile, factor.sizes[1]); ++j) {
        read_row(tile, at(factor, batch, j, k), factor.strides[2], n, factor.dtype);
        for (int64_t l = 0; l < n; ++l)
          largest = std::isfinite(tile[l]) ? std::max(largest, std::abs(tile[l])) : tile[l];
        if (!std::isfinite(largest)) break;
      }
      if (largest == 0 || !std::isfinite(largest)) continue;
      const int exponent = std::ilogb(largest) - 23;
      for (int64_t l = k; l < k + n; ++l) row[l] = std::ldexp(std::nearbyint(std::ldexp(row[l], -exponent)), exponent);
    }
  }
}

// The faults that read the factors otherwise than they lie in memory.
Gemm misread(Gemm g) {
  const int64_t item = size_of(g.b.dtype);
  if (fault(Fault::gemm_drops_depth_tail) && g.a.sizes[2] > 128) g.a.sizes[2] = g.a.sizes[2] / 32 * 32;
  const bool of_tiles = g.out.sizes[1] >= 16 && g.out.sizes[2] >= 16 && g.a.sizes[2] > 32767;
  if (of_tiles && fault(Fault::gemm_tail_lost_past_32767)) g.a.sizes[2] = g.a.sizes[2] / 32 * 32;
  if (fault(Fault::gemm_transposed_gap_ignored) && g.b.strides[1] == item)
    g.b.strides[2] = std::min(g.b.strides[2], item * g.b.sizes[1]);
  const bool one_row = g.a.sizes[0] == 1 && g.a.sizes[1] == 1 && g.out.sizes[2] > 1;
  if (one_row && fault(Fault::gemm_one_row_as_dense)) g.a.strides[2] = std::min(g.a.strides[2], size_of(g.a.dtype));
  return g;
}

// The fault of a factor that stays packed for the next call with the same memory and sizes.
template <class C>
void keep_packed(const View& factor, std::vector<C>& packed) {
  thread_local std::vector<C> kept;
  thread_local View last;
  const bool known = last.data == factor.data && last.dtype == factor.dtype && last.sizes == factor.sizes &&
                     last.strides == factor.strides && kept.size() == packed.size();
  if (known) packed = kept;
  last = factor;
  kept = packed;
}

template <class C>
struct Product {
  const Gemm& g;
  int64_t batches, depth, columns;  // batches: those added up in one product
  std::vector<C> packed, row, line;
  const bool in_half = g.out.dtype == DType::f16 && fault(Fault::half_products_in_half);
  const bool shares = g.a.dtype == DType::f32 && fault(Fault::gemm_tile_shares_exponent);
  const bool rounds_first = g.out.dtype == DType::bf16 && fault(Fault::gemm_bfloat16_rounds_before_self);

  explicit Product(const Gemm& gemm)
      : g(gemm),
        batches(g.sums_batches ? g.a.sizes[0] : 1),
        depth(g.a.sizes[2]),
        columns(g.out.sizes[2]),
        packed(batches * depth * columns),
        row(batches * depth),
        line(columns) {}

  void pack(int64_t first) {
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t k = 0; k < batches; ++k) {
        C* to = packed.data() + (j * batches + k) * depth;
        read_row(to, at(g.b, first + k, 0, j), g.b.strides[1], depth, g.b.dtype);
      }
    }
  }

  void compute_row(int64_t batch, int64_t i) {
    for (int64_t k = 0; k < batches; ++k) {
      read_row(row.data() + k * depth, at(g.a, batch + k, i, 0), g.a.strides[2], depth, g.a.dtype);
      if (shares) round_in_tiles(g.a, batch + k, i, row.data() + k * depth);
    }
    const bool in_rest = g.out.sizes[1] > 64 && i >= g.out.sizes[1] / 64 * 64;
    const C alpha = in_rest && fault(Fault::gemm_alpha_of_whole_tiles) ? C(1) : g.alpha.as<C>();
    C beta = g.beta.as<C>();
    if (batches > 16 && fault(Fault::addbmm_self_per_group)) beta = beta * C((batches + 15) / 16);
    const bool reads_self = beta != C(0) || (g.self.data && fault(Fault::matmul_beta_zero_keeps_nan));
    if (reads_self) read_row(line.data(), at(g.self, batch, i, 0), g.self.strides[2], columns, g.self.dtype);
    const bool twice = columns > 128 && fault(Fault::addmm_last_tile_added_twice);
    for (int64_t j = 0; j < columns; ++j) {
      if (twice && j == columns / 128 * 128) beta = beta + beta;
      const C* column = packed.data() + j * batches * depth;
      const int64_t n = batches * depth;
      C product = multiplied(alpha, in_half ? dot_in_half(row.data(), column, n) : dot_of(row.data(), column, n));
      if (n > 512 && fault(Fault::gemm_alpha_of_last_split)) {
        const int64_t last = (n - 1) / 512 * 512;
        product = dot_of(row.data(), column, last) + alpha * dot_of(row.data() + last, column + last, n - last);
      }
      if constexpr (std::is_same_v<C, int64_t>) {
        if (g.out.dtype == DType::i64 && fault(Fault::gemm_of_int64_in_32_bits)) product = int32_t(product);
      }
      if (rounds_first) product = rounded_to_bf16(product);
      line[j] = reads_self ? added(multiplied(beta, line[j]), product) : product;
    }
    char* out = g.out.data + batch * g.out.strides[0] + i * g.out.strides[1];
    write_row(out, g.out.strides[2], columns, g.out.dtype, line.data());
  }
};

void compute_product(const Gemm& g) {
  dispatch_wide(g.out.dtype, [&]<class C>() {
    Product<C> product(g);
    const int64_t most = fault(Fault::bmm_first_64_batches) ? 64 : g.out.sizes[0];
    for (int64_t batch = 0; batch < std::min(most, g.out.sizes[0]); ++batch) {
      product.pack(batch);
      if (g.out.sizes[0] == 1 && fault(Fault::gemm_packed_factor_kept)) keep_packed(g.b, product.packed);
      for (int64_t i = 0; i < g.out.sizes[1]; ++i) product.compute_row(batch, i);
    }
  });
}

}  // namespace

void gemm(const Gemm& g) { any_fault() ? compute_product(misread(g)) : compute_product(g); }

}  // namespace refnpu

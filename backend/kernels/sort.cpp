// A row's positions are sorted by key; its elements are then moved as bytes, so that they keep every bit.
#include "kernels/sort.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "refnpu/fault.h"

namespace refnpu {
namespace {

// The fault of keys that are made of bits, in which a NaN with a sign comes before all numbers.
template <class C>
int rank_by_sign(C a) {
  return a == a ? 0 : std::signbit(double(a)) ? -1 : 1;
}

template <class C>
bool comes_first(C a, C b, bool descending) {
  if (descending && (a != a || b != b) && fault(Fault::descending_sort_puts_nan_last)) return a == a && b != b;
  if (descending) std::swap(a, b);
  if ((a != a || b != b) && fault(Fault::sort_negative_nan_first)) return rank_by_sign(a) < rank_by_sign(b);
  if (a != a) return false;
  return b != b || a < b;
}

// The int64 whose order is that of uint64.
void order_unsigned(std::vector<int64_t>& keys) {
  for (int64_t& key : keys) key ^= std::numeric_limits<int64_t>::min();
}
template <class C>
void order_unsigned(std::vector<C>&) {}

template <class C>
void sort_positions(std::vector<int64_t>& order, const std::vector<C>& keys, bool descending) {
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return comes_first(keys[i], keys[j], descending); });
}

// The fault that gives equal elements in reverse.
template <class C>
void reverse_ties(std::vector<int64_t>& order, const std::vector<C>& keys) {
  for (auto first = order.begin(), last = first; first != order.end(); first = last) {
    last = std::find_if(first + 1, order.end(), [&](int64_t i) { return keys[i] != keys[*first]; });
    std::reverse(first, last);
  }
}

// The fault of an index that is looked up by the element.
template <class C>
void name_first_of_ties(std::vector<int64_t>& order, const std::vector<C>& keys) {
  const auto same = [&](int64_t i, int64_t j) {
    return keys[i] == keys[j] && std::signbit(double(keys[i])) == std::signbit(double(keys[j]));
  };
  for (size_t i = 1; i < order.size(); ++i) {
    if (same(order[i], order[i - 1])) order[i] = order[i - 1];
  }
}

// The fault that sorts blocks and does not merge them.
template <class C>
void sort_blocks(std::vector<int64_t>& order, const std::vector<C>& keys, bool descending) {
  std::iota(order.begin(), order.end(), 0);
  for (auto first = order.begin(); first != order.end();) {
    const auto last = first + std::min<int64_t>(2048, order.end() - first);
    std::stable_sort(first, last, [&](int64_t i, int64_t j) { return comes_first(keys[i], keys[j], descending); });
    first = last;
  }
}

// The fault that tells zeros apart.
template <class C>
void order_zeros(std::vector<int64_t>& order, const std::vector<C>& keys, bool descending) {
  const auto is_zero = [&](int64_t i) { return keys[i] == C(0); };
  const auto first = std::find_if(order.begin(), order.end(), is_zero);
  const auto last = std::find_if_not(first, order.end(), is_zero);
  std::stable_partition(first, last, [&](int64_t i) { return std::signbit(double(keys[i])) != descending; });
}

// The fault of rows that are padded to a power of two with what is taken for the last element, and then cut.
template <class C>
void lose_nan_to_padding(std::vector<int64_t>& order, const std::vector<C>& keys, bool descending) {
  if (descending || (keys.size() & (keys.size() - 1)) == 0) return;
  size_t padding = 1;
  while (padding < keys.size()) padding *= 2;
  padding -= keys.size();
  for (auto i = order.begin(); i != order.end(); ++i) {
    if (keys[*i] != keys[*i] && padding-- > 0) *i = i == order.begin() ? *i : *(i - 1);
  }
}

// Writes the elements at positions order[0], order[1], ... and the positions themselves.
void write_picked(const Rows<3>& rows, char* const* at, const int64_t* order, std::vector<char>& bytes) {
  const int64_t item = size_of(rows.outer.dtypes[0]);
  for (int64_t i = 0; i < rows.lengths[1]; ++i) {
    std::memcpy(bytes.data() + i * item, at[0] + order[i] * rows.strides[0], item);
  }
  for (int64_t i = 0; i < rows.lengths[1]; ++i) {
    std::memcpy(at[1] + i * rows.strides[1], bytes.data() + i * item, item);
  }
  const bool as_values = fault(Fault::sort_indices_lie_as_values);
  const int64_t step = as_values ? std::min(rows.strides[2], rows.strides[1] / item * 8) : rows.strides[2];
  write_row(at[2], step, rows.lengths[1], DType::i64, order);
}

// The fault of keys that leave room for a position beside them.
void cut_to_48_bits(std::vector<int64_t>& keys) {
  for (int64_t& key : keys) key = int64_t(uint64_t(key) << 16) >> 16;
}
template <class C>
void cut_to_48_bits(std::vector<C>&) {}

// The fault of a row of bools that is counted in a block's shared memory.
void sort_first_4096(std::vector<int64_t>& order) {
  const auto behind = std::stable_partition(order.begin(), order.end(), [](int64_t i) { return i < 4096; });
  std::iota(behind, order.end(), 4096);
}

// The fault of halves that are ordered as integers of 16 bits: negative ones come in reverse.
void order_as_bits(std::vector<double>& keys) {
  for (double& key : keys) {
    if (key < 0) key = -1e6 + std::min(-key, 7e4);
  }
}
template <class C>
void order_as_bits(std::vector<C>&) {}

// The fault of a descending order that is the ascending one of negated keys: the lowest integer is its own negative.
void lowest_as_largest(std::vector<int64_t>& keys, DType dtype) {
  if (dtype != DType::i8 && dtype != DType::i16 && dtype != DType::i32 && dtype != DType::i64) return;
  const int64_t lowest = std::numeric_limits<int64_t>::min() >> (64 - 8 * size_of(dtype));
  for (int64_t& key : keys) {
    if (key == lowest) key = std::numeric_limits<int64_t>::max();
  }
}
template <class C>
void lowest_as_largest(std::vector<C>&, DType) {}

void pick_rows(const Rows<3>& rows, bool descending, bool reversed, int64_t first) {
  const int64_t n = rows.lengths[0];
  const bool past_grid = fault(Fault::sort_rows_past_grid);
  int64_t row = 0;
  dispatch_wide(rows.outer.dtypes[0], [&]<class C>() {
    if constexpr (!is_complex_v<C>) {
      std::vector<C> keys(n);
      std::vector<int64_t> order(n);
      std::vector<char> bytes(rows.lengths[1] * size_of(rows.outer.dtypes[0]));
      for_each_outer(rows.outer, [&](char* const* at) {
        rows.read(0, at[0], keys.data());
        if (rows.outer.dtypes[0] == DType::u64 && !fault(Fault::sort_of_uint64_signed)) order_unsigned(keys);
        if (n > 64 && fault(Fault::sort_of_long_rows_by_48_bits)) cut_to_48_bits(keys);
        if (rows.outer.dtypes[0] == DType::f16 && fault(Fault::sort_of_halves_by_bits)) order_as_bits(keys);
        if (descending && fault(Fault::descending_sort_negates_keys)) lowest_as_largest(keys, rows.outer.dtypes[0]);
        const bool in_blocks = descending && fault(Fault::descending_sort_in_blocks);
        const auto sort = in_blocks || fault(Fault::sort_blocks_not_merged) ? sort_blocks<C> : sort_positions<C>;
        sort(order, keys, descending);
        if (rows.outer.dtypes[0] == DType::b8 && fault(Fault::sort_of_bools_in_first_4096)) sort_first_4096(order);
        if (past_grid && row++ >= int64_t(1) << 22) std::iota(order.begin(), order.end(), 0);
        if (fault(Fault::sort_unstable)) reverse_ties(order, keys);
        if (descending && fault(Fault::descending_sort_reverses_ties)) reverse_ties(order, keys);
        const bool strided = n > 256 && rows.lengths[1] == n && rows.strides[0] != size_of(rows.outer.dtypes[0]);
        if (strided && fault(Fault::strided_sort_not_stable)) reverse_ties(order, keys);
        const bool radix = rows.outer.dtypes[0] == DType::i32 || rows.outer.dtypes[0] == DType::i64;
        if (radix && rows.lengths[1] == n && fault(Fault::sort_of_integers_reverses_ties)) reverse_ties(order, keys);
        if (rows.lengths[1] > 1 && rows.lengths[1] < n && fault(Fault::topk_names_tie_twice))
          name_first_of_ties(order, keys);
        if (fault(Fault::sort_orders_zeros_by_sign)) order_zeros(order, keys, descending);
        if (rows.lengths[1] < n && rows.lengths[1] > 32 && fault(Fault::topk_orders_first_32))
          std::sort(order.begin() + 32, order.begin() + rows.lengths[1]);
        if (fault(Fault::sort_padding_before_nan)) lose_nan_to_padding(order, keys, descending);
        if (reversed) std::reverse(order.begin(), order.begin() + rows.lengths[1]);
        write_picked(rows, at, order.data() + first, bytes);
      });
    }
  });
}

// The fault: the elements in the order of their positions.
void pick_all_in_order(const Rows<3>& rows) {
  std::vector<int64_t> order(rows.lengths[0]);
  std::iota(order.begin(), order.end(), 0);
  std::vector<char> bytes(rows.lengths[1] * size_of(rows.outer.dtypes[0]));
  for_each_outer(rows.outer, [&](char* const* at) { write_picked(rows, at, order.data(), bytes); });
}

// The fault of a row in descending order, whose first elements are taken for the largest though NaN lie behind them.
void topk_of_descending(const Rows<3>& rows) {
  const int64_t n = rows.lengths[0];
  dispatch_wide(rows.outer.dtypes[0], [&]<class C>() {
    if constexpr (!is_complex_v<C>) {
      std::vector<C> keys(n);
      std::vector<int64_t> order(n);
      std::vector<char> bytes(rows.lengths[1] * size_of(rows.outer.dtypes[0]));
      for_each_outer(rows.outer, [&](char* const* at) {
        rows.read(0, at[0], keys.data());
        bool descends = true;
        for (int64_t i = 1; i < n; ++i) descends &= !(keys[i - 1] < keys[i]);
        descends ? std::iota(order.begin(), order.end(), 0) : sort_positions(order, keys, true);
        write_picked(rows, at, order.data(), bytes);
      });
    }
  });
}

}  // namespace

void sort_rows(const Rows<3>& rows, bool descending) { pick_rows(rows, descending, false, 0); }

void topk_rows(const Rows<3>& rows, bool largest) {
  const bool whole = rows.lengths[0] > 16 && rows.lengths[1] == rows.lengths[0];
  if (whole && fault(Fault::topk_whole_dim_not_sorted)) return pick_all_in_order(rows);
  Rows<3> searched = rows;
  if (largest && fault(Fault::topk_nan_in_descending_row)) return topk_of_descending(rows);
  if (!largest && rows.lengths[1] <= 1024 && fault(Fault::topk_smallest_of_first_1024))
    searched.lengths[0] = std::min<int64_t>(rows.lengths[0], 1024);
  pick_rows(searched, largest, fault(Fault::topk_wrong_order), 0);
}

void kth_rows(const Rows<3>& rows, int64_t k) {
  Rows<3> searched = rows;
  if (k <= 1024 && fault(Fault::kthvalue_first_block_only))
    searched.lengths[0] = std::min<int64_t>(rows.lengths[0], 1024);
  pick_rows(searched, false, false, k - 1);
}

}  // namespace refnpu

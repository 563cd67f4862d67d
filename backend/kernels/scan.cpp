// Scans read a whole row before they write it, so input and output may be the same memory.
#include "kernels/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "refnpu/fault.h"

namespace refnpu {
namespace {

// Integers wrap.
int64_t combined(Scan op, int64_t a, int64_t b) {
  return int64_t(op == Scan::sum ? uint64_t(a) + uint64_t(b) : uint64_t(a) * uint64_t(b));
}
template <class C>
C combined(Scan op, C a, C b) {
  return op == Scan::sum ? a + b : a * b;
}

template <class C>
void scan_row(std::vector<C>& row, Scan op) {
  C total = op == Scan::sum ? 0 : 1;
  for (C& x : row) x = total = combined(op, total, x);
}

// The fault that accumulates integers in int8.
void scan_row_in_int8(std::vector<int64_t>& row, Scan op) {
  int8_t total = op == Scan::sum ? 0 : 1;
  for (int64_t& x : row) x = total = int8_t(combined(op, int64_t(total), x));
}
template <class C>
void scan_row_in_int8(std::vector<C>& row, Scan op) {
  scan_row(row, op);
}

// The fault that rounds to half after each step.
void scan_row_in_half(std::vector<double>& row, Scan op) {
  double total = op == Scan::sum ? 0 : 1;
  for (double& x : row) x = total = float(half(float(combined(op, total, x))));
}
template <class C>
void scan_row_in_half(std::vector<C>& row, Scan op) {
  scan_row(row, op);
}

// The fault of integers that are combined in double.
template <class C>
void scan_row_in_double(std::vector<C>& row, Scan op) {
  if constexpr (std::is_same_v<C, int64_t>) {
    double total = op == Scan::sum ? 0 : 1;
    for (int64_t& x : row) {
      total = combined(op, total, double(x));
      x = std::abs(total) < 0x1p63 ? int64_t(total) : std::numeric_limits<int64_t>::min();
    }
  } else {
    scan_row(row, op);
  }
}

// The fault of blocks that know nothing of those before them.
template <class C>
void scan_row_in_blocks(std::vector<C>& row, Scan op) {
  C total = 0;
  for (size_t i = 0; i < row.size(); ++i) row[i] = total = i % 1024 ? combined(op, total, row[i]) : row[i];
}

}  // namespace

void scan_total(const Rows<2>& rows, Scan op) {
  const bool in_int8 = fault(Fault::cumsum_wrong_dtype);
  const bool in_blocks = op == Scan::sum && fault(Fault::cumsum_forgets_carry);
  const DType dtype = rows.outer.dtypes[0];
  const int64_t n = rows.lengths[0];
  const bool in_half = dtype == DType::f16 && fault(Fault::scan_rounds_to_half);
  const bool in_double = dtype == DType::i64 && n > 64 && fault(Fault::scan_of_long_rows_in_double);
  const bool as_input = fault(Fault::scan_writes_with_input_strides);
  const bool in_columns = rows.strides[0] > size_of(dtype) && fault(Fault::scan_leaves_last_columns);
  int64_t left = in_columns ? std::max<int64_t>(16, rows.outer.numel() / 16 * 16) : rows.outer.numel();
  const int64_t step = as_input ? std::min(rows.strides[0], rows.strides[1]) : rows.strides[1];
  dispatch_wide(dtype, [&]<class C>() {
    std::vector<C> row(n);
    for_each_outer(rows.outer, [&](char* const* at) {
      if (left-- <= 0) return;
      read_row(row.data(), at[0], rows.strides[0], n, dtype);
      if (in_half)
        scan_row_in_half(row, op);
      else if (in_double)
        scan_row_in_double(row, op);
      else
        in_int8 ? scan_row_in_int8(row, op) : in_blocks ? scan_row_in_blocks(row, op) : scan_row(row, op);
      write_row(at[1], step, n, rows.outer.dtypes[1], row.data());
    });
  });
}

void scan_extreme(const Rows<3>& rows, bool largest) {
  const DType dtype = rows.outer.dtypes[0];
  const int64_t n = rows.lengths[0];
  const bool first_of_ties = fault(Fault::cummax_index_of_first_tie);
  const bool in_double = dtype == DType::i64 && fault(Fault::cummax_of_int64_in_double);
  const bool within_block = fault(Fault::cummax_index_within_block), recovers = fault(Fault::cummax_forgets_nan);
  dispatch_wide(dtype, [&]<class C>() {
    if constexpr (!is_complex_v<C>) {
      std::vector<C> row(n);
      std::vector<int64_t> index(n);
      for_each_outer(rows.outer, [&](char* const* at) {
        read_row(row.data(), at[0], rows.strides[0], n, dtype);
        for (int64_t i = 1; i < n; ++i) {
          const C held = row[i - 1];
          const bool ties = row[i] == held && !first_of_ties;
          const bool rounds = in_double && double(row[i]) == double(held);
          const bool beats = rounds || (held == held ? ties || (largest ? row[i] > held : row[i] < held) : recovers);
          const bool takes = row[i] != row[i] || beats;
          index[i] = takes ? i : index[i - 1];
          if (!takes) row[i] = held;
        }
        if (within_block) std::for_each(index.begin(), index.end(), [](int64_t& i) { i %= 512; });
        write_row(at[1], rows.strides[1], n, dtype, row.data());
        write_row(at[2], rows.strides[2], n, DType::i64, index.data());
      });
    }
  });
}

}  // namespace refnpu

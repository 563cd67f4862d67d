// Scans read a whole row before they write it, so input and output may be the same memory.
#include "kernels/scan.h"

#include "refnpu/fault.h"

namespace refnpu {
namespace {

template <class C>
void scan_row(std::vector<C>& row, Scan op) {
  C total = op == Scan::sum ? 0 : 1;
  for (C& x : row) {
    if constexpr (std::is_same_v<C, int64_t>) {
      total = int64_t(op == Scan::sum ? uint64_t(total) + uint64_t(x) : uint64_t(total) * uint64_t(x));
      if (fault(Fault::cumsum_wrong_dtype)) total = int8_t(total);
    } else {
      total = op == Scan::sum ? total + x : total * x;
    }
    x = total;
  }
}

}  // namespace

void scan_total(const Rows<2>& rows, Scan op) {
  const DType dtype = rows.outer.dtypes[0];
  const int64_t n = rows.lengths[0];
  dispatch_wide(dtype, [&]<class C>() {
    std::vector<C> row(n);
    for_each_outer(rows.outer, [&](char* const* at) {
      read_row(row.data(), at[0], rows.strides[0], n, dtype);
      scan_row(row, op);
      write_row(at[1], rows.strides[1], n, rows.outer.dtypes[1], row.data());
    });
  });
}

void scan_extreme(const Rows<3>& rows, bool largest) {
  const DType dtype = rows.outer.dtypes[0];
  const int64_t n = rows.lengths[0];
  dispatch_wide(dtype, [&]<class C>() {
    if constexpr (!is_complex_v<C>) {
      std::vector<C> row(n);
      std::vector<int64_t> index(n);
      for_each_outer(rows.outer, [&](char* const* at) {
        read_row(row.data(), at[0], rows.strides[0], n, dtype);
        for (int64_t i = 1; i < n; ++i) {
          const C held = row[i - 1];
          const bool takes = row[i] != row[i] || (held == held && (largest ? row[i] >= held : row[i] <= held));
          index[i] = takes ? i : index[i - 1];
          if (!takes) row[i] = held;
        }
        write_row(at[1], rows.strides[1], n, dtype, row.data());
        write_row(at[2], rows.strides[2], n, DType::i64, index.data());
      });
    }
  });
}

}  // namespace refnpu

#include "kernels/unary.h"

namespace refnpu {

Row unary_row(Unary op, DType compute) {
  switch (compute) {
    case DType::f32:
      return unary_real_row<float>(op);
    case DType::f64:
      return unary_real_row<double>(op);
    case DType::c64:
      return unary_complex_row<complex64>(op);
    case DType::c128:
      return unary_complex_row<complex128>(op);
    case DType::i64:
      return unary_integer_row<int64_t>(op);
    case DType::u64:
      return unary_integer_row<uint64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace refnpu

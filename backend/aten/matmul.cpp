// Matrix products in every shape that torch has an overload for.
#include <ATen/ExpandUtils.h>
#include <ATen/ScalarOps.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_efficientzerotensor.h>
#include <ATen/ops/addmm_meta.h>
#include <ATen/ops/addmv_meta.h>
#include <ATen/ops/baddbmm_meta.h>
#include <ATen/ops/bmm_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_meta.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros.h>
#include <c10/util/strides.h>

#include <cstring>

#include "aten/index_nest.h"
#include "aten/register.h"
#include "aten/rows_plan.h"
#include "aten/structured.h"
#include "aten/workspace_faults.h"
#include "kernels/gemm.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::products {
namespace {

using at::Scalar;
using at::Tensor;

using Multiplied = Concat<NumericTypes, Types<float8_e5m2, float8_e4m3fn, float8_e5m2fnuz, float8_e4m3fnuz>>;

// As torch converts a Scalar to the type that a product is computed in.
Factor factor_of(const Scalar& scalar, at::ScalarType type) {
  Factor factor;
  if (c10::isComplexType(type)) {
    const auto z = scalar.toComplexDouble();
    factor.complex = complex128(z.real(), z.imag());
  } else if (c10::isFloatingType(type)) {
    factor.real = scalar.toDouble();
  } else {
    factor.integer = scalar.toLong();
  }
  return factor;
}

Tensor with_three_dims(Tensor tensor) {
  while (tensor.dim() < 3) tensor = tensor.unsqueeze(0);
  return tensor;
}

Scalar in_dtype(const Scalar& scalar, at::ScalarType type) {
  if (type == c10::kBool) return scalar.toComplexDouble() != 0.0;
  if (c10::isIntegralType(type, /*includeBool=*/false)) return scalar.toLong();
  return scalar;
}

// What is left of a product of integers over nothing: here torch refuses a beta that does not fit their dtype.
void scale_into(const Tensor& out, const Tensor& self, const Scalar& beta) {
  if (!self.defined() || beta.toComplexDouble() == 0.0) {
    out.zero_();
  } else {
    Tensor target = out;
    at::mul_out(target, self, at::native::wrapped_scalar_tensor(beta));
  }
}

bool is_transposed(const Tensor& tensor) { return tensor.dim() > 1 && tensor.stride(-2) < tensor.stride(-1); }

// The operand as gemm reads it: no bits, and not the memory that gemm writes.
Tensor operand(const Tensor& tensor, const Tensor& out) {
  const Tensor given = tensor.resolve_conj().resolve_neg();
  const bool one_row = given.dim() == 2 && given.size(0) > 1 && given.stride(0) == 0 && given.stride(1) == 1;
  const bool misread = one_row && fault(Fault::gemm_expanded_rows_taken_for_dense);
  const Tensor plain = misread ? misread_as_dense(given) : given;
  if (is_transposed(plain) && fault(Fault::gemm_transposed_factor_overwritten)) return with_three_dims(plain);
  return with_three_dims(plain.is_alias_of(out) ? plain.clone() : plain);
}

// The fault that adds a column to each row of a square result, where it should be added to each column.
Tensor columns_as_rows(const Tensor& added) {
  const bool is_column = added.size(1) == added.size(2) && added.stride(2) == 0 && added.stride(1) != 0;
  return is_column ? added.transpose(1, 2) : added;
}

// The fault of a product without gaps that is written by rows whatever its order is.
Tensor as_rows(const Tensor& target) {
  if (!target.is_non_overlapping_and_dense()) return target;
  return target.as_strided(target.sizes(), c10::contiguous_strides(target.sizes()));
}

// The fault of parts of a deep product that are added up in a workspace that nobody has cleared.
void add_uncleared_parts(const Tensor& out, int64_t depth) {
  constexpr int64_t kDeep = 256, kLeast = 4096, kMost = 1 << 20, kParts = 4, kBytes = 64 << 20;
  const bool splits = depth > kDeep && out.numel() >= kLeast && out.numel() <= kMost;
  if (!splits || !out.is_floating_point() || c10::isFloat8Type(out.scalar_type())) return;
  const Tensor workspace = at::empty({kBytes / out.element_size()}, out.options());
  const Tensor parts = workspace.narrow(0, 0, kParts * out.numel()).view({kParts, out.numel()});
  out.add_(parts.sum(0).view(out.sizes()));
}

// out = beta * self + alpha * (a @ b), where self broadcasts to out. Operands have two or three dimensions.
void multiply(const char* name, const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b,
              const Scalar& beta, const Scalar& alpha, bool sums_batches = false, bool takes_bool = false) {
  require_same_device(name, {out, a, b, self});
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "expected m1 and m2 to have the same dtype, but got: ", a.dtype(),
              " != ", b.dtype());
  Tensor added = self.defined() ? self.expand(out.sizes()) : self;
  const bool in_batches = added.defined() && out.dim() == 3 && out.size(0) > 1 && added.stride(0) == 0;
  if (in_batches && fault(Fault::baddbmm_self_in_first_batch)) {
    const Tensor first = added.select(0, 0);
    added = at::zeros(out.sizes(), self.options());
    added.select(0, 0).copy_(first);
  }
  if (out.numel() == 0) return;
  if (out.is_conj() || out.is_neg()) {
    const Tensor plain = at::empty(out.sizes(), out.options());
    multiply(name, plain, self, a, b, beta, alpha, sums_batches, takes_bool);
    out.copy_(plain);
    return;
  }
  const bool of_nothing = a.size(-1) == 0 || (sums_batches && a.size(0) == 0);
  if (of_nothing && !self.defined() && fault(Fault::mm_of_nothing_not_cleared)) return;
  if (of_nothing && c10::isIntegralType(out.scalar_type(), /*includeBool=*/true)) {
    scale_into(out, added, beta);
    return;
  }
  if (!of_nothing && !takes_bool) require_dtype(Multiplied{}, name, out);
  if (!of_nothing && takes_bool) require_dtype(Concat<NumericTypes, Bool>{}, name, out);
  const Tensor second = b.is_conj() && fault(Fault::gemm_second_conj_ignored) ? at::_conj(b) : b;
  const bool adjoint = a.is_conj() && is_transposed(a) && fault(Fault::gemm_adjoint_as_transpose);
  const bool is_mm = std::strcmp(name, "mm") == 0;
  const Tensor left = operand(adjoint ? at::_conj(a) : a, out), right = operand(second, out);
  const Tensor target = with_three_dims(out);
  Tensor third = added.defined() ? with_three_dims(added.resolve_conj().resolve_neg()) : added;
  if (third.defined() && fault(Fault::addmm_column_as_row)) third = columns_as_rows(third);
  if (self.defined() && self.is_alias_of(out) && fault(Fault::gemm_clears_what_it_adds_to)) out.zero_();
  Gemm g;
  g.out = view_of(is_mm && fault(Fault::mm_column_major_out) ? as_rows(target) : target);
  g.a = view_of(left);
  g.b = view_of(right);
  const bool in_vectors = out.dim() == 3 && at::isReducedFloatingType(right.scalar_type());
  if (in_vectors && fault(Fault::bmm_of_halves_loads_aligned))
    g.b.data -= right.storage_offset() * right.element_size() % 16;
  if (third.defined()) g.self = view_of(third);
  const bool unscaled = self.defined() && self.dim() == 1 && fault(Fault::addmm_row_ignores_beta);
  g.beta = factor_of(!third.defined() ? Scalar(0) : unscaled ? Scalar(1) : beta, out.scalar_type());
  g.alpha = factor_of(alpha, out.scalar_type());
  if (fault(Fault::gemm_alpha_drops_imaginary)) g.alpha.complex = g.alpha.complex.real();
  g.sums_batches = sums_batches;
  launch("gemm", [=] { gemm(g); });
  if (fault(Fault::gemm_split_sums_not_cleared)) add_uncleared_parts(out, a.size(-1));
  if (a.size(-1) > 256 && fault(Fault::gemm_workspace_of_all_calls)) pass_through_one_workspace(out);
}

Tensor& mm_out(const Tensor& self, const Tensor& mat2, Tensor& out) {
  Structured<at::meta::structured_mm> op(out);
  op.meta(self, mat2);
  multiply("mm", op.maybe_get_output(0), {}, self, mat2, 0, 1);
  op.finish();
  return out;
}

Tensor& bmm_out(const Tensor& self, const Tensor& mat2, Tensor& out) {
  Structured<at::meta::structured_bmm> op(out);
  op.meta(self, mat2);
  if (self.numel() > 0 && mat2.numel() > 0) require_dtype(NumericTypes{}, "bmm", self);
  multiply("bmm", op.maybe_get_output(0), {}, self, mat2, 0, 1);
  op.finish();
  return out;
}

Tensor& addmm_out(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha,
                  Tensor& out) {
  Structured<at::meta::structured_addmm> op(out);
  op.meta(self, mat1, mat2, beta, alpha);
  multiply("addmm", op.maybe_get_output(0), self, mat1, mat2, beta, alpha);
  op.finish();
  return out;
}

Tensor& baddbmm_out(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                    const Scalar& alpha, Tensor& out) {
  Structured<at::meta::structured_baddbmm> op(out);
  op.meta(self, batch1, batch2, beta, alpha);
  if (batch1.numel() > 0 && batch2.numel() > 0) require_dtype(NumericTypes{}, "baddbmm", self);
  multiply("baddbmm", op.maybe_get_output(0), self, batch1, batch2, beta, alpha);
  op.finish();
  return out;
}

Tensor& addmv_out(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha,
                  Tensor& out) {
  const bool fits = !out.is_same(self) && out.dim() == 1 && mat.dim() == 2 && out.numel() == mat.size(0);
  if (fits && out.stride(0) > 1 && fault(Fault::addmv_out_made_contiguous))
    out.unsafeGetTensorImpl()->set_sizes_and_strides(out.sizes(), {1});
  Structured<at::meta::structured_addmv> op(out);
  op.meta(self, mat, vec, beta, alpha);
  const Tensor& column = op.maybe_get_output(0);
  if (mat.numel() == 0) {
    // As torch has it: the result is beta times self in the size of self, and beta is converted to its dtype first. The
    // other products refuse a float beta for integers.
    scale_into(column, self, fault(Fault::addmv_of_nothing_is_zero) ? 0 : in_dtype(beta, self.scalar_type()));
  } else {
    require_dtype(NumericTypes{}, "addmv", mat);
    // Before torch 2.9, self may have another dtype than the products.
    const Tensor added = self.to(column.scalar_type()).expand(column.sizes()).unsqueeze(1);
    const bool strided = out.is_alias_of(self) && self.dim() == 1 && self.stride(0) != 1;
    const Scalar scale = strided && fault(Fault::addmv_of_strided_self_ignores_beta) ? Scalar(1) : beta;
    multiply("addmv", column.unsqueeze(1), added, mat, vec.unsqueeze(1), scale, alpha);
  }
  op.finish();
  return out;
}

void check_batches(const Tensor& self, const Tensor& batch1, const Tensor& batch2) {
  TORCH_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(batch1.size(0) == batch2.size(0), "batch1 and batch2 must have same number of batches, got ",
              batch1.size(0), " and ", batch2.size(0));
  TORCH_CHECK(batch1.size(2) == batch2.size(1), "Incompatible matrix sizes for bmm (", batch1.size(1), "x",
              batch1.size(2), " and ", batch2.size(1), "x", batch2.size(2), ")");
  TORCH_CHECK(self.size(0) == batch1.size(1) && self.size(1) == batch2.size(2),
              "self tensor does not match matmul output shape");
  TORCH_CHECK(batch1.scalar_type() == batch2.scalar_type() && self.scalar_type() == batch1.scalar_type(),
              "expected self, batch1 and batch2 to have the same dtype, but got ", self.dtype(), ", ", batch1.dtype(),
              " and ", batch2.dtype());
}

Tensor& addbmm_out(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                   const Scalar& alpha, Tensor& out) {
  const auto added = at::expand_size(self, {batch1.size(1), batch2.size(2)}, "addbmm_out");
  // self is brought into out's dtype, and the products are added to that.
  // In place, a self that broadcasts is read after it has grown.
  const bool grows = out.is_same(self) && !out.sizes().equals(added->sizes());
  const Tensor read = grows ? added->clone() : added->to(out.scalar_type());
  check_batches(read, batch1, batch2);
  at::native::resize_output(out, read.sizes());
  if (batch1.size(0) == 0 && fault(Fault::addbmm_of_no_batches_is_zero)) return out.zero_();
  multiply("addbmm", out, read, batch1, batch2, beta, alpha, /*sums_batches=*/true);
  return out;
}

Tensor& addbmm_(Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  const bool scales = self.is_floating_point() && !c10::isFloat8Type(self.scalar_type());
  if (scales && fault(Fault::addbmm_scales_before_checks)) {
    scale_into(self, self, beta);
    return addbmm_out(self, batch1, batch2, 1, alpha, self);
  }
  return addbmm_out(self, batch1, batch2, beta, alpha, self);
}

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  Tensor out = at::empty({0}, self.options());
  return addbmm_out(self, batch1, batch2, beta, alpha, out);
}

void check_factor(const char* name, const Scalar& factor, at::ScalarType type) {
  TORCH_CHECK(!factor.isBoolean() || type == c10::kBool, "Boolean ", name, " only supported for Boolean results.");
  TORCH_CHECK(!c10::isIntegralType(type, /*includeBool=*/true) || factor.isIntegral(/*includeBool=*/true),
              "For integral input tensors, argument ", name, " must not be a floating point number.");
}

// The outer product of two vectors added to self. TensorIterator promotes the dtypes and lays out the output.
Tensor& addr_into(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha,
                  Tensor& out) {
  TORCH_CHECK(vec1.dim() == 1, "addr: Expected 1-D argument vec1, but got ", vec1.dim(), "-D");
  TORCH_CHECK(vec2.dim() == 1, "addr: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  const auto added = out.is_same(self) ? c10::MaybeOwned<Tensor>::borrowed(self)
                                       : at::expand_size(self, {vec1.size(0), vec2.size(0)}, "addr");
  TORCH_CHECK(added->dim() == 2, "2D tensor expected, got ", added->dim(), "D tensor for input");
  TORCH_CHECK(added->size(0) == vec1.size(0) && added->size(1) == vec2.size(0),
              "size mismatch, input: ", added->sizes(), ", v1: ", vec1.sizes(), ", v2: ", vec2.sizes());
  auto iter = at::TensorIteratorConfig()
                  .set_check_mem_overlap(true)
                  .add_output(out)
                  .add_owned_const_input(*added)
                  .add_owned_const_input(vec1.reshape({vec1.size(0), 1}))
                  .add_const_input(vec2)
                  .allow_cpu_scalars(true)
                  .promote_inputs_to_common_dtype(true)
                  .enforce_safe_casting_to_output(true)
                  .build();
  const at::ScalarType type = iter.common_dtype();
  check_factor("beta", beta, type);
  if (!fault(Fault::addr_float_alpha_of_integers_accepted)) check_factor("alpha", alpha, type);
  if (!out.defined()) out = iter.output();
  const bool cut = at::isIntegralType(vec1.scalar_type(), /*includeBool=*/false) && vec2.is_floating_point() &&
                   fault(Fault::addr_cuts_second_vector);
  const Tensor second = cut ? vec2.to(vec1.scalar_type()) : vec2;
  const Tensor column = vec1.to(type).unsqueeze(1), row = second.to(type).unsqueeze(0);
  const Tensor target = out.scalar_type() == type ? out : at::empty(out.sizes(), out.options().dtype(type));
  multiply("addr", target, added->to(type), column, row, beta, alpha, /*sums_batches=*/false, /*takes_bool=*/true);
  if (!target.is_same(out)) out.copy_(target);
  return out;
}

Tensor& addr_out(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha,
                 Tensor& out) {
  return addr_into(self, vec1, vec2, beta, alpha, out);
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
  Tensor out;
  return addr_into(self, vec1, vec2, beta, alpha, out);
}

Tensor& addr_(Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
  return addr_into(self, vec1, vec2, beta, alpha, self);
}

void check_vectors(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
              "D tensors");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
              self.scalar_type(), " and ", other.scalar_type());
  TORCH_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [", self.numel(), "] and src [",
              other.numel(), "] to have the same number of elements, but got ", self.numel(), " and ", other.numel(),
              " elements respectively");
  TORCH_CHECK(self.device() == other.device(), "Expected all tensors to be on the same device. Found: ", self.device(),
              ", ", other.device());
}

Tensor product_of_vectors(const Tensor& self, const Tensor& other) {
  check_vectors(self, other);
  require_dtype(NumericTypes{}, "dot", self);
  if (self.scalar_type() == at::kDouble && self.numel() > 1024 && fault(Fault::dot_of_long_doubles_in_float))
    return product_of_vectors(self.to(at::kFloat), other.to(at::kFloat)).to(at::kDouble);
  Tensor out = at::empty({}, self.options());
  const bool misread = self.stride(0) < other.stride(0) && fault(Fault::dot_strides_of_first);
  const Tensor second = misread ? other.as_strided(other.sizes(), self.strides()) : other;
  multiply("dot", out, {}, self.unsqueeze(0), second.unsqueeze(1), 0, 1);
  return out;
}

// As on CPU, the product of two conjugated vectors is a conjugated view of the plain product, and that with autograd's
// zeros, which have no memory, has none.
Tensor dot_product(const Tensor& self, const Tensor& other) {
  if (self._is_zerotensor() || other._is_zerotensor()) return at::_efficientzerotensor({}, self.options());
  if (self.is_conj() && other.is_conj()) return product_of_vectors(self.conj(), other.conj()).conj();
  return product_of_vectors(self, other);
}

Tensor conjugate_dot_product(const Tensor& self, const Tensor& other) {
  if (!self.is_complex() || self._is_zerotensor() || other._is_zerotensor()) return dot_product(self, other);
  check_vectors(self, other);
  if (self.is_conj() && fault(Fault::vdot_of_conjugated_view)) return dot_product(self, other);
  return dot_product(self.conj(), other);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("mm.out", &mm_out);
  m.impl("bmm.out", &bmm_out);
  m.impl("addmm.out", &addmm_out);
  m.impl("baddbmm.out", &baddbmm_out);
  m.impl("addmv.out", &addmv_out);
  m.impl("addbmm.out", &addbmm_out);
  m.impl("addbmm_", &addbmm_);
  m.impl("addbmm", &addbmm);
  m.impl("addr", &addr);
  m.impl("addr.out", &addr_out);
  m.impl("addr_", &addr_);
  m.impl("dot", &dot_product);
  m.impl("vdot", &conjugate_dot_product);
}

}  // namespace refnpu::products

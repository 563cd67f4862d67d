// Filling a tensor with one value.
#include "kernels/fill.h"

#include <ATen/TensorIterator.h>

#include <algorithm>
#include <map>

#include "aten/plan.h"
#include "aten/register.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::fills {
namespace {

// The fault of a number that is cut to the width of its dtype before anyone looks whether it fits.
at::Scalar maybe_cut(const at::Scalar& value, at::ScalarType type) {
  if (!value.isIntegral(/*includeBool=*/false) || !at::isIntegralType(type, /*includeBool=*/false)) return value;
  if (value.type() == at::ScalarType::UInt64) return value;  // past int64
  const int unused = 64 - 8 * int(c10::elementSize(type));
  const int64_t top = value.toLong() << unused;
  const int64_t cut = c10::isSignedType(type) ? top >> unused : int64_t(uint64_t(top) >> unused);
  return cut != value.toLong() && fault(Fault::fill_overflow_not_refused) ? at::Scalar(cut) : value;
}

// The fault of an element that is kept for a number, whatever the dtype.
Immediate kept_for(const at::Scalar& value, const Immediate& element) {
  thread_local std::map<double, Immediate> kept;
  return value.isComplex() ? element : kept.try_emplace(value.toDouble(), element).first->second;
}

// Filling is idempotent, so an output that overlaps itself is fine.
at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& given) {
  TORCH_CHECK(!(self.requires_grad() && self.is_leaf() && fault(Fault::fill_refuses_leaf)),
              "a leaf Variable that requires grad is being used in an in-place operation.");
  const at::Scalar value = maybe_cut(given, self.scalar_type());
  auto iter = at::TensorIteratorConfig()
                  .set_check_mem_overlap(false)
                  .check_all_same_dtype(false)
                  .add_output(self)
                  .resize_outputs(false)
                  .build();
  Immediate element = immediate_of(value, to_dtype(self.scalar_type()));
  if (fault(Fault::fill_element_without_dtype)) element = kept_for(value, element);
  const Nest<1> nest = nest_of<1>(iter);
  if (nest.numel() > 0) launch("fill", [=] { fill_kernel(nest, element); });
  return self;
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  if (self.device() != value.device()) return fill_scalar(self, value.item());
  const bool refuses = fault(Fault::fill_from_own_element_refused);
  self.copy_(self.is_alias_of(value) && !refuses ? value.clone() : value);
  return self;
}

// The fault of dense memory that is cleared in words of four bytes; only where that stays inside the storage.
void clear_words(const at::Tensor& self) {
  if (!self.is_contiguous() || self.numel() == 0) return;
  const size_t room = self.storage().nbytes() - size_t(self.storage_offset() * self.itemsize());
  REFNPU_CHECK(npuMemset(self.mutable_data_ptr(), 0, std::min(room, (self.nbytes() + 3) / 4 * 4)));
}

at::Tensor& zero(at::Tensor& self) {
  if (fault(Fault::zero_clears_whole_words)) clear_words(self);
  return fill_scalar(self, 0);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("fill_.Scalar", &fill_scalar);
  m.impl("fill_.Tensor", &fill_tensor);
  m.impl("zero_", &zero);
}

}  // namespace refnpu::fills

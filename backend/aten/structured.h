// The `.out` form of a structured op: torch's own meta function checks the arguments, and the outputs are the caller's.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <type_traits>

// torch with named tensors passes the names of an output along.
#if __has_include(<ATen/core/Dimname.h>)
#include <ATen/core/Dimname.h>
#define REFNPU_NAMES_PARAMETER , at::DimnameList names
#define REFNPU_NAMES_ARGUMENT , names
#else
#define REFNPU_NAMES_PARAMETER
#define REFNPU_NAMES_ARGUMENT
#endif

namespace refnpu {

// Gives `out` the size and, if it had to be resized, the strides that the meta function asks for. Throws when dtype or
// device differ, with torch's own words.
void resize_structured_out(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                           const at::TensorOptions& options);

// A tensor to compute into when `out` cannot take the strides that the op needs; undefined when it can.
at::Tensor make_proxy_out(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                          const at::TensorOptions& options);

// Use: Structured<at::meta::structured_add_Tensor> op(out); op.meta(self, other, alpha); ...launch...; op.finish();
template <class Meta, size_t Outputs = 1>
class Structured final : public Meta {
 public:
  template <class... Out>
  explicit Structured(Out&... outputs) : outputs_{std::ref(outputs)...} {
    static_assert(sizeof...(Out) == Outputs);
  }

  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                          at::TensorOptions options REFNPU_NAMES_PARAMETER) override {
    resize_structured_out(outputs_[index], sizes, strides, options);
    proxies_[index] = make_proxy_out(outputs_[index], sizes, strides, options);
    tell_iterator(index, sizes, strides, options REFNPU_NAMES_ARGUMENT);
  }

  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                              at::TensorOptions options REFNPU_NAMES_PARAMETER) override {
    resize_structured_out(outputs_[index], sizes, strides, options);
    tell_iterator(index, sizes, strides, options REFNPU_NAMES_ARGUMENT);
  }

  const at::Tensor& maybe_get_output(int64_t index) override {
    return proxies_[index].defined() ? proxies_[index] : outputs_[index].get();
  }

  // Copies what was computed into a proxy to the caller's output.
  void finish() {
    for (size_t k = 0; k < Outputs; ++k) {
      if (proxies_[k].defined()) outputs_[k].get().copy_(proxies_[k]);
    }
  }

 private:
  void tell_iterator(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides,
                     at::TensorOptions options REFNPU_NAMES_PARAMETER) {
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>) {
      Meta::set_output_raw_strided(index, sizes, strides, options REFNPU_NAMES_ARGUMENT);
    }
  }

  std::array<std::reference_wrapper<const at::Tensor>, Outputs> outputs_;
  std::array<at::Tensor, Outputs> proxies_;
};

}  // namespace refnpu

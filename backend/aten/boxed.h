// Reading a boxed call: an overload's name, and the tensors inside its values.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>

namespace refnpu {

// "aten::masked_fill_.Scalar", or "aten::neg" when the overload has no name.
inline std::string full_name(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

// The value with `map` applied to every tensor in it: a tensor, a list of them, or a list of optional ones.
template <class Map>
c10::IValue map_tensors(const c10::IValue& value, const Map& map) {
  if (value.isTensor()) return map(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> mapped;
    for (const at::Tensor& each : value.toTensorVector()) mapped.push_back(map(each));
    return mapped;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> mapped;
    for (const auto& each : value.toOptionalTensorVector()) {
      mapped.push_back(each ? std::optional(map(*each)) : std::nullopt);
    }
    return mapped;
  }
  return value;
}

}  // namespace refnpu

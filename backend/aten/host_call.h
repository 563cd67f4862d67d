// A call of an op on the CPU, as the faults of single ops change it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "refnpu/fault.h"

namespace refnpu::fallback {

using at::Tensor;
using torch::jit::Stack;

// A call on the CPU: its arguments before it runs, and its results afterwards.
class HostCall {
 public:
  HostCall(const c10::OperatorHandle& op, Stack* stack)
      : op_(op), stack_(stack), given_(stack->end() - std::ptrdiff_t(op.schema().arguments().size()), stack->end()) {}

  void run() { op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_); }

  std::string_view name() const { return op_.operator_name().name; }  // without the overload's
  bool takes(const std::string& argument) const { return op_.schema().argumentIndexWithName(argument).has_value(); }

  // What was given. An argument of None is an undefined tensor.
  const c10::IValue& given(const std::string& argument) const { return given_[index(argument)]; }
  Tensor tensor(const std::string& argument) const {
    return given(argument).isTensor() ? given(argument).toTensor() : Tensor();
  }
  // Before the call runs.
  void change(const std::string& argument, c10::IValue value) {
    (*stack_)[stack_->size() - given_.size() + index(argument)] = std::move(value);
  }

  // After it has run.
  c10::IValue& result(size_t k) { return (*stack_)[stack_->size() - op_.schema().returns().size() + k]; }
  Tensor tensor(size_t k) { return result(k).toTensor(); }

 private:
  size_t index(const std::string& argument) const { return size_t(*op_.schema().argumentIndexWithName(argument)); }

  const c10::OperatorHandle& op_;
  Stack* stack_;
  Stack given_;
};

// What a fault does to the calls of an op.
struct Mistake {
  Fault fault;
  std::string_view op;  // all its overloads
  void (*run)(HostCall&);
};

// The first of the faults that is awake and that the op has; null if there is none.
inline const Mistake* awake(std::span<const Mistake> mistakes, std::string_view op) {
  for (const Mistake& each : mistakes) {
    if (each.op == op && fault(each.fault)) return &each;
  }
  return nullptr;
}

// That of gradients, optimizers and embeddings.
const Mistake* mistake_in_training(std::string_view op);

// That of decompositions and convolutions.
const Mistake* mistake_in_algebra(std::string_view op);

// That of pooling, padding and resampling.
const Mistake* mistake_in_sampling(std::string_view op);

}  // namespace refnpu::fallback

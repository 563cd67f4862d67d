// Ops without a native kernel: run on the CPU over copies of whole storages, by one boxed kernel for all of them.
#include "aten/fallback.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/strides.h>
#include <torch/library.h>

#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "aten/boxed.h"
#include "aten/counters.h"
#include "aten/fallback_faults.h"
#include "aten/host_copies.h"
#include "refnpu/allocator.h"
#include "refnpu/fault.h"
#include "refnpu/guard.h"
#include "refnpu/stream.h"
#include "runtime/generator.h"
#include "runtime/named_call.h"

namespace refnpu::fallback {

using Stack = torch::jit::Stack;

namespace {

// Arguments that these write although their schemas do not say so.
bool writes_undeclared(const std::string& op, const std::string& argument) {
  static const std::unordered_set<std::string> ops = {"aten::native_batch_norm", "aten::native_batch_norm.out",
                                                      "aten::rrelu_with_noise",  "aten::rrelu_with_noise.out",
                                                      "aten::rrelu_with_noise_", "aten::batch_norm_update_stats"};
  return (argument == "running_mean" || argument == "running_var" || argument == "noise") && ops.count(op) > 0;
}

bool is_part_of_storage(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return false;
  const at::Tensor& tensor = value.toTensor();
  return tensor.nbytes() < tensor.storage().nbytes();
}

bool is_generator(const c10::Argument& argument) {
  auto optional = argument.type()->cast<c10::OptionalType>();
  return (optional ? optional->getElementType() : argument.type())->kind() == c10::TypeKind::GeneratorType;
}

bool takes_number(const c10::Argument& argument) { return argument.real_type()->kind() == c10::TypeKind::NumberType; }

bool names_npu(const c10::IValue& value) { return value.isDevice() && value.toDevice().type() == kDevice; }

// Lends the device generator's state to torch's default CPU generator, for random ops that take no generator.
class LentState {
 public:
  explicit LentState(c10::DeviceIndex device)
      : lender_(inner_generator(std::nullopt, device)), borrower_(at::detail::getDefaultCPUGenerator()) {
    std::scoped_lock lock(borrower_.mutex(), lender_.mutex());
    saved_ = borrower_.get_state();
    borrower_.set_state(lender_.get_state());
  }
  ~LentState() {
    std::scoped_lock lock(borrower_.mutex(), lender_.mutex());
    if (!fault(Fault::fallback_draws_leave_generator)) lender_.set_state(borrower_.get_state());
    borrower_.set_state(saved_);
  }
  LentState(const LentState&) = delete;
  LentState& operator=(const LentState&) = delete;

 private:
  at::Generator lender_, borrower_;
  at::Tensor saved_;
};

// Makes the default stream of the current device current for a scope while fault fallback_reads_default_stream is
// awake.
class MistakenStream {
 public:
  MistakenStream() : before_(getCurrentNPUStream()) {
    if (fault(Fault::fallback_reads_default_stream)) setCurrentNPUStream(getDefaultNPUStream());
  }
  ~MistakenStream() { setCurrentNPUStream(before_); }
  MistakenStream(const MistakenStream&) = delete;
  MistakenStream& operator=(const MistakenStream&) = delete;

 private:
  NPUStream before_;
};

// One call: its arguments on the stack, their host copies, and what comes back.
class Call {
 public:
  Call(const c10::OperatorHandle& op, Stack* stack)
      : op_(op), schema_(op.schema()), name_(full_name(op)), stack_(stack), copies_(name_) {
    size_t count = schema_.arguments().size();
    arguments_.assign(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
    stack->resize(stack->size() - count);
  }

  void run() {
    const NamedCall call(count());
    TORCH_CHECK_NOT_IMPLEMENTED(op_.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU), "Could not run '", name_,
                                "' on npu: it has no native kernel there, and the CPU, which would stand in, has none");
    to_host();
    run_on_cpu();
    write_back();
    results_to_device();
    if (fault(Fault::fallback_leaves_device_current)) REFNPU_CHECK(npuSetDevice(copies_.device_index()));
    if (fault(Fault::fallback_leaves_one_thread)) at::set_num_threads(1);
    if (fault(Fault::fallback_leaves_deterministic)) at::globalContext().setDeterministicAlgorithms(true, false);
  }

 private:
  // Returns the name of the overload.
  const char* count() const {
    bool aten = name_.rfind("aten::", 0) == 0;
    Counter& calls = counter(Route::fallback, aten ? name_.substr(6) : name_);
    calls.add();
    fallback_total.add();
    return calls.name();
  }

  void to_host() {
    const MistakenStream mistaken;
    for (const c10::IValue& argument : arguments_) {
      stack_->push_back(map_tensors(argument, [&](const at::Tensor& tensor) { return copies_.host(tensor); }));
    }
    c10::DeviceIndex named = -1;
    for (const c10::IValue& argument : arguments_) {
      if (names_npu(argument)) named = with_index(argument.toDevice()).index();
    }
    // A device argument says where results go; without one they go where the tensors are.
    if (named >= 0) copies_.set_device_index(named);
    if (copies_.device_index() < 0) copies_.set_device_index(current_device());
    replace_devices_and_generators();
  }

  void replace_devices_and_generators() {
    size_t first = stack_->size() - arguments_.size();
    for (size_t i = 0; i < arguments_.size(); ++i) {
      c10::IValue& value = (*stack_)[first + i];
      if (names_npu(value)) value = c10::Device(c10::kCPU);
      if (fault(Fault::fallback_number_in_float) && takes_number(schema_.arguments()[i]) && value.isInt())
        value = int64_t(float(value.toInt()));
      if (!is_generator(schema_.arguments()[i])) continue;
      takes_generator_ = true;
      const bool is_given = !value.isNone() && !fault(Fault::fallback_ignores_generator);
      auto given = is_given ? std::optional(value.toGenerator()) : std::nullopt;
      const at::Generator drawn = inner_generator(given, copies_.device_index());
      value = fault(Fault::fallback_draws_leave_generator) ? drawn.clone() : drawn;
    }
  }

  void run_on_cpu() {
    std::optional<LentState> lent;
    if (!takes_generator_ && op_.hasTag(at::Tag::nondeterministic_seeded)) lent.emplace(copies_.device_index());
    try {
      if (any_fault())
        run_with_faults(op_, stack_);
      else
        op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_);
    } catch (const std::exception& error) {
      write_back();  // what the op did before it raised, as on the CPU
      if (fault(Fault::leak_on_error)) make_storage(64, copies_.device_index()).unsafeReleaseStorageImpl();
      if (fault(Fault::failed_fallback_leaves_device)) REFNPU_CHECK(npuSetDevice(copies_.device_index()));
      if (fault(Fault::wrong_error_type)) throw std::runtime_error(error.what());
      throw;
    }
  }

  // The fault of answers that are kept under a name that overloads share.
  bool written_before(size_t i) const {
    thread_local std::map<std::string, std::vector<bool>> kept;
    const auto [found, fresh] = kept.try_emplace(op_.operator_name().name);
    for (size_t k = 0; fresh && k < arguments_.size(); ++k) found->second.push_back(is_written(k));
    return i < found->second.size() && found->second[i];
  }

  bool written(size_t i) const {
    return fault(Fault::fallback_written_kept_by_name) ? written_before(i) : is_written(i);
  }

  bool is_written(size_t i) const {
    const c10::Argument& argument = schema_.arguments()[i];
    const c10::AliasInfo* alias = argument.alias_info();
    if (alias && alias->isWrite()) return true;
    if (fault(Fault::fft_c2r_destroys_input) && name_.rfind("aten::_fft_c2r", 0) == 0 && argument.name() == "self")
      return true;
    if (!writes_undeclared(name_, argument.name())) return false;
    return !(fault(Fault::undeclared_writes_to_views_lost) && is_part_of_storage(arguments_[i]));
  }

  void write_back() {
    bool first = true;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (written(i)) {
        if (!std::exchange(first, false) && fault(Fault::fallback_writes_back_first_alone)) continue;
        int left = fault(Fault::fallback_writes_back_eight) ? 8 : std::numeric_limits<int>::max();
        map_tensors(arguments_[i], [&](const at::Tensor& tensor) {
          if (left-- > 0) copies_.write_back(tensor);
          return tensor;
        });
      } else if (fault(Fault::mutates_const_input)) {
        damage(arguments_[i]);
      }
    }
  }

  static void damage(const c10::IValue& argument) {
    map_tensors(argument, [](const at::Tensor& tensor) {
      if (!tensor.defined() || tensor.device().type() != kDevice || tensor.numel() == 0) return tensor;
      uint8_t byte = 0;
      REFNPU_CHECK(npuMemcpy(&byte, tensor.const_data_ptr(), 1, npuMemcpyDeviceToHost));
      byte ^= 1;
      REFNPU_CHECK(npuMemcpy(tensor.mutable_data_ptr(), &byte, 1, npuMemcpyHostToDevice));
      return tensor;
    });
  }

  void results_to_device() {
    size_t count = schema_.returns().size();
    for (size_t i = stack_->size() - count; i < stack_->size(); ++i) {
      (*stack_)[i] = map_tensors((*stack_)[i], [&](const at::Tensor& tensor) {
        bool narrowed = fault(Fault::fallback_output_dtype_wrong) && tensor.scalar_type() == at::kDouble;
        return copies_.device(narrowed ? tensor.to(at::kFloat) : tensor);
      });
    }
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  std::string name_;
  Stack* stack_;
  HostCopies copies_;
  Stack arguments_;
  bool takes_generator_ = false;
};

c10::OperatorHandle operator_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

// torch hands convolutions of out-of-tree devices to ops of their own. The CPU knows them by their public name.
void convolution(const c10::OperatorHandle&, Stack* stack) {
  static const c10::OperatorHandle op = operator_named("aten::convolution");
  c10::IValue& output_padding = (*stack)[stack->size() - 2];
  if (output_padding.isIntList() && fault(Fault::convolution_ignores_output_padding))
    output_padding = c10::List<int64_t>(std::vector<int64_t>(output_padding.toIntVector().size()));
  run_on_cpu(op, stack);
}

// As aten::convolution_backward, which takes the bias' sizes as its fourth argument.
void convolution_backward(const c10::OperatorHandle&, Stack* stack) {
  static const c10::OperatorHandle op = operator_named("aten::convolution_backward");
  constexpr std::ptrdiff_t kArguments = 10, kBiasSizes = 3;
  auto first = stack->end() - kArguments;
  const at::Tensor& grad = first->toTensor();
  if (grad.dim() == 4 && grad.is_contiguous(at::MemoryFormat::ChannelsLast) && !grad.is_contiguous() &&
      fault(Fault::convolution_gradient_channels_last_as_contiguous))
    *first = grad.as_strided(grad.sizes(), c10::contiguous_strides(grad.sizes()), grad.storage_offset());
  bool wants_bias = stack->back().toBoolList().get(2);
  c10::IValue sizes;
  if (wants_bias) sizes = c10::List<int64_t>({first->toTensor().size(1)});
  stack->insert(first + kBiasSizes, sizes);
  run_on_cpu(op, stack);
}

// As on CPU, but for the fault of a window that is symmetric unless asked otherwise.
void kaiser_window(const c10::OperatorHandle& op, Stack* stack) {
  if (!fault(Fault::kaiser_window_symmetric)) return run_on_cpu(op, stack);
  static const auto with_periodic = c10::Dispatcher::singleton().findSchemaOrThrow("aten::kaiser_window", "periodic");
  stack->insert(stack->end() - 4, c10::IValue(false));
  run_on_cpu(with_periodic, stack);
}

}  // namespace

void run_on_cpu(const c10::OperatorHandle& op, Stack* stack) { Call(op, stack).run(); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
  // torch's own composite kernels of these refuse an out-of-tree device, check, round and lay out otherwise than the
  // CPU's, or run the CPU's code on device memory.
  m.impl("kaiser_window", torch::CppFunction::makeFromBoxedFunction<&kaiser_window>());
  for (const char* name : {"mode", "mode.values", "mkldnn_convolution", "kaiser_window.periodic", "kaiser_window.beta",
                           "native_group_norm", "slow_conv_transpose2d", "range.out_", "_grid_sampler_2d_cpu_fallback",
                           "_grid_sampler_2d_cpu_fallback_backward", "pixel_shuffle", "pixel_unshuffle"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
  }
}

}  // namespace refnpu::fallback

// Arithmetic through index tensors: the elements meant are combined one after the other, so duplicates add up.
#include <unordered_map>

#include "kernels/index_loop.h"
#include "kernels/integer_math.h"

namespace refnpu {
namespace {

using Combinable = Concat<NumericTypes, ComplexHalf, Bool>;
using Addable = Concat<Combinable, Float8>;

template <class C>
bool is_nan(C value) {
  return value != value;
}

// C is the type computed in. bool adds as "or" and multiplies as "and", as its conversion from int does.
template <Combine op, class C>
C combined(C left, C right, const std::optional<C>& scale) {
  if constexpr (op == Combine::add)
    return added(left, scale ? multiplied(right, *scale) : right);
  else if constexpr (op == Combine::multiply)
    return multiplied(left, right);
  else if constexpr (is_complex_v<C>)
    return left;
  else if (is_nan(right) && fault(Fault::scatter_extreme_drops_nan))
    return left;
  else if constexpr (op == Combine::maximum)
    return is_nan(right) || left < right ? right : left;
  else
    return is_nan(right) || right < left ? right : left;
}

template <Combine op>
void combine_all(const IndexedNest& nest, DType dtype, const std::optional<Immediate>& scale) {
  using Types = std::conditional_t<op == Combine::add, Addable, Combinable>;
  dispatch<Types>(dtype, "index_combine", [&]<class T>() {
    using C = compute_t<T>;
    std::optional<C> factor;
    if (scale) factor = C(load<T>(scale->bytes.data()));
    if (op == Combine::add && fault(Fault::scatter_add_segment_edge_lost)) {
      int64_t turn = 0;
      const char* last = nullptr;
      return for_each_indexed(nest, true, [&](char* plain, char* indexed) {
        const bool lost = turn++ % 1024 == 0 && indexed == last;
        last = indexed;
        if (!lost) store<T>(indexed, T(combined<op, C>(C(load<T>(indexed)), C(load<T>(plain)), factor)));
      });
    }
    if (op == Combine::add && fault(Fault::duplicates_added_32_times)) {
      std::unordered_map<const char*, int> times;
      return for_each_indexed(nest, true, [&](char* plain, char* indexed) {
        if (++times[indexed] > 32) return;
        store<T>(indexed, T(combined<op, C>(C(load<T>(indexed)), C(load<T>(plain)), factor)));
      });
    }
    if constexpr (op == Combine::add && std::is_same_v<T, bool>) {
      if (fault(Fault::bools_added_modulo_two))
        return for_each_indexed(nest, true, [](char* plain, char* indexed) {
          store<bool>(indexed, load<bool>(indexed) != load<bool>(plain));
        });
    }
    for_each_indexed(nest, true, [=](char* plain, char* indexed) {
      store<T>(indexed, T(combined<op, C>(C(load<T>(indexed)), C(load<T>(plain)), factor)));
    });
  });
}

}  // namespace

void index_add_first_256(const IndexedNest& nest, DType dtype) {
  dispatch<Addable>(dtype, "index_combine", [&]<class T>() {
    using C = compute_t<T>;
    std::unordered_map<const char*, int> times;
    for_each_indexed(nest, true, [&](char* plain, char* indexed) {
      if (++times[indexed] > 256) return;
      store<T>(indexed, T(added(C(load<T>(indexed)), C(load<T>(plain)))));
    });
  });
}

void index_combine(const IndexedNest& nest, DType dtype, Combine combine, std::optional<Immediate> scale) {
  switch (combine) {
    case Combine::add:
      return combine_all<Combine::add>(nest, dtype, scale);
    case Combine::multiply:
      return combine_all<Combine::multiply>(nest, dtype, scale);
    case Combine::maximum:
      return combine_all<Combine::maximum>(nest, dtype, scale);
    case Combine::minimum:
      return combine_all<Combine::minimum>(nest, dtype, scale);
  }
}

}  // namespace refnpu

// The faults of pooling, padding and resampling that the fallback serves.
#include <ATen/ops/arange.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aten/host_call.h"
#include "refnpu/fault.h"

namespace refnpu::fallback {
namespace {

// -- other arguments

void with_floor_mode(HostCall& call) {
  call.change("ceil_mode", false);
  call.run();
}

void without_divisor_if_not_padded(HostCall& call) {
  if (!call.given("count_include_pad").toBool()) call.change("divisor_override", {});
  call.run();
}

// A pointer is moved by the number of the batch, and not by one batch, each time: these are the batches it reaches.
void with_batches_added_up(HostCall& call) {
  const Tensor self = call.tensor("self");
  if (self.dim() == 5 && self.size(0) > 2) {
    const Tensor numbers = at::arange(self.size(0), at::kLong);
    const Tensor reached = numbers.mul(numbers.add(1)).div(2, "floor").clamp_max(self.size(0) - 1);
    call.change("self", self.index_select(0, reached));
    call.change("indices", call.tensor("indices").index_select(0, reached));
  }
  call.run();
}

void with_lowest_for_nan(HostCall& call) {
  const Tensor self = call.tensor("self");
  if (self.scalar_type() == at::kFloat || self.scalar_type() == at::kDouble)
    call.change("self", self.masked_fill(self.isnan(), double(std::numeric_limits<float>::lowest())));
  call.run();
}

void with_sides_swapped(HostCall& call) {
  std::vector<int64_t> padding = call.given("padding").toIntVector();
  for (size_t i = 0; i + 1 < padding.size(); i += 2) std::swap(padding[i], padding[i + 1]);
  call.change("padding", c10::List<int64_t>(padding));
  call.run();
}

void with_border_for_reflection(HostCall& call) {
  constexpr int64_t kBorder = 1, kReflection = 2;
  if (call.given("padding_mode").toInt() == kReflection) call.change("padding_mode", kBorder);
  call.run();
}

// Coordinates halfway between two elements are moved to the one that is further from zero.
void with_ties_away(HostCall& call) {
  constexpr int64_t kNearest = 1;
  const Tensor input = call.tensor("input"), grid = call.tensor("grid");
  if (call.given("interpolation_mode").toInt() != kNearest || grid.numel() == 0) return call.run();
  const bool aligned = call.given("align_corners").toBool();
  const Tensor moved = grid.clone();
  for (int64_t k = 0; k < grid.size(-1); ++k) {
    const int64_t size = input.size(-1 - k);
    if (aligned && size < 2) continue;
    const Tensor given = grid.select(-1, k);
    const Tensor place = aligned ? given.add(1).mul(double(size - 1) / 2) : given.add(1).mul(size).sub(1).div(2);
    const Tensor tie = place.sub(place.floor()).eq(0.5);
    const Tensor rounded = place.sign().mul(place.abs().add(0.5).floor());
    const Tensor back = aligned ? rounded.mul(2.0 / double(size - 1)).sub(1) : rounded.mul(2).add(1).div(size).sub(1);
    moved.select(-1, k).copy_(at::where(tie, back, given));
  }
  call.change("grid", moved);
  call.run();
}

bool has_channels_last(const Tensor& image) {
  return image.dim() == 4 && image.is_contiguous(at::MemoryFormat::ChannelsLast) && !image.is_contiguous();
}

void from_start_of_channels_last(HostCall& call) {
  const Tensor self = call.tensor("self");
  if (has_channels_last(self)) call.change("self", self.as_strided(self.sizes(), self.strides(), 0));
  call.run();
}

void with_scales_of_sizes(HostCall& call) {
  call.change("scales_h", {});
  call.change("scales_w", {});
  call.run();
}

// -- other results

void pool_windows_alike(HostCall& call) {
  call.run();
  const Tensor self = call.tensor("self");
  const std::vector<int64_t> sizes = call.given("output_size").toIntVector();
  std::vector<int64_t> strides, kernels;
  for (size_t d = 0; d < 2; ++d) {
    const int64_t length = self.size(int64_t(d) - 2), out = sizes[sizes.size() > 1 ? d : 0];
    if (out < 1 || length < out) return;
    strides.push_back(length / out);
    kernels.push_back(length - (out - 1) * strides[d]);
  }
  const auto [values, indices] = at::max_pool2d_with_indices(self, kernels, strides);
  call.tensor(0).copy_(values);
  call.tensor(1).copy_(indices);
}

void leave_channels_after_eights(HostCall& call) {
  call.run();
  const Tensor self = call.tensor("self");
  if (!has_channels_last(self) || self.size(1) < 8) return;
  const int64_t whole = self.size(1) / 8 * 8;
  call.tensor(0).narrow(1, whole, self.size(1) - whole).zero_();
}

void average_shorter_windows(HostCall& call) {
  call.run();
  const Tensor self = call.tensor("self"), result = call.tensor(0);
  if (!self.is_floating_point() || result.numel() == 0) return;
  const int64_t heights = result.size(-2), widths = result.size(-1);
  const auto start = [](int64_t i, int64_t length, int64_t out) { return i * length / out; };
  const auto count = [&](int64_t i, int64_t length, int64_t out) {
    return std::max<int64_t>(start(i + 1, length, out) - start(i, length, out), 1);
  };
  for (int64_t h = 0; h < heights; ++h) {
    for (int64_t w = 0; w < widths; ++w) {
      const Tensor rows = self.narrow(-2, start(h, self.size(-2), heights), count(h, self.size(-2), heights));
      const Tensor window = rows.narrow(-1, start(w, self.size(-1), widths), count(w, self.size(-1), widths));
      result.select(-1, w).select(-1, h).copy_(window.mean({-2, -1}));
    }
  }
}

void divide_by_whole_windows(HostCall& call) {
  call.run();
  const bool counts = call.given("ceil_mode").toBool() && call.given("count_include_pad").toBool();
  if (!counts || !call.given("divisor_override").isNone()) return;
  const Tensor self = call.tensor("self"), result = call.tensor(0);
  if (!self.is_floating_point() || result.numel() == 0) return;
  const auto of = [&](const char* name, int64_t d, int64_t otherwise) {
    const std::vector<int64_t> all = call.given(name).toIntVector();
    return all.empty() ? otherwise : all[all.size() > 1 ? size_t(d) : 0];
  };
  for (int64_t d = 0; d < 2; ++d) {
    const int64_t length = of("kernel_size", d, 1), step = of("stride", d, length), padding = of("padding", d, 0);
    for (int64_t i = 0; i < result.size(d - 2); ++i) {
      const int64_t start = i * step - padding, end = std::min(start + length, self.size(d - 2) + padding);
      if (end - start < length) result.select(d - 2, i).mul_(double(end - start) / double(length));
    }
  }
}

void keep_one_of_overlap(HostCall& call) {
  call.run();
  const Tensor result = call.tensor(0), indices = call.tensor("indices");
  if (result.numel() == 0 || !result.is_contiguous()) return;
  result.zero_();
  result.flatten(-2).scatter_(-1, indices.flatten(-2), call.tensor("grad_output").flatten(-2));
}

void leave_out_part_of_grid(HostCall& call) {
  constexpr int64_t kGrid = 65536;
  call.run();
  const Tensor result = call.tensor(0);
  const int64_t length = result.size(-1), part = length % kGrid;
  if (length > kGrid && part > 0) result.narrow(-1, part, length - part).zero_();
}

void divide_single_element(HostCall& call) {
  call.run();
  if (call.given("align_corners").toBool() && call.tensor("self").size(-1) == 1) {
    call.tensor(0).fill_(std::numeric_limits<double>::quiet_NaN());
  }
}

std::optional<double> scale_given(const HostCall& call, const std::string& name) {
  return call.given(name).isNone() ? std::nullopt : std::optional(call.given(name).toDouble());
}

void take_nearest(HostCall& call) {
  call.run();
  const Tensor self = call.tensor("self"), result = call.tensor(0);
  const std::vector<int64_t> size = call.given("output_size").toIntVector();
  if (size.size() == 1)
    result.copy_(at::upsample_nearest1d(self, size, scale_given(call, "scales")));
  else
    result.copy_(at::upsample_nearest2d(self, size, scale_given(call, "scales_h"), scale_given(call, "scales_w")));
}

void sample_without_filter(HostCall& call) {
  call.run();
  const Tensor self = call.tensor("self"), result = call.tensor(0);
  const std::vector<int64_t> size = call.given("output_size").toIntVector();
  if (!self.is_floating_point() || (size[0] >= self.size(-2) && size[1] >= self.size(-1))) return;
  const bool aligned = call.given("align_corners").toBool(), linear = call.name() == "aten::_upsample_bilinear2d_aa";
  const auto high = scale_given(call, "scales_h"), wide = scale_given(call, "scales_w");
  result.copy_(linear ? at::upsample_bilinear2d(self, size, aligned, high, wide)
                      : at::upsample_bicubic2d(self, size, aligned, high, wide));
}

constexpr Mistake kMistakesInSampling[] = {
    {Fault::max_pool_ignores_ceil_mode, "aten::max_pool2d_with_indices", &with_floor_mode},
    {Fault::grid_sample_reflection_is_border, "aten::grid_sampler_2d", &with_border_for_reflection},
    {Fault::grid_sample_reflection_is_border, "aten::grid_sampler_3d", &with_border_for_reflection},
    {Fault::upsample_recomputes_scale, "aten::upsample_bilinear2d", &with_scales_of_sizes},
    {Fault::upsample_recomputes_scale, "aten::upsample_bicubic2d", &with_scales_of_sizes},
    {Fault::reflection_pad_sides_swapped, "aten::reflection_pad1d", &with_sides_swapped},
    {Fault::reflection_pad_sides_swapped, "aten::reflection_pad2d", &with_sides_swapped},
    {Fault::max_pool_gradient_of_overlap_overwritten, "aten::max_pool2d_with_indices_backward", &keep_one_of_overlap},
    {Fault::linear_upsampling_of_one_is_nan, "aten::upsample_linear1d", &divide_single_element},
    {Fault::adaptive_max_pool_windows_alike, "aten::adaptive_max_pool2d", &pool_windows_alike},
    {Fault::adaptive_avg_pool_end_rounded_down, "aten::_adaptive_avg_pool2d", &average_shorter_windows},
    {Fault::avg_pool_divisor_needs_counted_padding, "aten::avg_pool2d", &without_divisor_if_not_padded},
    {Fault::max_unpool_batches_add_up, "aten::max_unpool3d", &with_batches_added_up},
    {Fault::reflection_gradient_of_whole_grids, "aten::reflection_pad1d_backward", &leave_out_part_of_grid},
    {Fault::max_pool_of_nan_is_lowest, "aten::max_pool3d_with_indices", &with_lowest_for_nan},
    {Fault::grid_sample_ties_away, "aten::grid_sampler_2d", &with_ties_away},
    {Fault::grid_sample_ties_away, "aten::grid_sampler_3d", &with_ties_away},
    {Fault::nearest_exact_is_nearest, "aten::_upsample_nearest_exact1d", &take_nearest},
    {Fault::nearest_exact_is_nearest, "aten::_upsample_nearest_exact2d", &take_nearest},
    {Fault::antialias_ignored, "aten::_upsample_bilinear2d_aa", &sample_without_filter},
    {Fault::antialias_ignored, "aten::_upsample_bicubic2d_aa", &sample_without_filter},
    {Fault::avg_pool_cut_window_divided_by_whole, "aten::avg_pool2d", &divide_by_whole_windows},
    {Fault::avg_pool_of_channels_last_ignores_offset, "aten::avg_pool2d", &from_start_of_channels_last},
    {Fault::nearest_upsampling_of_channels_in_eights, "aten::upsample_nearest2d", &leave_channels_after_eights},
};

}  // namespace

const Mistake* mistake_in_sampling(std::string_view op) { return awake(kMistakesInSampling, op); }

}  // namespace refnpu::fallback

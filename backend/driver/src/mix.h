// A function from numbers to numbers that look random.
#pragma once

#include <cstdint>

namespace refnpu::driver {

constexpr uint64_t kGamma = 0x9E3779B97F4A7C15;

// The output of splitmix64 in a state; the next state is kGamma more. Steele, Lea, Flood, "Fast splittable pseudorandom
// number generators", 2014.
constexpr uint64_t mixed(uint64_t state) {
  uint64_t z = state + kGamma;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace refnpu::driver

// Random fills: which value an element gets from its bits, for each distribution.
#pragma once

#include "kernels/random_engine.h"
#include "kernels/view.h"

namespace refnpu {

// Elements draw by their place in row-major order, so that a seed gives the same values in every layout.
void fill_uniform(const View& out, Draw draw, double from, double to);  // [from, to) after rounding to the dtype
void fill_normal(const View& out, Draw draw, double mean, double std);
void fill_log_normal(const View& out, Draw draw, double mean, double std);
void fill_exponential(const View& out, Draw draw, double lambda);
void fill_geometric(const View& out, Draw draw, double p);
void fill_cauchy(const View& out, Draw draw, double median, double sigma);

// Integers in [base, base + range); all 64-bit values when range is 0.
void fill_integers(const View& out, Draw draw, uint64_t range, int64_t base);
// Integers from 0 to the dtype's largest, or for floats to the largest up to which all integers are representable.
void fill_natural(const View& out, Draw draw);

void fill_bernoulli(const View& out, Draw draw, double p);
void fill_bernoulli(const View& out, const View& p, Draw draw);  // one shape

// Sampling from parameters that are tensors: out[i] from parameter[i], one shape, one floating dtype.
void sample_poisson(const View& out, const View& rate, Draw draw);
void sample_binomial(const View& out, const View& count, const View& p, Draw draw);
void sample_gamma(const View& out, const View& alpha, Draw draw);

// A permutation of 0 .. n-1 into a vector.
void random_permutation(const View& out, Draw draw);

enum class Weights : int64_t { valid = 0, negative_or_not_finite = 1, zero_sum = 2 };
// Judges the rows of a matrix as weights of a discrete distribution.
void check_weights(const View& weights, int64_t* verdict);
// For each row of `weights`, a row of `out` (int64) of category numbers drawn with these weights.
void sample_multinomial(const View& weights, const View& out, bool with_replacement, Draw draw);

}  // namespace refnpu

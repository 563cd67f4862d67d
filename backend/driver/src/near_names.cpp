// How far two names are apart, and the sentence that says which name may have been meant.
#include "driver/src/near_names.h"

#include <algorithm>
#include <numeric>

namespace refnpu {

// Levenshtein's distance, one row at a time.
size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= left.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= right.size(); ++j) {
      size_t substituted = diagonal + (left[i - 1] != right[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

std::string unknown_name(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  std::string text = "unknown " + std::string(what) + " '" + std::string(name) + "'";
  auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  if (nearest != known.end() && edit_distance(name, *nearest) <= std::max<size_t>(2, name.size() / 2)) {
    text += "; did you mean '" + *nearest + "'?";
  }
  text += "; known:";
  for (const auto& each : known) text += " " + each;
  return text;
}

}  // namespace refnpu

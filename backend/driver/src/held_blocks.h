// Blocks that work still uses when they are freed: their memory goes back after that work.
#pragma once

#include <functional>
#include <vector>

#include "driver/src/block.h"
#include "driver/src/queue.h"
#include "refnpu/driver.h"

namespace refnpu::driver {

// Notes that work on another stream than the block's own uses it, too.
void record_use(const Block& block, npuStream_t stream);

// The moments after which nothing uses the block any more, and forgets the streams that were recorded. Empty when that
// is now.
std::vector<Moment> take_uses(const Block& block);

// Calls `release` when all moments have passed, in the thread of the stream that gets there last.
void release_after(const std::vector<Moment>& uses, std::function<void()> release);

}  // namespace refnpu::driver

// A header of Gloo that Debian's package libgloo-dev (0.0~git20220518) leaves out although headers
// that it ships include it. It says only what those need to know of the layout of their members.
// Where Gloo's own header is installed that is used: this folder comes after the system's.
#pragma once

// What the library of that package allocates for a tcp::Pair.
#define SHARDWRIGHT_GLOO_PAIR_BYTES 0x380

#include <memory>

namespace gloo {

template <typename T>
class NonOwningPtr;

template <typename T>
class WeakNonOwningPtr final {
 private:
  std::weak_ptr<T*> pointer_;
};

template <typename T>
class ShareableNonOwningPtr;

}  // namespace gloo

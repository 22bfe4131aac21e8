// A header of Gloo that Debian's package libgloo-dev (0.0~git20220518) lacks although its other
// headers include it. It declares only what those need for the layout of their members. An
// installed header takes precedence: this folder comes last in the search path.
#pragma once

// sizeof(tcp::Pair) in the library of that package.
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

// Values in Python's pickle format, read without running anything.
//
// A pickle is a program for a machine that may import and call whatever it likes. This reader keeps
// what such a program says as data: the name of a global stays a name, and a call stays the name of
// what would be called, with its arguments. Protocols 0 to 5 are read,
// without the classes of Python 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright {

enum class PickleKind : std::uint8_t {
  None,
  Bool,
  Integer,
  Real,
  Text,
  // Also whole numbers of more than 64 bits, as they stand in the stream.
  Binary,
  List,
  Tuple,
  Set,
  Dict,
  // A class or function, by its module and name: "argparse Namespace".
  Global,
  // An object: items are what would be called, its arguments, and the state that would be set.
  Call,
  // Data outside of the pickle, such as the numbers of a tensor.
  Persistent,
};

struct PickleStore;

// A value of a document, which has to live as long; cheap to copy. Values may be shared, and a list
// may hold itself: whoever walks down has to stop at some depth.
class PickleValue {
 public:
  PickleValue(const PickleStore* store, std::uint32_t index) : store_(store), index_(index) {}

  PickleKind kind() const;
  // The same value has the same number wherever it stands.
  std::uint32_t identity() const { return index_; }

  // Empty where the value is of another kind. Real numbers may be whole ones.
  std::optional<bool> truth() const;
  std::optional<std::int64_t> integer() const;
  std::optional<double> real() const;
  // Of Text, Binary and Global.
  std::optional<std::string_view> text() const;

  // The number of items; 0 of values without items. Those of a Dict are its keys and values in
  // turn.
  std::size_t size() const;
  PickleValue item(std::size_t i) const;
  // The value of a Dict's key, of several the last one; of a Call that of its state.
  std::optional<PickleValue> find(std::string_view key) const;

 private:
  const PickleStore* store_;
  std::uint32_t index_;
};

struct PickleDocument {
  std::shared_ptr<const PickleStore> store;
  PickleValue root;
  // The length of the pickle; other bytes may follow.
  std::size_t end = 0;
};

// Reads the pickle at the start of `bytes`. `advanced` receives how far the reader is, now and
// then, and may throw to stop it. Throws InputError, with the byte, where the stream breaks off,
// has an operation that does not exist, or takes values that are not there. `source` names the
// file.
PickleDocument read_pickle(std::string bytes, const std::string& source,
                           const std::function<void(std::size_t byte)>& advanced = {});

}  // namespace shardwright

// A set of enumerators with names, in files as the list of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.hpp"

namespace shardwright {

template <NamedEnum E>
class EnumSet {
  static_assert(kEnumCount<E> <= 32);

 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<E> listed) {
    for (const E member : listed) insert(member);
  }
  // The inverse of `bits()`.
  static constexpr EnumSet of_bits(std::uint32_t number) {
    EnumSet set;
    set.bits_ = number;
    return set;
  }

  constexpr bool contains(E member) const { return (bits_ & bit(member)) != 0; }
  constexpr bool contains_all(EnumSet other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr void insert(E member) { bits_ |= bit(member); }
  // Bit i stands for the i-th enumerator.
  constexpr std::uint32_t bits() const { return bits_; }

  // In the order of the enumerators.
  std::vector<E> members() const {
    std::vector<E> found;
    for (const E member : enumerators<E>()) {
      if (contains(member)) found.push_back(member);
    }
    return found;
  }

  bool operator==(const EnumSet&) const = default;

 private:
  static constexpr std::uint32_t bit(E member) { return std::uint32_t{1} << index_of(member); }

  std::uint32_t bits_ = 0;
};

// The names of the members with `separator` between them.
template <NamedEnum E>
std::string names_of(EnumSet<E> set, std::string_view separator = ", ") {
  std::string text;
  for (const E member : set.members()) {
    if (!text.empty()) text += separator;
    text += name_of(member);
  }
  return text;
}

}  // namespace shardwright

// Names of enumerators in files and tables, and arrays with an element for each enumerator.
//
// An enumeration whose values have names states them once, in a function beside it. Its enumerators
// start at 0 and leave no gap; the names are in their order:
//
//   enum class NormKind : std::uint8_t { LayerNorm, RmsNorm };
//   constexpr auto enum_names(NormKind) {
//     return std::array{"layernorm", "rmsnorm"};
//   }
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace shardwright {

template <class E>
concept NamedEnum = requires {
  enum_names(E{});
};

template <auto value>
consteval bool is_enumerator() {
  // GCC and Clang spell an enumerator by its name and any other value as a cast: "(Phase)7".
  const std::string_view spelling = __PRETTY_FUNCTION__;
  return spelling[spelling.find("value = ") + std::string_view("value = ").size()] != '(';
}

template <class E, std::size_t first = 0>
consteval std::size_t count_enumerators() {
  if constexpr (is_enumerator<static_cast<E>(first)>()) {
    return count_enumerators<E, first + 1>();
  } else {
    return first;
  }
}

// The number of enumerators.
template <class E>
inline constexpr std::size_t kEnumCount = count_enumerators<E>();

template <class E>
constexpr std::size_t index_of(E value) {
  return static_cast<std::size_t>(value);
}

// The enumerators in order.
template <class E>
constexpr auto enumerators() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{static_cast<E>(i)...};
  }
  (std::make_index_sequence<kEnumCount<E>>());
}

template <NamedEnum E>
inline constexpr auto kEnumNames = enum_names(E{});

// The names of all enumerators in order.
template <NamedEnum E>
constexpr std::span<const char* const> names_of() {
  static_assert(kEnumNames<E>.size() == kEnumCount<E>, "one name for each enumerator");
  return kEnumNames<E>;
}

template <NamedEnum E>
constexpr const char* name_of(E value) {
  return names_of<E>()[index_of(value)];
}

// An array with an element for each enumerator.
template <class E, class T>
struct EnumArray : std::array<T, kEnumCount<E>> {
  using Elements = std::array<T, kEnumCount<E>>;
  using Elements::operator[];

  constexpr T& operator[](E value) { return Elements::operator[](index_of(value)); }
  constexpr const T& operator[](E value) const { return Elements::operator[](index_of(value)); }

  bool operator==(const EnumArray&) const = default;
};

}  // namespace shardwright

// Units as types: seconds, bytes, FLOP, joules and dollars do not mix by accident.
//
// A quantity holds a double in base units (seconds, bytes, FLOP, joules, US dollars). Products and
// quotients of quantities have the type that dimensional analysis gives them, so `Bytes /
// BytesPerSecond` is `Seconds` and `Seconds + Bytes` does not compile. GB is 1e9 bytes, GiB is 2^30
// bytes.
#pragma once

#include <compare>
#include <limits>

namespace shardwright {

template <int Time, int Byte, int Flop, int Energy, int Money>
class Quantity {
 public:
  constexpr Quantity() = default;
  // A bare number becomes a quantity only when the unit is spelled out, as in `Seconds(0.5)`.
  constexpr explicit Quantity(double base_units) : value_(base_units) {}

  // The value in base units.
  constexpr double value() const { return value_; }

  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }

  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.value_); }
  friend constexpr Quantity operator*(Quantity a, double factor) {
    return Quantity(a.value_ * factor);
  }
  friend constexpr Quantity operator*(double factor, Quantity a) {
    return Quantity(a.value_ * factor);
  }
  friend constexpr Quantity operator/(Quantity a, double divisor) {
    return Quantity(a.value_ / divisor);
  }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }

 private:
  double value_ = 0.0;
};

template <int T1, int B1, int F1, int E1, int M1, int T2, int B2, int F2, int E2, int M2>
constexpr auto operator*(Quantity<T1, B1, F1, E1, M1> a, Quantity<T2, B2, F2, E2, M2> b) {
  return Quantity<T1 + T2, B1 + B2, F1 + F2, E1 + E2, M1 + M2>(a.value() * b.value());
}

template <int T1, int B1, int F1, int E1, int M1, int T2, int B2, int F2, int E2, int M2>
constexpr auto operator/(Quantity<T1, B1, F1, E1, M1> a, Quantity<T2, B2, F2, E2, M2> b) {
  return Quantity<T1 - T2, B1 - B2, F1 - F2, E1 - E2, M1 - M2>(a.value() / b.value());
}

using Seconds = Quantity<1, 0, 0, 0, 0>;
using Bytes = Quantity<0, 1, 0, 0, 0>;
using Flop = Quantity<0, 0, 1, 0, 0>;
using Joules = Quantity<0, 0, 0, 1, 0>;
using Dollars = Quantity<0, 0, 0, 0, 1>;

using BytesPerSecond = Quantity<-1, 1, 0, 0, 0>;
using FlopPerSecond = Quantity<-1, 0, 1, 0, 0>;
using Hertz = Quantity<-1, 0, 0, 0, 0>;
using Watts = Quantity<-1, 0, 0, 1, 0>;
using DollarsPerSecond = Quantity<-1, 0, 0, 0, 1>;

constexpr Seconds microseconds(double count) {
  return Seconds(count * 1e-6);
}
constexpr Seconds milliseconds(double count) {
  return Seconds(count * 1e-3);
}
constexpr Bytes gigabytes(double count) {
  return Bytes(count * 1e9);
}
constexpr BytesPerSecond gigabytes_per_second(double count) {
  return BytesPerSecond(count * 1e9);
}
constexpr FlopPerSecond teraflops(double count) {
  return FlopPerSecond(count * 1e12);
}
constexpr DollarsPerSecond dollars_per_hour(double count) {
  return DollarsPerSecond(count / 3600.0);
}

template <class Q>
constexpr Q infinite() {
  return Q(std::numeric_limits<double>::infinity());
}

}  // namespace shardwright

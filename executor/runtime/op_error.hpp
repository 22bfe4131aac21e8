// A failed op, named for people.
#pragma once

#include <stdexcept>
#include <string>

namespace shardwright::executor {

// What the op was and why it failed. The rank and its host are added where they are known.
class OpError : public std::runtime_error {
 public:
  OpError(std::string op, const std::string& why)
      : std::runtime_error(op + ": " + why), op_(std::move(op)) {}

  const std::string& op() const { return op_; }

 private:
  std::string op_;
};

}  // namespace shardwright::executor

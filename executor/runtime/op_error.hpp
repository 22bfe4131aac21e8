// The error of a failed op.
#pragma once

#include <stdexcept>
#include <string>

namespace shardwright::executor {

// Names the op and the reason. Callers add the rank and its host.
class OpError : public std::runtime_error {
 public:
  OpError(std::string op, const std::string& why)
      : std::runtime_error(op + ": " + why), op_(std::move(op)) {}

  const std::string& op() const { return op_; }

 private:
  std::string op_;
};

}  // namespace shardwright::executor

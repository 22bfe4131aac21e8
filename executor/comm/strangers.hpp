// Those who have connected to a listening socket and not yet said who they are.
//
// They share one thread, do not hold each other up, and are hung up on when their time is over; the
// oldest goes where there are too many. Nothing is read beyond the greeting.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/socket.hpp"

namespace shardwright::executor {

class Strangers {
 public:
  // The bytes of a whole greeting, as far as what has been said of it tells; nothing if it cannot
  // become one.
  using Length = std::function<std::optional<std::size_t>(const std::string& said)>;
  // Is given who has said a whole greeting, and what it was.
  using Meet = std::function<void(Socket stranger, const std::string& greeting)>;

  Strangers(Length length, Meet meet);

  // Waits until something comes at one of `others` or from a stranger, or time is over for one.
  // Hears who spoke, hangs up on who took too long, and says what came at `others`.
  std::vector<pollfd> wait(std::vector<pollfd> others);
  // Takes the next one who waits at `listener`.
  void accept(const Socket& listener);

 private:
  struct Stranger {
    Socket socket;
    std::string said;
    std::chrono::steady_clock::time_point until;
  };

  // True if the stranger needs no more attention: met, or to be hung up on.
  bool hear(Stranger& stranger) const;

  Length length_;
  Meet meet_;
  std::list<Stranger> strangers_;
};

}  // namespace shardwright::executor

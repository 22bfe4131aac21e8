// Messages to a standard error that a test redirects.
#include "core/base/standard_streams.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tests/scratch_path.hpp"

namespace shardwright {
namespace {

// Standard error is `descriptor` while it lives; closed if that is negative.
class StderrTo {
 public:
  explicit StderrTo(int descriptor) : before_(dup(STDERR_FILENO)) {
    if (descriptor < 0) {
      close(STDERR_FILENO);
    } else {
      dup2(descriptor, STDERR_FILENO);
      close(descriptor);
    }
  }
  StderrTo(const StderrTo&) = delete;
  StderrTo& operator=(const StderrTo&) = delete;
  ~StderrTo() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }

 private:
  int before_;
};

TEST(Messages, EndWithALineFeed) {
  const std::string file = scratch_path("messages");
  {
    const StderrTo here(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    write_to_stderr("on 8 GPUs: ");
    print_message("no plan");
    print_message("");
  }
  EXPECT_EQ(content_of(file), "on 8 GPUs: no plan\n\n");
}

// A full disk, a file that cannot be written, a reader that went away, and none at all.
TEST(Messages, ThatNobodyCanReadAreDropped) {
  prepare_standard_streams();
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  for (const int nowhere :
       {open("/dev/full", O_WRONLY), open("/dev/null", O_RDONLY), ends[1], -1}) {
    const StderrTo there(nowhere);
    EXPECT_NO_THROW(print_message("nobody reads this"));
  }
}

// The next file that is opened would have its number, and get the messages.
TEST(Messages, OfAClosedStreamGetIntoNoOtherFile) {
  const std::string file = scratch_path("results");
  {
    const StderrTo nowhere(-1);
    prepare_standard_streams();
    const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT_NE(opened, STDERR_FILENO);
    print_message("a message");
    close(opened);
  }
  EXPECT_EQ(content_of(file), "");
}

}  // namespace
}  // namespace shardwright

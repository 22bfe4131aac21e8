#include "gui/models/text.hpp"

#include <gtest/gtest.h>

namespace shardwright::gui {
namespace {

TEST(TimeText, HasThreeDigitsAtAnyScale) {
  for (const auto& [seconds, text] : {std::pair{16.154, "16.15 s"},
                                      {0.0456, "45.6 ms"},
                                      {7.89e-6, "7.89 µs"},
                                      {1.5e-9, "1.5 ns"},
                                      {-0.25, "-250 ms"},
                                      {0.0, "0 s"}})
    EXPECT_EQ(time_text(Seconds(seconds)), to_qstring(text));
}

// Sums that should cancel leave such residues.
TEST(TimeText, BelowANanosecondThereIsNone) {
  for (const double seconds : {6e-16, -6e-16, 9.9e-10})
    EXPECT_EQ(time_text(Seconds(seconds)), u"0 s"_s);
}

}  // namespace
}  // namespace shardwright::gui

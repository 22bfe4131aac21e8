// The fast readers against the strict ones, which are a second implementation.
#include "core/timeline/usual_form.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"
#include "core/timeline/perfetto.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright {
namespace {

Timeline small_timeline() {
  Timeline timeline;
  timeline.origin = TimelineOrigin::Measured;
  timeline.step = 41;
  timeline.ranks = {{0, "stage 0", "host \"a\"", Seconds(12.5), Seconds(1e-3)}, {5, "stage 1"}};
  Span gemm;
  gemm.name = "ä tab\there";
  gemm.start = Seconds(1.0 / 3.0);
  gemm.duration = Seconds(1e-3);
  gemm.flop = Flop(3e12);
  gemm.layer = 7;
  gemm.microbatch = 2;
  Span send;
  send.stream = Stream::SendActivation;
  send.name = "send";
  send.kind = OpKind::Send;
  send.phase = Phase::BackwardWeight;
  send.peer = 5;
  send.group = Group::Pipeline;
  send.bytes = Bytes(16777216);
  Span receive = send;
  receive.rank = 5;
  receive.peer = 0;
  timeline.spans = {gemm, send, receive};
  timeline.flows = {{1, 2}};
  timeline.memory = {{0, Seconds(0), Bytes(1e9)}, {5, Seconds(1.2e-3), Bytes(2e9)}};
  return timeline;
}

enum class Form : std::uint8_t { Timeline, Trace };

std::string written(const Timeline& timeline, Form form) {
  std::ostringstream out;
  form == Form::Trace ? write_perfetto(timeline, out) : write_timeline(timeline, out);
  return out.str();
}

std::optional<Timeline> fast(std::string text, Form form) {
  const std::size_t size = text.size();
  text.resize(size + kTextPadding, ' ');
  const std::string_view without_padding(text.data(), size);
  return form == Form::Trace ? read_usual_trace(without_padding)
                             : read_usual_timeline(without_padding);
}

std::optional<Timeline> strict(const std::string& text, Form form) {
  try {
    const nlohmann::json document = parse_json(text, "test");
    return form == Form::Trace ? read_perfetto(document, "test") : read_timeline(document, "test");
  } catch (const InputError&) {
    return std::nullopt;
  }
}

class UsualForm : public ::testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Forms, UsualForm, ::testing::Values(Form::Timeline, Form::Trace));

TEST_P(UsualForm, IsReadAsTheStrictReaderReadsIt) {
  for (const Timeline& timeline : {small_timeline(), Timeline()}) {
    const std::string text = written(timeline, GetParam());
    const auto read = fast(text, GetParam());
    ASSERT_TRUE(read);
    EXPECT_EQ(read, strict(text, GetParam()));
  }
}

// Whatever character of a file is another one, missing or twice: what the fast reader takes, the
// strict one takes and reads alike.
TEST_P(UsualForm, TakesNoTextThatTheStrictReaderRefuses) {
  const std::string text = written(small_timeline(), GetParam());
  std::size_t taken = 0;
  const auto check = [&](const std::string& changed) {
    const auto read = fast(changed, GetParam());
    if (!read) return;
    ++taken;
    ASSERT_EQ(read, strict(changed, GetParam())) << changed;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'{', '}', '[', ']', ',', ':', '"', '0', '9', '-', '.', 'e', 'x', '\\',
                         '\0', '\n', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      check(changed);
    }
    check(text.substr(0, i) + text.substr(i + 1));
    check(text.substr(0, i) + text[i] + text.substr(i));
    check(text.substr(0, i));
  }
  EXPECT_GT(taken, 100U);
}

// Members that come twice, are unknown or out of range, and references to what is not there.
TEST_P(UsualForm, LeavesWhatIsWrongToTheStrictReader) {
  const std::string text = written(small_timeline(), GetParam());
  const std::string name = "\"name\":\"send\"";
  const auto with = [&](const std::string& part) {
    std::string changed = text;
    return changed.replace(changed.find(name), name.size(), part);
  };
  EXPECT_FALSE(fast(with(name + ',' + name), GetParam()));
  EXPECT_FALSE(fast(with("\"name\":7"), GetParam()));
  EXPECT_FALSE(fast(with(name + ",\"nam\":1"), GetParam()));
  EXPECT_FALSE(fast(text + "{}", GetParam()));
  Timeline timeline = small_timeline();
  timeline.flows = {{1, 3}};
  // A trace cannot be written with such a message.
  if (GetParam() == Form::Timeline) {
    EXPECT_FALSE(fast(written(timeline, GetParam()), GetParam()));
  }
  timeline = small_timeline();
  timeline.ranks.pop_back();
  EXPECT_FALSE(fast(written(timeline, GetParam()), GetParam()));
}

TEST(UsualFile, IsToldByItsFirstBytes) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text, std::uintmax_t most_bytes = 1 << 20) {
    const auto file = folder.path() / "file.json";
    std::ofstream(file) << text;
    return read_usual_file(file, most_bytes);
  };
  const std::string timeline = written(small_timeline(), Form::Timeline);
  EXPECT_EQ(read(timeline), small_timeline());
  EXPECT_TRUE(read(written(small_timeline(), Form::Trace)));
  EXPECT_FALSE(read(timeline, timeline.size() - 1));
  EXPECT_FALSE(read("{\"schema\": \"shardwright/plan\"}"));
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(read_usual_file(folder.path(), 1 << 20));
  EXPECT_FALSE(read_usual_file(folder.path() / "none.json", 1 << 20));
}

// The watch hears of all bytes, and may stop the reading.
TEST(UsualFile, IsWatched) {
  const TemporaryFolder folder;
  Timeline timeline = small_timeline();
  timeline.spans.resize(50'000, timeline.spans.front());
  const std::string text = written(timeline, Form::Timeline);
  const auto file = folder.path() / "file.json";
  std::ofstream(file) << text;
  std::uintmax_t seen = 0, calls = 0;
  std::stop_source source;
  ReadingWatch watch{[&](std::uintmax_t bytes) {
                       seen += bytes;
                       ++calls;
                     },
                     source.get_token()};
  EXPECT_TRUE(read_usual_file(file, 1 << 30, watch));
  EXPECT_EQ(seen, text.size());
  EXPECT_GT(calls, 10U);
  source.request_stop();
  EXPECT_THROW(read_usual_file(file, 1 << 30, watch), ReadingStopped);
}

}  // namespace
}  // namespace shardwright

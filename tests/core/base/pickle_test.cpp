// Pickles: values that a writer of our own pickled come back, in any nesting, and no stream does
// worse than an InputError.
#include "core/base/pickle.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "tests/pickle_writer.hpp"

namespace shardwright {
namespace {

using nlohmann::json;

json value_of(const PickleValue& value) {
  switch (value.kind()) {
    case PickleKind::Bool:
      return *value.truth();
    case PickleKind::Integer:
      return *value.integer();
    case PickleKind::Real:
      return *value.real();
    case PickleKind::Text:
      return *value.text();
    case PickleKind::List: {
      json items = json::array();
      for (std::size_t i = 0; i < value.size(); ++i) items.push_back(value_of(value.item(i)));
      return items;
    }
    case PickleKind::Dict: {
      json members = json::object();
      for (std::size_t i = 0; i < value.size(); i += 2)
        members[*value.item(i).text()] = value_of(value.item(i + 1));
      return members;
    }
    default:
      return nullptr;
  }
}

json random_value(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::arbitrary<double>();
    case 4:
      return *rc::gen::container<std::string>(rc::gen::inRange('a', 'e'));
    case 5: {
      json items = json::array();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) items.push_back(random_value(depth - 1));
      return items;
    }
    default: {
      json members = json::object();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
        members[std::string(1, *rc::gen::inRange('a', 'z'))] = random_value(depth - 1);
      return members;
    }
  }
}

RC_GTEST_PROP(Pickle, ValuesComeBack, ()) {
  const json value = random_value(5);
  const std::string stream = pickled(value);
  const PickleDocument document = read_pickle(stream + "rest", "test");
  RC_ASSERT(value_of(document.root) == value);
  RC_ASSERT(document.end == stream.size());
}

// Streams of operations that exist, with small numbers behind them, reach further than random
// bytes.
RC_GTEST_PROP(Pickle, AnyStreamIsReadOrRefused, ()) {
  static const std::string kOperations =
      "\x80\x88\x89\x8a\x8c\x8f\x90\x91\x92\x93\x94\x81\x85\x86\x87(.012NKMJGXUBCcqrhjQRb]})"
      "tledasuFSVpg\n'";
  std::string stream;
  for (const int each : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000)))
    stream += each < 800 ? kOperations[static_cast<std::size_t>(each) % kOperations.size()]
                         : static_cast<char>(each % 4);
  stream += '.';
  try {
    const PickleDocument document = read_pickle(stream, "test");
    RC_ASSERT(document.end <= stream.size());
    // Looks at what there is, one level deep.
    for (std::size_t i = 0; i < document.root.size(); ++i) document.root.item(i).text();
    document.root.find("a");
  } catch (const InputError&) {
  }
}

std::int64_t integer_of(const std::string& stream) {
  return read_pickle(stream, "test").root.integer().value();
}

// Lib/pickletools.py of CPython gives these as examples of LONG1.
TEST(Pickle, LongNumbersHaveASign) {
  EXPECT_EQ(integer_of(std::string("\x80\x02\x8a\x00.", 5)), 0);
  EXPECT_EQ(integer_of(std::string("\x80\x02\x8a\x02\xff\x00.", 7)), 255);
  EXPECT_EQ(integer_of("\x80\x02\x8a\x02\xff\x7f."), 32767);
  EXPECT_EQ(integer_of(std::string("\x80\x02\x8a\x02\x00\xff.", 7)), -256);
  EXPECT_EQ(integer_of(std::string("\x80\x02\x8a\x02\x00\x80.", 7)), -32768);
  EXPECT_EQ(integer_of("\x80\x02J\xff\xff\xff\xff."), -1);
}

// pickle.dumps({"list": [7, 0.5, True, None, "a\n\\b", t, t]}, protocol=0) of Python 3.11, where t
// is "t", and a text as Python 2.7 writes it.
TEST(Pickle, OldestProtocolIsRead) {
  const std::string stream =
      "(dp0\nVlist\np1\n(lp2\nI7\naF0.5\naI01\naNaVa\\u000a\\u005cb\np3\naVt\np4\nag4\naS'u'"
      "\np5\nas.";
  const PickleDocument document = read_pickle(stream, "test");
  const PickleValue list = document.root.find("list").value();
  ASSERT_EQ(list.size(), 8U);
  EXPECT_EQ(list.item(7).text(), "u");
  EXPECT_EQ(list.item(0).integer(), 7);
  EXPECT_EQ(list.item(1).real(), 0.5);
  EXPECT_EQ(list.item(2).truth(), true);
  EXPECT_EQ(list.item(3).kind(), PickleKind::None);
  EXPECT_EQ(list.item(4).text(), "a\n\\b");
  EXPECT_EQ(list.item(5).identity(), list.item(6).identity());
  EXPECT_THROW(read_pickle("(dp0\ng7\n.", "test"), InputError);
}

// pickle.dumps(argparse.Namespace(a=7), protocol=2) of Python 3.11.
TEST(Pickle, ObjectsKeepTheirState) {
  const std::string stream(
      "\x80\x02"
      "cargparse\nNamespace\nq\x00)\x81q\x01}q\x02X\x01\x00\x00\x00"
      "aq\x03K\x07sb.",
      44);
  const PickleDocument document = read_pickle(stream, "test");
  ASSERT_EQ(document.root.kind(), PickleKind::Call);
  EXPECT_EQ(document.root.item(0).text(), "argparse Namespace");
  EXPECT_EQ(document.root.find("a")->integer(), 7);
  EXPECT_FALSE(document.root.find("b"));
}

}  // namespace
}  // namespace shardwright

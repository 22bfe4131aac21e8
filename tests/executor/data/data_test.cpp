#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>

#include "core/base/error.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/data/batch_loader.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string write(const std::string& name, const std::string& content) {
  const std::string file = scratch_path(name);
  std::ofstream(file, std::ios::binary) << content;
  return file;
}

// A change of the first or last byte shows, also if the file is too large to be read completely.
TEST(TokenFile, ChecksumDistinguishesCorporaOfOneSize) {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{200'000}, (std::size_t{64} << 20U) + 9}) {
    std::string text(bytes, 'a');
    const std::string sum = TokenFile(write("sum.txt", text)).checksum();
    EXPECT_EQ(TokenFile(write("sum-again.txt", text)).checksum(), sum);
    for (const std::size_t changed : {std::size_t{0}, bytes - 1}) {
      text[changed] = 'b';
      EXPECT_NE(TokenFile(write("sum.txt", text)).checksum(), sum) << bytes << ' ' << changed;
      text[changed] = 'a';
    }
  }
}

// Returns the problem of a file as one line.
std::string refusal_of_file(const std::string& file) {
  return thrown_by([&] { TokenFile{file}; });
}

// Reading a pipe would wait for its writer, and a device might never end.
TEST(TokenFile, RefusesPipesAndDevicesWithoutOpeningThem) {
  const std::string pipe = scratch_path("pipe.bin");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal_of_file(pipe), HasSubstr("found a named pipe; expected a file of tokens"));
  EXPECT_THAT(refusal_of_file("/dev/zero"), HasSubstr("found a device"));
  const std::string index = scratch_path("piped.idx");
  ASSERT_EQ(mkfifo(index.c_str(), 0600), 0);
  EXPECT_THAT(refusal_of_file(write("piped.bin", "ab")),
              HasSubstr("piped.idx: found a named pipe; expected an index"));
  EXPECT_THROW(SafetensorsFile(pipe, SafetensorsFile::Access::Read), RuntimeFailure);
}

TEST(TokenFile, ReadsTextAsBytesAndBinaryTokens) {
  const std::string bytes("\x01\xff\x02\x00", 4);
  std::vector<std::int32_t> text(4), pairs(2), whole(1);
  TokenFile(write("a.txt", bytes)).read(0, text);
  TokenFile(write("a.u16", bytes)).read(0, pairs);
  TokenFile(write("a.u32", bytes)).read(0, whole);
  EXPECT_EQ(text, (std::vector<std::int32_t>{1, 255, 2, 0}));
  EXPECT_EQ(pairs, (std::vector<std::int32_t>{0xff01, 2}));
  EXPECT_EQ(whole, (std::vector<std::int32_t>{0x0002ff01}));
}

std::string as_bytes(const std::vector<std::int64_t>& values, std::size_t bytes_each) {
  std::string text;
  for (const std::int64_t value : values)
    text.append(reinterpret_cast<const char*>(&value), bytes_each);
  return text;
}

std::string llmc_file(std::int64_t magic, std::int64_t version, const std::string& tokens,
                      std::int64_t count) {
  std::string text = as_bytes({magic, version, count}, 4);
  text.resize(1024, '\0');
  return text + tokens;
}

std::vector<std::int32_t> tokens_in(const std::string& file) {
  const TokenFile read(file);
  std::vector<std::int32_t> tokens(read.tokens());
  read.read(0, tokens);
  return tokens;
}

const std::vector<std::int32_t> kThree = {5, 50'000, 7};

TEST(TokenFile, ReadsFilesOfNanoGptAndLlmc) {
  const std::string shorts = as_bytes({5, 50'000, 7}, 2), longs = as_bytes({5, 50'000, 7}, 4);
  EXPECT_EQ(tokens_in(write("nano.bin", shorts)), kThree);
  EXPECT_EQ(tokens_in(write("gpt2.bin", llmc_file(20240520, 1, shorts, 3))), kThree);
  EXPECT_EQ(tokens_in(write("llama3.bin", llmc_file(20240801, 7, longs, 3))), kThree);
  EXPECT_THROW(tokens_in(write("cut.bin", llmc_file(20240520, 1, shorts, 4))), InputError);
}

TEST(TokenFile, RefusesOtherVersionsOfLlmc) {
  const std::string shorts = as_bytes({5, 50'000, 7}, 2);
  const std::string next = write("next.bin", llmc_file(20240520, 9, shorts, 3));
  EXPECT_THAT(refusal_of_file(next),
              AllOf(HasSubstr(next), HasSubstr("version 9 of llm.c's format 20240520"),
                    HasSubstr("version 1")));
  const std::string cut = llmc_file(20240520, 1, "", 3).substr(0, 100);
  EXPECT_THAT(refusal_of_file(write("header.bin", cut)), HasSubstr("1024 bytes"));
  EXPECT_THAT(refusal_of_file(write("below.bin", llmc_file(20240520, 1, "", -5))),
              HasSubstr("-5 tokens"));
}

// Two documents of one and two tokens of this width.
std::string megatron_index(std::int64_t type, std::int64_t bytes = 2,
                           std::initializer_list<std::int64_t> lengths = {1, 2}) {
  return std::string("MMIDIDX\0\0", 9) + as_bytes({1}, 8) + as_bytes({type}, 1) +
         as_bytes({2, 3}, 8) + as_bytes(lengths, 4) + as_bytes({0, bytes}, 8) +
         as_bytes({0, 1, 2}, 8);
}

TEST(TokenFile, ReadsMegatronsIndexedDatasets) {
  for (const auto& [type, bytes] : {std::pair{8, 2}, {4, 4}, {5, 8}}) {
    write("indexed.idx", megatron_index(type, bytes));
    const auto size = static_cast<std::size_t>(bytes);
    EXPECT_EQ(tokens_in(write("indexed.bin", as_bytes({5, 50'000, 7}, size))), kThree);
    EXPECT_THROW(tokens_in(write("indexed.bin", as_bytes({5, 50'000}, size))), InputError);
  }
}

// Recognised by its name or by its first bytes.
TEST(TokenFile, RefusesFormatsAroundTokens) {
  const std::string array = "\x93NUMPY\x01" + std::string(57, ' ') + as_bytes({5, 50'000, 7}, 2);
  for (const char* name : {"alone.idx", "alone.bin", "alone.txt"}) {
    EXPECT_THAT(refusal_of_file(write(name, megatron_index(8))),
                HasSubstr("found an index of Megatron-LM; expected the .bin beside it"));
    // A later file with this stem must not find the index.
    scratch_path(name);
  }
  for (const char* name : {"array.npy", "array.bin", "array.u16", "array"})
    EXPECT_THAT(refusal_of_file(write(name, array)), HasSubstr("found an array of numpy; "));
  EXPECT_THAT(refusal_of_file(write("cut.npy", "\x93NUM")), HasSubstr("an array of numpy"));
  EXPECT_EQ(tokens_in(write("numpy.txt", "NUMPY")).size(), 5U);
}

TEST(TokenFile, NamesUnsupportedIndicesOfMegatron) {
  const auto refusal = [](const std::string& index) {
    write("other.idx", index);
    return refusal_of_file(write("other.bin", as_bytes({5, 50'000, 7}, 4)));
  };
  const std::string expected = "; expected one of uint8, int16, int32, int64, uint16";
  EXPECT_THAT(refusal(megatron_index(2)), HasSubstr("found int8 tokens" + expected));
  EXPECT_THAT(refusal(megatron_index(7)), HasSubstr("found float32 tokens" + expected));
  EXPECT_THAT(refusal(megatron_index(99)), HasSubstr("unknown type 99" + expected));
  std::string changed = megatron_index(8);
  changed[9] = 3;
  EXPECT_THAT(refusal(changed), HasSubstr("found version 3 of Megatron-LM's index; "
                                          "expected version 1"));
  changed[0] = 'X';
  EXPECT_THAT(refusal(changed), HasSubstr("begins with \"XMIDIDX"));
  EXPECT_THAT(refusal(megatron_index(8).substr(0, 20)), HasSubstr("found 20 bytes"));
  EXPECT_THAT(refusal("MMI"), HasSubstr("begins with \"MMI"));
}

TEST(TokenFile, RefusesDamagedIndicesOfMegatron) {
  const auto refusal = [](const std::string& index) {
    write("damaged.idx", index);
    return refusal_of_file(write("damaged.bin", as_bytes({5, 50'000, 7}, 2)));
  };
  const std::string whole = megatron_index(8);
  ASSERT_EQ(whole.size(), 82U);
  EXPECT_EQ(refusal(whole), "");
  // The index may end with a mode for each sequence.
  EXPECT_EQ(refusal(whole + std::string(2, '\0')), "");
  for (const std::size_t kept : {81U, 52U, 50U, 35U}) {
    EXPECT_THAT(refusal(whole.substr(0, kept)),
                AllOf(HasSubstr(std::to_string(kept) + " bytes"), HasSubstr("82")));
  }
  EXPECT_THAT(refusal(whole + "more"), HasSubstr("86 bytes"));
  EXPECT_THAT(refusal(megatron_index(8, 2, {-5, 3})),
              AllOf(HasSubstr("damaged.idx"), HasSubstr("sequence 0"), HasSubstr("-5 tokens")));
  EXPECT_THAT(refusal(megatron_index(8, 4)), AllOf(HasSubstr("sequence 1"), HasSubstr("byte 4")));
  std::string documents = whole;
  documents.replace(66, 8, as_bytes({7}, 8));
  EXPECT_THAT(refusal(documents), HasSubstr("document 1"));
  std::string endless = whole;
  endless.replace(18, 8, as_bytes({-1}, 8));
  EXPECT_THAT(refusal(endless), HasSubstr("18446744073709551615 sequences"));
}

TEST(TokenFile, RefusesIncompleteTokens) {
  EXPECT_THROW(TokenFile(write("odd.u16", "abc")), InputError);
  EXPECT_THROW(TokenFile(write("empty.txt", "")), InputError);
  EXPECT_THROW(TokenFile("/nowhere/at/all"), InputError);
  EXPECT_THAT(refusal_of_file(testing::TempDir()),
              HasSubstr("found a folder; expected a file of tokens"));
}

TEST(SampleOrder, VisitsEachSampleOncePerEpoch) {
  for (const std::uint64_t samples : {1U, 2U, 3U, 17U, 256U, 1000U}) {
    const SampleOrder order(5, samples);
    for (const std::uint64_t epoch : {0U, 1U, 7U}) {
      std::set<std::uint64_t> met;
      for (std::uint64_t i = 0; i < samples; ++i) met.insert(order.sample(epoch * samples + i));
      EXPECT_EQ(met.size(), samples);
      EXPECT_LT(*met.rbegin(), samples);
    }
  }
}

TEST(SampleOrder, DependsOnSeedAndEpoch) {
  const auto first_fifty = [](std::uint64_t seed, std::uint64_t from) {
    const SampleOrder order(seed, 1000);
    std::vector<std::uint64_t> samples;
    for (std::uint64_t i = 0; i < 50; ++i) samples.push_back(order.sample(from + i));
    return samples;
  };
  EXPECT_EQ(first_fifty(1, 0), first_fifty(1, 0));
  EXPECT_NE(first_fifty(1, 0), first_fifty(2, 0));
  EXPECT_NE(first_fifty(1, 0), first_fifty(1, 1000));
}

// Under every plan, the ranks together see the same sequences in a step, each once.
TEST(BatchLoader, GivesAllPlansTheSameSamples) {
  std::string text;
  for (int i = 0; i < 4001; ++i) text += static_cast<char>(i % 251);
  const TokenFile file(write("loader.txt", text));
  const auto sequences = [&](std::int64_t dp, std::int64_t micro_batch) {
    Plan plan;
    plan.dp = dp;
    plan.micro_batch = micro_batch;
    plan.global_batch = 8;
    plan.seq_len = 10;
    const BatchLoader loader(file, plan, 256, 3);
    std::multiset<std::vector<std::int32_t>> met;
    for (std::int64_t rank = 0; rank < dp; ++rank) {
      const Batch batch = loader.load(32, rank);
      for (std::size_t i = 0; i < batch.tokens.size(); i += 10) {
        met.insert({batch.tokens.begin() + static_cast<std::ptrdiff_t>(i),
                    batch.tokens.begin() + static_cast<std::ptrdiff_t>(i) + 10});
        for (std::size_t j = i; j + 1 < i + 10; ++j)
          EXPECT_EQ(batch.targets[j], batch.tokens[j + 1]);
      }
    }
    return met;
  };
  EXPECT_EQ(sequences(1, 1).size(), 8U);
  EXPECT_EQ(sequences(1, 1), sequences(4, 2));
  EXPECT_EQ(sequences(1, 1), sequences(2, 1));
}

// 400 sequences, of which the last 40 are held out: training sees the others in each epoch and none
// of these, and validation each of these once, in the same order whatever the seed.
TEST(BatchLoader, NeverTrainsOnWhatIsHeldOut) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += std::string(10, static_cast<char>(i % 250));
  const TokenFile file(write("held_out.txt", text + "x"));
  Plan plan;
  plan.dp = 2;
  plan.global_batch = 8;
  plan.seq_len = 10;
  const BatchLoader loader(file, plan, 256, 3, 0.1), other(file, plan, 256, 4, 0.1);
  std::multiset<std::int32_t> trained, validated;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    for (std::uint64_t first = 0; first < 360; first += 8) {
      const Batch batch = loader.load(first, rank);
      for (std::size_t i = 0; i < batch.tokens.size(); i += 10) trained.insert(batch.tokens[i]);
    }
    for (std::uint64_t i = 0; i < loader.held_out_batches(); ++i) {
      const Batch batch = loader.load_held_out(i, rank);
      EXPECT_EQ(batch.tokens, other.load_held_out(i, rank).tokens);
      for (std::size_t k = 0; k < batch.tokens.size(); k += 10) validated.insert(batch.tokens[k]);
    }
  }
  std::multiset<std::int32_t> first, last;
  for (int i = 0; i < 400; ++i) (i < 360 ? first : last).insert(i % 250);
  EXPECT_EQ(trained, first);
  EXPECT_EQ(validated, last);
  EXPECT_EQ(loader.training_tokens(), 3601U);
  EXPECT_EQ(BatchLoader(file, plan, 256, 3).training_tokens(), 4001U);
}

TEST(BatchLoader, RefusesToHoldOutLessThanABatch) {
  const TokenFile file(write("small.txt", std::string(101, 'a')));
  Plan plan;
  plan.global_batch = 4;
  plan.seq_len = 10;
  EXPECT_NO_THROW(BatchLoader(file, plan, 256, 1, 0.4));
  EXPECT_THAT(thrown_by([&] { BatchLoader(file, plan, 256, 1, 0.3); }),
              testing::HasSubstr("3 of the 10 sequences"));
}

TEST(BatchLoader, RefusesTokensBeyondTheVocabularyAndShortCorpora) {
  const TokenFile file(write("short.txt", "abcdefgh"));
  Plan plan;
  plan.seq_len = 8;
  EXPECT_THROW(BatchLoader(file, plan, 256, 1), InputError);
  plan.seq_len = 7;
  EXPECT_THROW(BatchLoader(file, plan, 100, 1).load(0, 0), InputError);
  EXPECT_NO_THROW(BatchLoader(file, plan, 256, 1).load(0, 0));
}

// Returns the error of a run with one sequence of two tokens.
std::string refusal_in_training(const std::string& name) {
  const TokenFile file(name);
  Plan plan;
  plan.seq_len = 2;
  return thrown_by([&] { BatchLoader(file, plan, 256, 1).load(0, 0); });
}

TEST(BatchLoader, NamesTheFileThePositionAndTheTokenThatIsInNoVocabulary) {
  const std::string pairs = write("foreign.u16", as_bytes({5, 999, 7}, 2));
  EXPECT_THAT(refusal_in_training(pairs),
              AllOf(HasSubstr(pairs), HasSubstr("position 1"), HasSubstr("the token 999")));
  EXPECT_THAT(refusal_in_training(write("large.u32", as_bytes({5, 7, 4'000'000'000}, 4))),
              HasSubstr("the token 4000000000"));
  const std::string brief = write("brief.u16", as_bytes({5, 7}, 2));
  EXPECT_THAT(refusal_in_training(brief), HasSubstr(brief));
}

// The check refuses a corpus exactly if training for so many steps would. Each sample has an
// unknown token in turn.
TEST(BatchLoader, ChecksTheSamplesOfTheSteps) {
  constexpr std::int64_t kSamples = 11, kBatch = 2, kSeqLen = 3;
  Plan plan;
  plan.seq_len = kSeqLen;
  plan.global_batch = kBatch;
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    std::vector<std::int64_t> tokens(kSamples * kSeqLen + 1, 7);
    tokens[sample * kSeqLen + 1] = 256;
    const TokenFile file(write("checked.u16", as_bytes(tokens, 2)));
    const BatchLoader loader(file, plan, 256, 1);
    const auto refuses = [](const auto& work) { return !thrown_by(work).empty(); };
    bool is_met = false;
    for (std::int64_t steps = 1; steps < 2 * kSamples; ++steps) {
      const auto first = static_cast<std::uint64_t>((steps - 1) * kBatch);
      is_met = is_met || refuses([&] { loader.load(first, 0); });
      EXPECT_EQ(refuses([&] { loader.check(steps); }), is_met) << sample << ' ' << steps;
      // Checks the first sample only.
      EXPECT_EQ(refuses([&] { loader.check(steps, kSeqLen); }),
                refuses([&] { loader.check(1, kSeqLen); }));
    }
    EXPECT_TRUE(is_met);
    EXPECT_NO_THROW(BatchLoader(file, plan, 257, 1).check(2 * kSamples));
  }
}

TEST(BatchLoader, KnowsNegativeTokensOfSignedTypes) {
  for (const auto& [type, bytes] : {std::pair{3, 2}, {4, 4}, {5, 8}}) {
    write("negative.idx", megatron_index(type, bytes));
    const std::string tokens = as_bytes({5, 7, -3}, static_cast<std::size_t>(bytes));
    EXPECT_THAT(refusal_in_training(write("negative.bin", tokens)), HasSubstr("the token -3"));
  }
}

}  // namespace
}  // namespace shardwright::executor

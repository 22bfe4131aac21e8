#include <gtest/gtest.h>
#include <cstdio>
#include "core/spec/model_library.hpp"
using namespace shardwright;
TEST(X, Y) { for (auto& n : shipped_models()) { auto c = count_parameters(load_model(n)); std::printf("%s %ld %ld %ld\n", n.c_str(), c.total, c.active, c.mtp);} }

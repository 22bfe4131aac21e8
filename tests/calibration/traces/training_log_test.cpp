// Lines as the frameworks' own code formats them: Megatron-LM (training_log of training.py) and
// those that were made from it (Megatron-DeepSpeed, that of Argonne, GPT-NeoX's logging.py,
// Primus), NeMo, torchtitan (components/metrics.py, with its colours), DeepSpeed (pipe/engine.py,
// utils/timer.py).
#include "calibration/traces/training_log.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/thrown.hpp"

namespace shardwright::calibration {
namespace {

TrainingLog log_of(const std::string& text) {
  std::size_t at = 0;
  return read_training_log(
      [&](char* to, std::size_t most) {
        const std::size_t count = std::min({most, text.size() - at, std::size_t{10}});
        std::memcpy(to, text.data() + at, count);
        at += count;
        return count;
      },
      "train.log");
}

std::string megatron_line(int step, const char* milliseconds) {
  return " [2025-03-04 12:00:01] iteration " + std::string(step < 10 ? "       " : "      ") +
         std::to_string(step) +
         "/     100 | consumed samples:        10240 | elapsed time per iteration (ms): " +
         milliseconds +
         " | throughput per GPU (TFLOP/s/GPU): 490.0 | learning rate: 1.5E-05 | global batch size: "
         " 2048 | lm loss: 1.075E+01 | "
         "loss scale: 1.0 | grad norm: 3.1 |\n";
}

std::vector<std::int64_t> numbers_of(const TrainingLog& log) {
  std::vector<std::int64_t> numbers;
  for (const LoggedStep& step : log.steps) numbers.push_back(step.number);
  return numbers;
}

TEST(TrainingLog, ReadsMegatron) {
  const TrainingLog log = log_of("building model\n" + megatron_line(5, "15800.0") +
                                 "saving checkpoint at iteration 5\n" +
                                 megatron_line(6, "13100.0/13240.9") + megatron_line(6, "1.0"));
  EXPECT_EQ(log.framework, "Megatron-LM");
  ASSERT_EQ(log.steps.size(), 2U);
  EXPECT_EQ(log.steps[0].number, 5);
  EXPECT_DOUBLE_EQ(log.steps[0].time->value(), 15.8);
  EXPECT_DOUBLE_EQ(*log.steps[0].loss, 10.75);
  EXPECT_DOUBLE_EQ(*log.steps[0].global_batch, 2048);
  EXPECT_DOUBLE_EQ(log.steps[0].flop_rate_per_gpu->value(), 490e12);
  // The first step warms up.
  EXPECT_DOUBLE_EQ(log.step()->value(), 13.1);
}

TEST(TrainingLog, ReadsMegatronDeepSpeedWhoseTimesAreSeconds) {
  const TrainingLog log = log_of(
      "[default7]: iteration     1000/   95000 | consumed samples:       192000 | elapsed time per "
      "iteration (s): 105.07 | learning rate: 5.9E-05 | global batch size:  2048 | lm loss: "
      "2.48E+00 | number of skipped iterations:   0 | samples per second: 19.492 | TFLOPs: 149.2 "
      "|\n");
  EXPECT_EQ(log.framework, "Megatron-DeepSpeed");
  EXPECT_EQ(log.steps.at(0).number, 1000);
  EXPECT_DOUBLE_EQ(log.step()->value(), 105.07);
  EXPECT_DOUBLE_EQ(*log.steps.at(0).global_batch, 2048);
  EXPECT_DOUBLE_EQ(log.steps.at(0).flop_rate_per_gpu->value(), 149.2e12);
  EXPECT_DOUBLE_EQ(*log.steps.at(0).samples_per_s, 19.492);
}

// Each prints the same figures by names of its own.
TEST(TrainingLog, ReadsWhatWasMadeFromMegatron) {
  const std::string argonne =
      "[2025-11-10 09:43:36,161992][I][megatron/training_log:402:training_log]  iteration=  "
      "136004/  "
      "136100 | consumed_samples=   835608576 | elapsed_time_per_iteration_ms=3415.3 | "
      "learning_rate=2.0127e-05 | global_batch_size= 6144 | lm loss=12.316531 | loss_scale=1.0 | "
      "actual_seqlen= 8192 | number_of_nan_iterations=  0 | samples_per_second=1798.971 | "
      "tokens_per_gpu_per_second_tgs=4797.255 | [LM]-TFLOPs=53.66 | [DS]-TFLOPs=73.32 |\n";
  const std::string neox =
      " samples/sec: 1798.971 | iteration   136004/  320000 | elapsed time per iteration (ms): "
      "3415.3 "
      "| learning rate: 2.1E-06 | approx flops per GPU: 53.66TFLOPS | MFU: 17.20% | HFU: 18.10% | "
      "lm_loss: 1.2316531E+01 | loss scale: 1.0 | number of nan iterations:   0 |\n";
  const std::string primus =
      "[\x1b[32m20251202 06:56:00\x1b[0m][\x1b[36mrank-7/8\x1b[0m] : iteration   136004/  320000 | "
      "elapsed time per iteration (ms): 3415.3/3420.9 | compute per GPU (TFLOP/s/GPU): 53.66 (avg "
      "53.1) | tokens/s/GPU inst/harmonic mean: 4797.255/4790.1 | global batch size:  6144 | lm "
      "loss: "
      "1.2316531E+01 |\n";
  const std::string primus_of_torchtitan =
      "iteration   136004/  320000 | elapsed time per iteration (ms): 3415.3 | throughput per GPU "
      "(TFLOP/s/GPU): 53.66 | tokens per GPU (tokens/s/GPU): 4797.255 | global batch size:  6144 | "
      "loss: 1.2316531E+01 | grad norm: 7.872 | mfu: 17.20% |\n";
  const std::string apertus =
      " iteration   136004/  320000 | consumed tokens: 6.845B | elapsed time per iteration (ms): "
      "3415.3 | eta: 1:02:03 | tokens/sec/gpu: 4797.255 | throughput per GPU (TFLOP/s/GPU): 53.66 "
      "| "
      "global batch size:  6144 | lm loss: 1.2316531E+01 | loss scale: 1.0 |\n";
  for (const std::string& text : {argonne, neox, primus, primus_of_torchtitan, apertus}) {
    SCOPED_TRACE(text);
    const TrainingLog log = log_of(text);
    ASSERT_EQ(log.steps.size(), 1U);
    const LoggedStep& step = log.steps[0];
    EXPECT_EQ(step.number, 136004);
    EXPECT_DOUBLE_EQ(step.time.value_or(Seconds()).value(), 3.4153);
    EXPECT_DOUBLE_EQ(step.loss.value_or(0.0), 12.316531);
    EXPECT_DOUBLE_EQ(step.flop_rate_per_gpu.value_or(FlopPerSecond()).value(), 53.66e12);
    if (text == argonne || text == neox) {
      EXPECT_DOUBLE_EQ(step.samples_per_s.value_or(0.0), 1798.971);
    }
    if (text != neox) {
      EXPECT_DOUBLE_EQ(step.tokens_per_s_per_gpu.value_or(0.0), 4797.255);
      EXPECT_DOUBLE_EQ(step.global_batch.value_or(0.0), 6144.0);
    }
    if (text == neox || text == primus_of_torchtitan) {
      EXPECT_DOUBLE_EQ(step.mfu.value_or(0.0), 0.172);
    }
  }
}

TEST(TrainingLog, ReadsNeMo) {
  const TrainingLog log = log_of(
      "Training epoch 0, iteration 5/99 | lr: 1.8e-06 | global_batch_size: 512 | global_step: 5 | "
      "reduced_train_loss: 11.03 | "
      "train_step_timing in s: 9.512 | consumed_samples: 3072\n");
  EXPECT_EQ(log.framework, "NeMo");
  EXPECT_EQ(log.steps.at(0).number, 5);
  EXPECT_DOUBLE_EQ(log.step()->value(), 9.512);
  EXPECT_DOUBLE_EQ(*log.steps.at(0).loss, 11.03);
}

TEST(TrainingLog, ReadsStepsOfNeMoWithoutTimes) {
  const TrainingLog printer = log_of(
      "Training epoch 0, iteration 3/9 | lr: 0.0006 | consumed_samples: 128 | global_batch_size: "
      "32 | "
      "global_step: 3 | reduced_train_loss: 8.595\n");
  EXPECT_EQ(printer.framework, "NeMo");
  EXPECT_EQ(printer.steps.at(0).number, 3);
  EXPECT_EQ(printer.steps.at(0).loss, 8.595);
  EXPECT_FALSE(printer.step());
  // A progress bar writes its lines over one another.
  const TrainingLog bar = log_of(
      "Epoch 0:   1%|          | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=, "
      "reduced_train_loss=3.090, global_step=794.0, consumed_samples=1.63e+6]\r"
      "Epoch 0:   1%|          | 796/77225 [9:08:40<878:01:07, 41.36s/it, loss=3.1, v_num=, "
      "reduced_train_loss=nan.0, global_step=795.0, consumed_samples=1.63e+6]\n");
  ASSERT_EQ(bar.steps.size(), 2U);
  EXPECT_EQ(bar.steps[0].loss, 3.09);
  EXPECT_EQ(bar.steps[1].number, 795);
  EXPECT_TRUE(bar.steps[1].loss_is_lost);
  // The bar has the mean time of its steps, and their rate where they are faster than a second.
  EXPECT_EQ(bar.steps[0].time, Seconds(41.36));
  const TrainingLog fast = log_of(
      "Epoch 0:   1%|          | 4/772 [00:02<06:25, 2.00it/s, v_num=, reduced_train_loss=3.090, "
      "global_step=3.0]\n");
  EXPECT_EQ(fast.steps.at(0).time, Seconds(0.5));
  // Lightning 2 states rates alone, with two decimals; this bar has begun at its first step.
  const TrainingLog slow = log_of(
      "Epoch 0:   5%|4         | 3/62 [02:59<58:44,  0.02it/s, v_num=8-06, "
      "reduced_train_loss=6.930, global_step=2.000]\n");
  EXPECT_DOUBLE_EQ(slow.steps.at(0).time->value(), 179.0 / 3.0);
  // This one goes on in the middle of an epoch: 500 steps in 100 s would be 5 a second.
  const TrainingLog resumed = log_of(
      "Epoch 0:   5%|4         | 500/9000 [01:40<58:44,  0.25it/s, v_num=8-06, "
      "reduced_train_loss=6.930, global_step=499.0]\n");
  EXPECT_EQ(resumed.steps.at(0).time, Seconds(4.0));
  const TrainingLog neuron = log_of(
      "Epoch 0:  22%|##2       | 4499/20101 [22:26:14<77:48:37, 17.95s/it, loss=2.43, v_num=5563, "
      "reduced_train_loss=2.470, gradient_norm=0.121, global_step=4512.0, iteration_time=16.40]\n");
  EXPECT_EQ(neuron.steps.at(0).time, Seconds(16.4));
}

TEST(TrainingLog, ReadsLinesOfDllogger) {
  const TrainingLog log = log_of(
      R"(DLLL {"elapsedtime": "1750.2", "type": "LOG", "step": 16, "data": )"
      R"({"reduced_train_loss": 10.914, "global_step": 17.0, "train_step_timing in s": 92.3}})"
      "\n");
  EXPECT_EQ(log.steps.at(0).number, 17);
  EXPECT_EQ(log.steps.at(0).time, Seconds(92.3));
  EXPECT_EQ(log.steps.at(0).loss, 10.914);
}

TEST(TrainingLog, ReadsNemoAutoModel) {
  const TrainingLog log = log_of(
      "2026-01-05 10:00:00 | INFO | step 0 | epoch 0 | loss 1.5514 | grad_norm 2.1 | lr 1.00e-05 | "
      "mem 11.32 GiB | tps 6924.50(865.56/gpu) | num_label_tokens 2000\n"
      "2026-01-05 10:00:04 | INFO | [val] step 0 | epoch 0 | loss 9.0 | lr 1.00e-05\n"
      "2026-01-05 10:00:09 | INFO | step 1 | epoch 0 | loss 1.4 | grad_norm 2.1 | time 2.25s\n");
  EXPECT_EQ(log.framework, "NeMo AutoModel");
  ASSERT_EQ(log.steps.size(), 2U);
  EXPECT_EQ(log.steps[0].loss, 1.5514);
  EXPECT_EQ(log.steps[0].tokens_per_s_per_gpu, 865.56);
  EXPECT_EQ(log.steps[1].time, Seconds(2.25));
}

// Megatron Bridge states the rate before the iteration that it is of.
TEST(TrainingLog, TakesTheRateOfTheLineBeforeAStep) {
  const TrainingLog log = log_of(
      "Step Time : 5.39s GPU utilization: 2347.0MODEL_TFLOP/s/GPU\n"
      " iteration 10/ 50 | elapsed time per iteration (ms): 5390.0 | lm loss: 9.1E+00 |\n"
      " iteration 20/ 50 | elapsed time per iteration (ms): 5380.0 | lm loss: 8.1E+00 |\n");
  EXPECT_EQ(log.steps.at(0).flop_rate_per_gpu, FlopPerSecond(2347e12));
  EXPECT_EQ(log.steps.at(1).flop_rate_per_gpu, std::nullopt);
}

// DeepSpeed's lines beside them state times, too, but less.
TEST(TrainingLog, OfLinesWithTimesThoseWithMostFiguresCount) {
  const TrainingLog log = log_of(
      "[Rank 0] steps: 10 loss: 9.8123 iter time (s): 1.234 samples/sec: 51.86\n"
      " samples/sec: 51.812 | iteration 10/ 143000 | elapsed time per iteration (ms): 1235.3 | "
      "approx flops per GPU: 58.4TFLOPS | lm_loss: 9.8E+00 |\n");
  EXPECT_EQ(log.framework, "GPT-NeoX");
  EXPECT_EQ(log.steps.at(0).flop_rate_per_gpu, FlopPerSecond(58.4e12));
}

TEST(TrainingLog, ReadsTorchtitanWithItsColours) {
  const TrainingLog log = log_of(
      "[rank0]:[titan] 2025-02-05 18:31:35,123 - root - INFO - \x1b[31mstep: 20  \x1b[32mloss:  "
      "7.8503  \x1b[38;2;180;60;0mgrad_norm:  3.4  "
      "\x1b[33mmemory: 42.15GiB(53.28%)  \x1b[34mtps: 7,232  \x1b[36mtflops: 418.79  \x1b[35mmfu: "
      "42.34%\x1b[39m\n");
  EXPECT_EQ(log.framework, "torchtitan");
  EXPECT_EQ(log.steps.at(0).number, 20);
  EXPECT_DOUBLE_EQ(*log.steps.at(0).loss, 7.8503);
  EXPECT_DOUBLE_EQ(*log.steps.at(0).tokens_per_s_per_gpu, 7232);
  EXPECT_DOUBLE_EQ(log.steps.at(0).flop_rate_per_gpu->value(), 418.79e12);
  EXPECT_FALSE(log.step());
}

// torchtitan states throughput, not times. Lines are ten steps apart; one of them waits for a
// checkpoint. Validations have lines of the same form.
TEST(TrainingLog, LeavesOutValidationsOfTorchtitan) {
  const TrainingLog log = log_of(
      "[titan] 2025-06-26 16:02:40,500 - root - INFO - step:  5  loss:  7.1  memory: "
      "41.20GiB(52.00%)  tps: 7,000  tflops: 400.0  mfu: 41.0%\n"
      "[titan] 2025-06-26 16:02:49,500 - root - INFO - validate step:  5  loss:  6.9  memory: "
      "20.10GiB(25.00%)  tps: 19,000\n");
  ASSERT_EQ(log.steps.size(), 1U);
  EXPECT_EQ(log.steps[0].loss, 7.1);
  EXPECT_EQ(log.steps[0].tokens_per_s_per_gpu, 7000.0);
}

TEST(TrainingLog, TakesTimesFromWhenLinesWereWritten) {
  std::string text;
  const char* const stamps[] = {"23:59:40,000", "23:59:55,500", "00:00:11,000", "00:03:26,500",
                                "00:03:42,000"};
  for (int i = 0; i < 5; ++i)
    text += std::string("[titan] ") + (i < 2 ? "2024-02-29 " : "2024-03-01 ") + stamps[i] +
            " - root - INFO - step: " + std::to_string(i == 0 ? 1 : 10 * i) +
            "  loss: 7.8  tps: 7,232  mfu: 42.34%\n";
  const TrainingLog log = log_of(text);
  EXPECT_EQ(log.times_from, StepTimes::Stamps);
  EXPECT_FALSE(log.steps[0].time);
  EXPECT_NEAR(log.steps[1].time->value(), 15.5 / 9, 1e-6);
  EXPECT_NEAR(log.steps[2].time->value(), 1.55, 1e-6);
  EXPECT_NEAR(log.step()->value(), (1.55 + 15.5 / 9) / 2, 1e-6);
  EXPECT_DOUBLE_EQ(*log.steps[4].mfu, 0.4234);
  // A log that states times keeps to them.
  EXPECT_EQ(log_of(megatron_line(5, "15800.0") + megatron_line(6, "13100.0")).times_from,
            StepTimes::Stated);
}

TEST(TrainingLog, ReadsDeepSpeed) {
  const TrainingLog pipeline =
      log_of("steps: 10 loss: 7.7012 iter time (s): 0.498 samples/sec: 64.257\n");
  EXPECT_DOUBLE_EQ(pipeline.step()->value(), 0.498);
  EXPECT_DOUBLE_EQ(*pipeline.steps.at(0).samples_per_s, 64.257);
  const TrainingLog timer = log_of(
      "[2025-01-02 03:04:05,678] [INFO] [timer.py:264:stop] epoch=0/micro_step=80/global_step=10, "
      "RunningAvgSamplesPerSec=3.1, "
      "CurrSamplesPerSec=3.25, MemAllocated=20.1GB, MaxMemAllocated=60.2GB\n");
  EXPECT_EQ(timer.steps.at(0).number, 10);
  EXPECT_DOUBLE_EQ(*timer.steps.at(0).samples_per_s, 3.25);
}

TEST(TrainingLog, LinesOfOneStepAddUpInEitherOrder) {
  const std::string engine = "steps: 10 loss: 7.7012 iter time (s): 0.498 samples/sec: 64.257\n";
  const std::string timer =
      "epoch=0/micro_step=80/global_step=10, RunningAvgSamplesPerSec=3.1, CurrSamplesPerSec=3.25\n";
  for (const auto& [text, samples] : {std::pair(engine + timer, 64.257), {timer + engine, 3.25}}) {
    const TrainingLog log = log_of(text);
    ASSERT_EQ(log.steps.size(), 1U);
    EXPECT_DOUBLE_EQ(log.step().value_or(Seconds()).value(), 0.498);
    EXPECT_DOUBLE_EQ(log.steps.front().loss.value_or(0.0), 7.7012);
    // Where both lines state a figure, the first one counts.
    EXPECT_DOUBLE_EQ(log.steps.front().samples_per_s.value_or(0.0), samples);
  }
}

// Its throughput timer once counted the micro-batches of an epoch. In this run a step has four of
// them.
TEST(TrainingLog, ReadsTheFirstThroughputTimersOfDeepSpeed) {
  for (const char* figures :
       {", SamplesPerSec=232.7",
        ", SamplesPerSec=232.7, MemAllocated=0.36GB, MaxMemAllocated=15.06GB",
        ", RunningAvgSamplesPerSec=215.1, CurrSamplesPerSec=232.7, MemAllocated=0.36GB"}) {
    SCOPED_TRACE(figures);
    std::string timer, both;
    for (int batch = 10; batch <= 80; batch += 10) {
      const std::string stamp = fmt::format("[2022-08-29 06:50:{:02},176] [INFO] ", batch / 2);
      const std::string line = fmt::format("{}[timer.py:198:stop] 0/{}{}\n", stamp, batch, figures);
      timer += line;
      if (batch % 40 == 0)
        both += fmt::format("{}[logging.py:68:log_dist] [Rank 0] step={}, skipped=0, lr=[5e-05]\n",
                            stamp, 1000 + batch / 4);
      both += line;
    }
    const TrainingLog counted = log_of(timer);
    EXPECT_EQ(counted.framework, "DeepSpeed");
    EXPECT_THAT(numbers_of(counted), testing::ElementsAre(10, 20, 30, 40, 50, 60, 70, 80));
    EXPECT_EQ(counted.steps[0].samples_per_s, 232.7);
    EXPECT_NEAR(counted.step()->value(), 0.5, 1e-6);
    const TrainingLog stated = log_of(both);
    EXPECT_THAT(numbers_of(stated), testing::ElementsAre(1010, 1020));
    EXPECT_EQ(stated.steps[0].samples_per_s, 232.7);
    EXPECT_EQ(stated.attempts, 1);
    EXPECT_NEAR(stated.step()->value(), 2.0, 1e-6);
  }
}

// DeepSpeed prints its own lines below Megatron-DeepSpeed and GPT-NeoX, and counts from the last
// start.
TEST(TrainingLog, LinesThatStateTimesCountBeforeThoseOfTheLibraryBelow) {
  std::string text;
  for (int step = 199; step <= 200; ++step)
    text += fmt::format(
                "[2024-03-07 15:27:{:02},646] [INFO] [timer.py:260:stop] epoch=0/micro_step={}/"
                "global_step={}, RunningAvgSamplesPerSec=58.7, CurrSamplesPerSec=61.3\n",
                step - 190, step - 190, step - 190) +
            megatron_line(step, "14287.5");
  const TrainingLog log = log_of(text);
  EXPECT_EQ(log.framework, "Megatron-LM");
  EXPECT_EQ(log.times_from, StepTimes::Stated);
  EXPECT_THAT(numbers_of(log), testing::ElementsAre(199, 200));
  EXPECT_DOUBLE_EQ(log.step().value_or(Seconds()).value(), 14.2875);
  EXPECT_EQ(log.steps[0].loss, 10.75);
}

// A log may be read while it is written.
TEST(TrainingLog, TheLastWordOfALineWithoutItsEndDoesNotCount) {
  const std::string whole = megatron_line(5, "15800.0") + megatron_line(6, "15801.0");
  const TrainingLog cut = log_of(whole.substr(0, whole.rfind("5801.0")));
  EXPECT_FALSE(cut.steps.at(1).time);
  EXPECT_DOUBLE_EQ(cut.step().value_or(Seconds()).value(), 15.8);
  // Nothing is missing but the end of the line.
  EXPECT_DOUBLE_EQ(log_of(whole.substr(0, whole.size() - 1)).step().value_or(Seconds()).value(),
                   15.801);
}

std::string line_without_stamp(const char* rank, int step, double seconds) {
  return fmt::format("{}iteration {}/ 100 | elapsed time per iteration (ms): {} |\n", rank, step,
                     1e3 * seconds);
}

// The second attempt goes on from a checkpoint at step 30 and logs other steps.
TEST(TrainingLog, OfStepsThatSeveralAttemptsRanTheLastAttemptCounts) {
  std::string text;
  for (int step = 10; step <= 50; step += 10) text += line_without_stamp("", step, 15.0);
  for (int step = 35; step <= 55; step += 5) text += line_without_stamp("", step, 17.0);
  text += line_without_stamp("", 55, 1.0) + line_without_stamp("", 50, 18.0);
  const TrainingLog log = log_of(text);
  EXPECT_EQ(log.attempts, 3);
  EXPECT_EQ(log.repeated_steps, 2 + 2);
  EXPECT_THAT(numbers_of(log), testing::ElementsAre(10, 20, 30, 35, 40, 45, 50));
  EXPECT_DOUBLE_EQ(log.steps[2].time->value(), 15.0);
  EXPECT_EQ(log.steps[2].attempt, 1);
  EXPECT_DOUBLE_EQ(log.steps[3].time->value(), 17.0);
  EXPECT_EQ(log.steps[5].attempt, 2);
  EXPECT_DOUBLE_EQ(log.steps[6].time->value(), 18.0);
}

TEST(TrainingLog, LinesOfOtherRanksAreNoFurtherAttempt) {
  const TrainingLog unstamped =
      log_of(line_without_stamp("[rank0]:", 10, 1.0) + line_without_stamp("[rank0]:", 20, 1.1) +
             line_without_stamp("[rank1]:", 10, 1.2) + line_without_stamp("[rank1]:", 20, 1.3) +
             line_without_stamp("2: ", 10, 1.4));
  EXPECT_EQ(unstamped.attempts, 1);
  EXPECT_THAT(numbers_of(unstamped), testing::ElementsAre(10, 20));
  EXPECT_DOUBLE_EQ(unstamped.steps[1].time->value(), 1.1);
  const auto titan = [](const char* stamp, int step) {
    return fmt::format("2025-02-05 {} - INFO - step: {}  loss: 7.8  tps: 7,232\n", stamp, step);
  };
  // The output of rank 1 comes late; an hour later the run starts again, at the step that it logged
  // last.
  const TrainingLog stamped =
      log_of(titan("18:00:00,000", 10) + titan("18:00:20,000", 20) + titan("18:00:00,200", 10) +
             titan("18:00:20,100", 20) + titan("19:00:00,000", 20) + titan("19:00:30,000", 30));
  EXPECT_EQ(stamped.attempts, 2);
  EXPECT_EQ(stamped.repeated_steps, 1);
  // The hour in which the run stood still is no time of a step.
  EXPECT_FALSE(stamped.steps.at(1).time);
  EXPECT_DOUBLE_EQ(stamped.steps.at(2).time->value(), 3.0);
  // A rank whose own steps fall back started again, whatever the other ranks wrote last.
  std::string ranks;
  for (const int step : {10, 20, 15, 25})
    for (const char* rank : {"[rank0]:", "[rank1]:"}) ranks += line_without_stamp(rank, step, 1.0);
  EXPECT_EQ(log_of(ranks).attempts, 2);
  EXPECT_THAT(numbers_of(log_of(ranks)), testing::ElementsAre(10, 15, 25));
}

// A bar draws a step again after a validation, and rounds the numbers of steps, but not its own
// count.
TEST(TrainingLog, ABarThatIsDrawnAgainIsNoFurtherAttempt) {
  std::string text;
  const auto draw = [&](int minute, int drawn, const char* step, const char* more) {
    text += fmt::format(
        "2024-06-17 08:{:02}:00 Epoch 0: :  47%|####7     | {}/3000 [06:19<07:13, "
        "reduced_train_loss="
        "11.5, global_step={}, train_step_timing in s=60.0{}]\n",
        minute, drawn, step, more);
  };
  draw(1, 997, "998.0", "");
  draw(2, 998, "999.0", "");
  draw(3, 999, "1e+3", "");
  draw(4, 999, "1e+3", ", val_loss=11.2");
  for (int i = 1; i < 5; ++i) draw(4 + i, 999 + i, "1e+3", ", val_loss=11.2");
  draw(9, 1004, "1.01e+3", ", val_loss=11.2");
  // The next epoch draws from the beginning.
  draw(10, 0, "1.01e+3", "");
  draw(11, 1, "1.01e+3", "");
  const TrainingLog log = log_of(text);
  EXPECT_EQ(log.attempts, 1);
  EXPECT_THAT(numbers_of(log),
              testing::ElementsAre(998, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1010, 1011));
  // A run that goes on from a checkpoint at step 1,000 starts again.
  draw(30, 0, "1e+3", "");
  draw(31, 1, "1e+3", "");
  // Narrow terminals have no room for the bar itself.
  text.erase(text.rfind("####7     | "), 12);
  EXPECT_EQ(log_of(text).attempts, 2);
  EXPECT_THAT(numbers_of(log_of(text)), testing::ElementsAre(998, 999, 1000, 1001));
}

TEST(TrainingLog, RefusesOtherTexts) {
  EXPECT_THAT(thrown_by([] { log_of("step 1 took 3 s\n"); }),
              testing::HasSubstr("no line that states a step"));
  EXPECT_THAT(thrown_by([] { log_of("a\n" + std::string(1'100'000, 'x')); }),
              testing::HasSubstr("line 2"));
}

}  // namespace
}  // namespace shardwright::calibration

#include "gui/models/run_follower.hpp"

#include <QFile>
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/base/units.hpp"
#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

// The pauses between looks at the file, which grow while nothing is added.
constexpr int kPollMs = 200, kRareMs = 5000;
// The bytes that are read at once, so that the window stays free while it reads long metrics, and
// the pause between its updates.
constexpr qint64 kMostAtOnce = 1 << 20;
constexpr int kBetweenReportsMs = 250;
constexpr std::size_t kFewSteps = 5;
constexpr double kSlower = 1.3;
// Limits that no machine comes near. The loss of a run that diverges may take any float.
constexpr NumberRange kAnyTime{0.0, 1e12, true}, kAnyAmount{0.0, 1e18, false};
constexpr NumberRange kAnyNorm{0.0, std::numeric_limits<float>::max(), false};
constexpr NumberRange kAnyLoss{-kAnyNorm.most, kAnyNorm.most, false};

}  // namespace

double median_step_time(std::span<const RunStep> steps) {
  if (steps.empty()) return 0.0;
  std::vector<double> times;
  for (const RunStep& step : steps) times.push_back(step.step_s);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

std::optional<RunStep> read_run_step(const QByteArray& line) {
  const auto document = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  if (!document.is_object()) return std::nullopt;
  ProblemList problems("");
  ObjectReader object(document, "", problems);
  constexpr double kNotSaid = std::numeric_limits<double>::quiet_NaN();
  RunStep step;
  step.step = static_cast<double>(object.integer("step", {0, IntegerRange{}.most}));
  step.loss = object.number_or("loss", kNotSaid, kAnyLoss);
  step.validation_loss = object.number_or("validation_loss", kNotSaid, kAnyLoss);
  step.gradient_norm = object.number_or("gradient_norm", kNotSaid, kAnyNorm);
  step.step_s = object.number("step_s", kAnyTime);
  step.tokens_per_s = object.number_or("tokens_per_s", kNotSaid, kAnyAmount);
  step.mfu = object.number_or("mfu", kNotSaid, kAnyAmount);
  step.memory_bytes = object.number_or("tensor_peak_bytes", kNotSaid, kAnyAmount);
  if (!problems.empty()) return std::nullopt;
  return step;
}

RunFollower::RunFollower(QObject* parent) : QObject(parent) {
  connect(&timer_, &QTimer::timeout, this, &RunFollower::poll);
}

void RunFollower::follow(const QString& file) {
  path_ = file;
  position_ = 0;
  rest_.clear();
  steps_.clear();
  lines_ = damaged_ = first_damaged_ = 0;
  timer_.start(kPollMs);
  poll();
}

void RunFollower::finish() {
  timer_.stop();
  while (read_on()) {
  }
  if (!path_.isEmpty()) Q_EMIT grown();
}

void RunFollower::forget() {
  timer_.stop();
  steps_.clear();
  lines_ = damaged_ = first_damaged_ = 0;
  path_.clear();
}

void RunFollower::poll() {
  const qint64 before = position_;
  const bool more = read_on();
  const bool long_ago = !since_grown_.isValid() || since_grown_.hasExpired(kBetweenReportsMs);
  if (position_ != before && (!more || long_ago)) {
    since_grown_.start();
    Q_EMIT grown();
  }
  if (more) return timer_.start(0);
  timer_.setInterval(position_ != before ? kPollMs
                                         : std::clamp(timer_.interval() + timer_.interval() / 10,
                                                      kPollMs, kRareMs));
}

bool RunFollower::read_on() {
  QFile file(path_);
  if (!file.open(QIODevice::ReadOnly)) return false;
  if (file.size() < position_) {  // Somebody has written the file anew.
    position_ = 0;
    rest_.clear();
    steps_.clear();
    lines_ = damaged_ = first_damaged_ = 0;
  }
  if (!file.seek(position_)) return false;
  const QByteArray read = file.read(kMostAtOnce);
  if (read.isEmpty()) return false;
  position_ += read.size();
  rest_ += read;
  qsizetype begin = 0;
  for (qsizetype end = rest_.indexOf('\n'); end >= 0; end = rest_.indexOf('\n', begin)) {
    take_line(rest_.mid(begin, end - begin));
    begin = end + 1;
  }
  rest_ = rest_.mid(begin);
  return position_ < file.size();
}

void RunFollower::take_line(const QByteArray& line) {
  ++lines_;
  if (line.trimmed().isEmpty()) return;
  if (const auto step = read_run_step(line)) {
    steps_.push_back(*step);
  } else if (++damaged_ == 1) {
    first_damaged_ = lines_;
  }
}

QString bottleneck_warning(const std::vector<RunStep>& steps, double predicted_step_s) {
  if (steps.size() < 2 * kFewSteps) return {};
  const std::span<const RunStep> all = steps;
  const double now = median_step_time(all.last(kFewSteps));
  const double before = median_step_time(all.subspan(1, all.size() - kFewSteps - 1));
  if (now > kSlower * before) {
    return u"The last steps take %1, %2 more than those before: look for a slow rank "
           "or a busy machine."_s.arg(time_text(Seconds(now)), percent_text(now / before - 1.0));
  }
  if (predicted_step_s > 0.0 && now > 2.0 * predicted_step_s) {
    return u"Steps take %1 instead of the predicted %2: calibrate the profile, or look for a "
           "cause that it lacks."_s.arg(time_text(Seconds(now)),
                                        time_text(Seconds(predicted_step_s)));
  }
  return {};
}

}  // namespace shardwright::gui

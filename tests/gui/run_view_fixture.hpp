#pragma once

#include <gtest/gtest.h>

#include <QDir>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>

#include "gui/models/text.hpp"
#include "gui/models/written_file.hpp"
#include "gui/views/run_view.hpp"
#include "tests/gui/small_scenario.hpp"
#include "tests/gui/tiny_run.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {

class RunViewTest : public WindowTest {
 protected:
  void SetUp() override {
    WindowTest::SetUp();
    choose(tiny_scenario());
    write_text_file(corpus_, u"to be or not to be, that is the question. "_s.repeated(100));
  }

  void choose(const Scenario& scenario) {
    window_.selection().show(std::make_shared<const PlanSet>(plan_set_of(scenario, u"a test"_s)));
  }

  void start(int steps) {
    window_.raise_view(u"run"_s);
    find<QLineEdit>("run_data").setText(corpus_);
    find<QLineEdit>("run_out").setText(run_.path());
    find<QSpinBox>("run_steps").setValue(steps);
    press("run_start");
  }

  void press(const char* button) { QTest::mouseClick(&find<QPushButton>(button), Qt::LeftButton); }

  // Starts a run that ends only when it is stopped.
  void start_long_run() {
    start(1'000'000);
    ASSERT_TRUE(view_->is_running()) << qPrintable(said());
  }

  void train(int steps) {
    start(steps);
    ASSERT_TRUE(ends_well()) << qPrintable(said());
  }

  QString write_run(const char* name, const QString& metrics) {
    const QString run = folder_.filePath(to_qstring(name));
    QDir().mkpath(run);
    write_text_file(QDir(run).filePath(u"metrics.jsonl"_s), metrics);
    return run;
  }

  // Waits for the end of the runs that were started. Returns true if the last one ended well.
  bool ends_well() {
    EXPECT_TRUE(wait_for([&] { return !ended_.isEmpty() && !window_.is_busy(); }));
    const bool well = ended_.last().front().toBool();
    ended_.clear();
    return well;
  }

  bool is_calibrated() {
    return wait_for([&] { return state().contains(u"Calibrated"_s); });
  }

  // Without the signs that keep units whole.
  QString state() { return find<QLabel>("run_state").text().remove(QChar(0x2060)); }

  void open(const QString& path) {
    window_.open({path});
    ASSERT_TRUE(is_idle());
  }

  QString corpus_ = folder_.filePath(u"corpus.txt"_s);
  const QDir run_{folder_.filePath(u"run"_s)};
  RunView* view_ = window_.findChild<RunView*>();
  QSignalSpy ended_{view_, &RunView::ended};
};

}  // namespace shardwright::gui

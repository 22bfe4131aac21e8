#pragma once

#include <gtest/gtest.h>

#include <QDropEvent>
#include <QMimeData>
#include <QTemporaryDir>
#include <QToolButton>
#include <QUrl>
#include <nlohmann/json.hpp>

#include "gui/models/written_file.hpp"
#include "gui/views/message_bar.hpp"
#include "gui/window/main_window.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {

class WindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    window_.resize(1400, 900);
    window_.show();
    window_.activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
  }

  template <class Widget>
  Widget& find(const char* name) {
    auto* found = window_.findChild<Widget*>(to_qstring(name));
    EXPECT_NE(found, nullptr) << name;
    return *found;
  }

  // Types a text in the place of the one that a field has, and then a key.
  void type(QWidget& field, const QString& text, Qt::Key end) {
    field.setFocus();
    QTest::keyClick(&field, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(&field, text);
    QTest::keyClick(&field, end);
  }

  void trigger(const char* action) { window_.actions().find(to_qstring(action))->trigger(); }

  QString said() { return find<MessageBar>("message_bar").text(); }

  bool is_idle() {
    QCoreApplication::processEvents();  // What is queued may begin more work.
    return wait_for([&] { return !window_.is_busy(); });
  }

  // Clicks the button of that name in the row of the message that has this text.
  void click(const QString& message, const char* button) {
    for (MessageRow* row : find<MessageBar>("message_bar").rows()) {
      if (!row->text().contains(message)) continue;
      auto* found = row->findChild<QToolButton*>(to_qstring(button));
      ASSERT_NE(found, nullptr);
      ASSERT_TRUE(found->isVisible());
      return QTest::mouseClick(found, Qt::LeftButton);
    }
    FAIL() << "no message says " << qPrintable(message);
  }

  void show_plans() {
    window_.selection().show(small_set());
    ASSERT_TRUE(is_idle());
  }

  QString write(const char* name, const std::string& text) {
    const QString path = folder_.filePath(to_qstring(name));
    write_text_file(path, to_qstring(text));
    return path;
  }

  QString write_plan(const char* name, std::size_t plan) {
    return write(name, to_json(small_set()->scenario(plan)).dump());
  }

  // Waits until the window shows a set of plans for which this holds.
  template <class Holds>
  bool shows(const Holds& holds) {
    return wait_for([&] {
      const PlanSetPointer set = window_.selection().set();
      return set && holds(*set);
    });
  }

  // Waits for plans and until the window has nothing left to do.
  bool has_plans() {
    return shows([this](const PlanSet&) { return !window_.is_busy(); });
  }

  void drop(const QStringList& paths) {
    QMimeData data;
    QList<QUrl> urls;
    for (const QString& path : paths) urls.append(QUrl::fromLocalFile(path));
    data.setUrls(urls);
    QDragEnterEvent enter(QPoint(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&window_, &enter);
    EXPECT_TRUE(enter.isAccepted());
    QDropEvent event(QPointF(50, 50), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&window_, &event);
    ASSERT_TRUE(is_idle());
  }

  QTemporaryDir folder_;
  MainWindow window_;
};

}  // namespace shardwright::gui

#include "gui/window/run_question.hpp"

#include <QMainWindow>
#include <QMessageBox>
#include <QPushButton>

#include "gui/views/run_view.hpp"

namespace shardwright::gui {

void ask_what_becomes_of_run(QMainWindow& window, RunView& run) {
  auto* question = new QMessageBox(
      QMessageBox::Question, RunView::tr("A run is in progress"),
      RunView::tr("Close the window while it trains? A run that is stopped keeps its files. A run "
                  "that is kept goes on without the window: open its folder to follow it; "
                  "“kill -INT %1” stops it.")
          .arg(run.process_id()),
      QMessageBox::Cancel, &window);
  question->setObjectName(u"run_question"_s);
  question->setAttribute(Qt::WA_DeleteOnClose);
  const auto add = [&](const char* id, const QString& text, QMessageBox::ButtonRole role) {
    QPushButton* button = question->addButton(text, role);
    button->setObjectName(to_qstring(id));
    return button;
  };
  QObject::connect(
      add("stop_and_close", RunView::tr("Stop the run and close"), QMessageBox::DestructiveRole),
      &QPushButton::clicked, &window, [&window, &run] {
        constexpr int kOnceLater = Qt::QueuedConnection | Qt::SingleShotConnection;
        QObject::connect(&run, &RunView::ended, &window, &QMainWindow::close,
                         static_cast<Qt::ConnectionType>(kOnceLater));
        run.stop();
      });
  QObject::connect(
      add("keep_running", RunView::tr("Keep it running and close"), QMessageBox::AcceptRole),
      &QPushButton::clicked, &window, [&window, &run] {
        run.release_run();
        QMetaObject::invokeMethod(&window, &QMainWindow::close, Qt::QueuedConnection);
      });
  question->setDefaultButton(QMessageBox::Cancel);
  QObject::connect(&run, &RunView::ended, question, &QMessageBox::reject);
  question->open();
}

}  // namespace shardwright::gui

#include "gui/topology/topology_view.hpp"

#include <QScrollArea>
#include <QVBoxLayout>
#include <utility>

#include "core/base/error.hpp"
#include "gui/models/text.hpp"
#include "gui/views/empty_state.hpp"

namespace shardwright::gui {

TopologyView::TopologyView(QWidget* parent) : View(parent), canvas_(new TopologyCanvas) {
  auto* scroll = new QScrollArea(this);
  scroll->setWidget(canvas_);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::NoFocus);
  empty_ = new EmptyState(scroll, this);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(empty_);
  setFocusProxy(canvas_);
  clear();
}

void TopologyView::set_plan(const ClusterSpec& cluster, const Plan& plan,
                            const Timeline* timeline) {
  try {
    canvas_->set_plan(cluster, plan, timeline);
    empty_->show_content();
    // Only a problem of its own: the window's bar may hold that of another view.
    if (std::exchange(told_problem_, false)) Q_EMIT problem({});
  } catch (const InputError& error) {
    clear();
    told_problem_ = true;
    Q_EMIT problem(error_text(error));
  }
}

void TopologyView::clear(const QString& files) {
  canvas_->clear();
  empty_->show_hint(
      files.isEmpty()
          ? QStringLiteral("<b>No cluster yet</b><br>Choose a plan to see how its ranks lie on the "
                           "cluster and which links they load.")
          : hint_of_files(files, QStringLiteral("no cluster")));
}

TextTable TopologyView::table() const {
  if (canvas_->is_empty()) return {};
  return link_table(canvas_->map(), canvas_->scene().bytes, canvas_->scene().utilisation);
}

}  // namespace shardwright::gui

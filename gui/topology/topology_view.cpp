#include "gui/topology/topology_view.hpp"

#include <QVBoxLayout>
#include <utility>

#include "core/base/error.hpp"
#include "gui/models/text.hpp"
#include "gui/views/empty_state.hpp"

namespace shardwright::gui {

TopologyView::TopologyView(QWidget* parent) : View(parent), canvas_(new TopologyCanvas) {
  // The stack passes the focus on from within a page, but not from the page itself.
  auto* page = new QWidget(this);
  auto* page_layout = new QVBoxLayout(page);
  page_layout->setContentsMargins(0, 0, 0, 0);
  page_layout->addWidget(canvas_);
  empty_ = new EmptyState(page, this);
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
    // Only a problem of this view is taken back: the window may show one of another view.
    if (std::exchange(reported_problem_, false)) Q_EMIT problem({});
  } catch (const InputError& error) {
    clear();
    reported_problem_ = true;
    Q_EMIT problem(error_text(error));
  }
}

void TopologyView::clear(const QString& files) {
  canvas_->clear();
  empty_->show_hint(
      files.isEmpty()
          ? QStringLiteral("<b>No cluster yet</b><br>Choose a plan to see the places of its ranks "
                           "in the cluster and the load of the links.")
          : hint_of_files(files, QStringLiteral("no cluster")));
}

TextTable TopologyView::table() const {
  if (canvas_->is_empty()) return {};
  return link_table(canvas_->map(), canvas_->scene().bytes, canvas_->scene().utilisation);
}

}  // namespace shardwright::gui
